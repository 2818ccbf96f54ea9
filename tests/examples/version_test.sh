#!/usr/bin/env bash
# The installed tool, header, pkg-config files and CMake packages have the version in the file VERSION.
#   version_test.sh TREE.tar VERSION
set -eu
tree=$1 version=$(cat "$2")
work=$(cd "${TEST_TMPDIR:-$(mktemp -d)}" && pwd)
tar -xf "$tree" -C "$work"
cd "$work"

check() { # WHAT VERSION
  if [ "$2" != "$version" ]; then
    echo "$1 has version '$2', and VERSION is '$version'"
    exit 1
  fi
}

[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]
check "weir --version" "$(bin/weir --version | sed 's/^weir \(.*\), GraphDef version [0-9]*$/\1/')"
defined() { sed -n "s/^#define $1 //p" include/weir/core/tensor/version.h; }
check WEIR_VERSION "$(defined WEIR_VERSION | tr -d '"')"
check WEIR_VERSION_MAJOR... "$(defined WEIR_VERSION_MAJOR).$(defined WEIR_VERSION_MINOR).$(defined WEIR_VERSION_PATCH)"
for library in weir weir_rpc; do
  check $library.pc "$(sed -n 's/^Version: //p' lib/pkgconfig/$library.pc)"
  check ${library}ConfigVersion.cmake \
    "$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")$/\1/p' lib/cmake/$library/${library}ConfigVersion.cmake)"
done
