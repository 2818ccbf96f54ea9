#!/usr/bin/env bash
# Builds programs in a separate project with the installed shared library, with pkg-config or CMake and all warnings as
# errors, and runs them; with pkg-config also a program that uses each public header.
#   own_project_test.sh (pkg-config|cmake) TREE.tar SHARED.tar FILES
set -eu
by=$1 tree=$2 shared=$3
shift 3
if ! command -v "$by" >/dev/null; then
  echo "SKIPPED: there is no $by"
  exit
fi
work=$(cd "${TEST_TMPDIR:-$(mktemp -d)}" && pwd)
mkdir "$work/weir" "$work/project"
tar -xf "$tree" -C "$work/weir"
tar -xf "$shared" -C "$work/weir"
cp "$@" "$work/project"
cd "$work/project"

warnings='-Wall -Wextra -Wpedantic -Werror'
case $by in
  pkg-config)
    rm "$work"/weir/lib/*.a
    export PKG_CONFIG_PATH=$work/weir/lib/pkgconfig
    # shellcheck disable=SC2046,SC2086
    build() { g++ -std=c++20 $warnings "$@" $(pkg-config --cflags --libs weir-shared) -Wl,-rpath,"$work/weir/lib"; }
    build snake.cc -o snake
    # Servers and messages are not in the shared library.
    build -DWEIR_SHARED header_uses.cc -o header_uses
    ./header_uses >uses
    [ "$(wc -l <uses)" -gt 100 ]
    ;;
  cmake)
    cmake -S . -B build -DCMAKE_PREFIX_PATH="$work/weir" -DCMAKE_CXX_FLAGS="$warnings" -DBUILD_SHARED_LIBS=ON
    cmake --build build
    mv build/snake snake
    # It is the static library without that option, and an error if the shared one is requested and absent.
    cmake -S . -B static -DCMAKE_PREFIX_PATH="$work/weir" >/dev/null
    cmake --build static
    ! readelf -d static/snake | grep -q libweir
    rm "$work"/weir/lib/libweir.so*
    sed -i 's/find_package(weir .*)/find_package(weir REQUIRED COMPONENTS shared)/' CMakeLists.txt
    ! cmake -S . -B absent -DCMAKE_PREFIX_PATH="$work/weir" 2>refused
    tr -s ' \n' ' ' <refused | grep -q 'libweir.so is not installed'
    tar -xf "$shared" -C "$work/weir" 2>/dev/null || tar -xf "$OLDPWD/$shared" -C "$work/weir"
    ;;
esac

readelf -d snake | grep -q 'NEEDED.*\[libweir.so.1\]'
LD_LIBRARY_PATH=$work/weir/lib ./snake . | tee said
grep -qE '^restored from ./snake: (0.9[0-9]|1.0[0-9]) at 0.5' said
