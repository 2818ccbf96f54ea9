#!/usr/bin/env bash
# Clang's thread-safety analysis understands the locks of core/tensor/mutex.h: see
# mutex_analysis.cc.
set -eu
source=$(realpath "${1:-tests/core/tensor/mutex_analysis.cc}")
[ $# -gt 1 ] || set -- "$source" core/tensor/{api,mutex}.h
shift
command -v clang++ >/dev/null || {
  echo "SKIPPED: clang++ is not installed"
  exit 0
}
include=$(mktemp -d)
trap 'rm -rf "$include"' EXIT
mkdir -p "$include/weir/core/tensor"
for header; do
  ln -s "$(realpath "$header")" "$include/weir/core/tensor/"
done
clang++ -std=c++20 -fsyntax-only -I"$include" -Wthread-safety -Xclang -verify "$source"
