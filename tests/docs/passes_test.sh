#!/usr/bin/env bash
# docs/PASSES.md is what `weir passes --markdown` prints.
#   passes_test.sh WEIR PASSES.md
set -eu
if ! "$1" passes --markdown | diff "$2" -; then
  echo "The table of passes has changed: run bazel-bin/tools/weir passes --markdown >docs/PASSES.md"
  exit 1
fi
