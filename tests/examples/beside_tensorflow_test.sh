#!/usr/bin/env bash
# A program that links an installed Weir with -rdynamic exports no symbols of the libraries below it, and works with
# TensorFlow in the same process.
#   beside_tensorflow_test.sh TREE.tar beside_tensorflow.cc
set -eu
tree=$1 source=$2
skip() {
  echo "SKIPPED: $1"
  exit
}
command -v pkg-config >/dev/null || skip "there is no pkg-config"
tensorflow=$("${WEIR_PYTHON:-python3}" -c '
import glob, importlib.util, os
found = importlib.util.find_spec("tensorflow")
print(*(found and glob.glob(os.path.dirname(found.origin) + "/libtensorflow_cc.so.*") or [])[:1])' 2>/dev/null) || true
[ -n "$tensorflow" ] || skip "Python has no TensorFlow with libtensorflow_cc"

work=$(cd "${TEST_TMPDIR:-$(mktemp -d)}" && pwd)
tar -xf "$tree" -C "$work" include lib
if nm -C "$work/lib/libweir.a" 2>/dev/null | grep -qE '__(asan|tsan|ubsan)_'; then
  skip "the library is built with a sanitizer"
fi
export PKG_CONFIG_PATH=$work/lib/pkgconfig
# shellcheck disable=SC2046
g++ -std=c++20 -Wall -Wextra -Wpedantic -Werror -rdynamic "$source" $(pkg-config --cflags --libs weir_rpc) -ldl \
  -o "$work/beside"
# The program exports its own symbols. Of the libraries it exports only weak symbols compiled in its own sources: inline
# functions, templates and their tables.
nm -DC --defined-only "$work/beside" >"$work/exported"
grep -q ' T main$' "$work/exported"
if grep -E '^[0-9a-f]+ [TDB] ' "$work/exported" | grep -E 'google::|absl::|grpc|weir::|leveldb::|re2::'; then
  echo "these are exported"
  exit 1
fi
"$work/beside" "$tensorflow" "$work"
