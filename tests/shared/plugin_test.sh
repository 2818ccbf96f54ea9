#!/usr/bin/env bash
# A plug-in that uses the shared library works in a host with another protobuf, and beside TensorFlow in all orders.
#   plugin_test.sh TREE.tar SHARED.tar plugin.cc plugin_host.cc
set -eu
tree=$1 shared=$2 plugin=$3 host=$4
command -v pkg-config >/dev/null || {
  echo "SKIPPED: there is no pkg-config"
  exit
}
work=$(cd "${TEST_TMPDIR:-$(mktemp -d)}" && pwd)
tar -xf "$tree" -C "$work" include lib
tar -xf "$shared" -C "$work"
rm "$work"/lib/*.a
export PKG_CONFIG_PATH=$work/lib/pkgconfig
# shellcheck disable=SC2046
g++ -std=c++20 -Wall -Wextra -Wpedantic -Werror -fPIC -shared "$plugin" $(pkg-config --cflags --libs weir-shared) \
  -Wl,-rpath,"$work/lib" -o "$work/plugin.so"
build_host() {
  g++ -std=c++20 -Wall -Wextra -Wpedantic -Werror -rdynamic "$host" "$@" -l:libprotobuf.a -l:libz.a -pthread -ldl \
    -o "$work/host"
}
# Exports its protobuf, which Weir's must not be replaced by.
build_host
for scope in local global; do
  "$work/host" "$work/plugin.so" "$work" "$scope"
done

tensorflow=$("${WEIR_PYTHON:-python3}" -c '
import glob, importlib.util, os
found = importlib.util.find_spec("tensorflow")
print(*(found and glob.glob(os.path.dirname(found.origin) + "/libtensorflow_cc.so.*") or [])[:1])' 2>/dev/null) || true
[ -n "$tensorflow" ] || {
  echo "without TensorFlow, which Python does not have"
  exit
}
# TensorFlow's would be replaced: it works only beside a host that keeps its own protobuf to itself.
build_host -Wl,--exclude-libs,ALL
for scope in local global; do
  for order in before after; do
    echo "TensorFlow $order the plug-in, $scope"
    "$work/host" "$work/plugin.so" "$work" "$scope" "$order" "$tensorflow"
  done
done
