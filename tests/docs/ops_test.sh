#!/usr/bin/env bash
# docs/ops.md is what `weir ops --missing --markdown` prints.
#   ops_test.sh WEIR ops.md
set -eu
if ! "$1" ops --missing --markdown | diff "$2" -; then
  echo "The table of ops has changed: run bazel-bin/tools/weir ops --missing --markdown >docs/ops.md"
  exit 1
fi
