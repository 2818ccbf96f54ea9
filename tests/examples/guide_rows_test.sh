#!/usr/bin/env bash
# A program built with an installed Weir runs the rows of the guides to variables (guide_rows.h).
#   guide_rows_test.sh TREE.tar guide_rows*.cc guide_rows.h
set -eu
tree=$1
shift
if ! command -v pkg-config >/dev/null; then
  echo "SKIPPED: there is no pkg-config"
  exit
fi
work=$(cd "${TEST_TMPDIR:-$(mktemp -d)}" && pwd)
tar -xf "$tree" -C "$work" include lib
cp "$@" "$work" # outside Weir's source tree
cd "$work"
if nm -C lib/libweir.a 2>/dev/null | grep -qE '__(asan|tsan|ubsan)_'; then
  echo "SKIPPED: the library is built with a sanitizer"
  exit
fi
export PKG_CONFIG_PATH=$work/lib/pkgconfig
# shellcheck disable=SC2046
g++ -std=c++20 -Wall -Wextra -Wpedantic -Werror guide_rows*.cc $(pkg-config --cflags --libs weir) -o guide_rows
./guide_rows "$work"
