#!/usr/bin/env bash
# Installs what is missing, builds, and installs Weir for programs in projects of their own: static
# libraries, headers, the tools `weir` and `weir-serve`, and what pkg-config and CMake need to find
# them. examples/own_project is such a project.
#
#   tools/install.sh                      to /usr/local, as root
#   tools/install.sh --prefix ~/weir      elsewhere; the tree may be moved
#   tools/install.sh --config=cuda        other options go to Bazel: here, with the GPU's kernels
#
# An older Weir in the same place is replaced. To remove it: tools/install.sh --remove [--prefix ...]
from=$PWD
source "$(dirname "$0")/setup.sh"

prefix=/usr/local
remove=0
options=()
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=${2:?--prefix needs a folder}; shift ;;
    --prefix=*) prefix=${1#*=} ;;
    --remove) remove=1 ;;
    -h | --help) sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "$0"; exit ;;
    *) options+=("$1") ;;
  esac
  shift
done
case $prefix in
  /*) ;;
  "~"/*) prefix=$HOME/${prefix#"~/"} ;; # --prefix=~/weir, which the shell leaves as it is
  *) prefix=$from/$prefix ;;
esac

# Everything of Weir's below a prefix, and nothing else.
remove_weir() {
  rm -rf "$1"/include/weir "$1"/lib/cmake/weir "$1"/lib/cmake/weir_rpc
  rm -f "$1"/bin/weir "$1"/bin/weir-serve "$1"/lib/libweir{,_exports,_rpc}.a \
    "$1"/lib/pkgconfig/weir.pc "$1"/lib/pkgconfig/weir_rpc.pc
}

if [ "$remove" = 1 ]; then
  remove_weir "$prefix"
  say "Removed from $prefix."
  exit
fi

mkdir -p "$prefix" && [ -w "$prefix" ] ||
  die "$prefix cannot be written." "Run this as root, or with --prefix and a folder of yours."
prefix=$(cd "$prefix" && pwd)

install_packages
say "Building (a first build takes some ten minutes on two cores)"
bazel build "${options[@]}" //tools/install:tree ||
  die "The build failed; the first error stands above." \
    "Packages of a Debian other than 12 may differ: cat /etc/debian_version"
remove_weir "$prefix"
tar -xf bazel-bin/tools/install/tree.tar -C "$prefix" --no-same-owner
say "Installed in $prefix: $(tar -tf bazel-bin/tools/install/tree.tar | wc -l) files," \
  "$(du -ch "$prefix"/lib/libweir{,_exports,_rpc}.a "$prefix"/include/weir "$prefix"/bin/weir{,-serve} | tail -n 1 | cut -f 1)"

cat <<END

A program is compiled by

    g++ -std=c++20 -O2 program.cc \$(pkg-config --cflags --libs weir)

or, with CMake, by find_package(weir REQUIRED) and target_link_libraries(program PRIVATE weir::weir).
END
[ "$prefix" = /usr/local ] || cat <<END
Before that:

    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig CMAKE_PREFIX_PATH=$prefix
END
