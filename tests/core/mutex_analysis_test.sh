#!/usr/bin/env bash
# Clang's thread-safety analysis understands the locks of core/tensor/mutex.h: see
# mutex_analysis.cc.
set -eu
header=$(realpath "${1:-core/tensor/mutex.h}")
source=$(realpath "${2:-tests/core/tensor/mutex_analysis.cc}")
command -v clang++ >/dev/null || {
  echo "SKIPPED: clang++ is not installed"
  exit 0
}
include=$(mktemp -d)
trap 'rm -rf "$include"' EXIT
mkdir -p "$include/weir/core/tensor"
ln -s "$header" "$include/weir/core/tensor/mutex.h"
clang++ -std=c++20 -fsyntax-only -I"$include" -Wthread-safety -Xclang -verify "$source"
