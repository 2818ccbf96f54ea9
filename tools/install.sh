#!/usr/bin/env bash
# Installs missing packages, builds Weir, and installs it for use in other projects: static
# libraries, headers, the tools `weir` and `weir-serve` with their manual page and completions for
# bash, zsh and fish, and the files through which pkg-config and CMake find the libraries.
# examples/own_project is such a project.
#
#   tools/install.sh                      to /usr/local, as root
#   tools/install.sh --prefix ~/weir      to another folder, which may be moved later
#   tools/install.sh --shared             also the shared library; compiles Abseil and protobuf for it
#   tools/install.sh --config=cuda        passes other options to Bazel: here, with GPU kernels
#
# Replaces an older Weir under the same prefix. To uninstall: tools/install.sh --remove [--prefix ...]
from=$PWD
source "$(dirname "$0")/setup.sh"

prefix=/usr/local
remove=0
trees=(tree)
options=()
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=${2:?--prefix needs a folder}; shift ;;
    --prefix=*) prefix=${1#*=} ;;
    --remove) remove=1 ;;
    --shared) trees+=(shared) ;;
    -h | --help) sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "$0"; exit ;;
    *) options+=("$1") ;;
  esac
  shift
done
case $prefix in
  /*) ;;
  "~"/*) prefix=$HOME/${prefix#"~/"} ;; # --prefix=~/weir, which the shell does not expand
  *) prefix=$from/$prefix ;;
esac

# Removes all files of Weir under a prefix, and nothing else.
remove_weir() {
  rm -rf "$1"/include/weir "$1"/lib/cmake/weir "$1"/lib/cmake/weir_rpc
  rm -f "$1"/bin/weir "$1"/bin/weir-serve "$1"/lib/libweir{,_exports,_rpc}.a "$1"/lib/libweir.so* \
    "$1"/lib/pkgconfig/weir{,-shared,_rpc}.pc "$1"/share/man/man1/weir.1 \
    "$1"/share/bash-completion/completions/weir "$1"/share/zsh/site-functions/_weir \
    "$1"/share/fish/vendor_completions.d/weir.fish
}

if [ "$remove" = 1 ]; then
  remove_weir "$prefix"
  say "Removed from $prefix."
  exit
fi

mkdir -p "$prefix" && [ -w "$prefix" ] ||
  die "$prefix is not writable." "Run this script as root, or with --prefix and your own folder."
prefix=$(cd "$prefix" && pwd)

install_packages
[ "${#trees[@]}" = 1 ] || bash tools/fetch_sources.sh
say "Building (the first build takes about ten minutes on two cores)"
bazel build "${options[@]}" "${trees[@]/#///tools/install:}" ||
  die "The build failed; see the first error above." \
    "Debian releases other than 12 may have different packages: cat /etc/debian_version"
remove_weir "$prefix"
for tree in "${trees[@]}"; do
  tar -xf "bazel-bin/tools/install/$tree.tar" -C "$prefix" --no-same-owner
done
say "Installed in $prefix:" \
  "$(for t in "${trees[@]}"; do tar -tf "bazel-bin/tools/install/$t.tar"; done | wc -l) files," \
  "$(du -ch "$prefix"/lib/libweir* "$prefix"/include/weir "$prefix"/bin/weir{,-serve} | tail -n 1 | cut -f 1)"

cat <<END

Compile a program with

    g++ -std=c++20 -O2 program.cc \$(pkg-config --cflags --libs weir)

or, in CMake, use find_package(weir REQUIRED) and target_link_libraries(program PRIVATE weir::weir).
END
[ "$prefix" = /usr/local ] || cat <<END
First run:

    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig CMAKE_PREFIX_PATH=$prefix

The tools are in $prefix/bin. Shells find their completions after

    export XDG_DATA_DIRS=$prefix/share:\${XDG_DATA_DIRS:-/usr/local/share:/usr/share}   # bash, fish
    fpath+=($prefix/share/zsh/site-functions)                    # zsh, before compinit
END
