#!/usr/bin/env bash
# The list of sources for CMake that is checked in is the one of Bazel's BUILD files.
#   cmake_sources_test.sh LIST cmake/sources.cmake [CONFIGURATION whose sources are others]
set -eu
if [ $# -gt 2 ]; then
  echo "SKIPPED: CMake builds Weir as without --config=$3"
  exit
fi
diff "$2" "$1" || {
  echo "cmake/sources.cmake is out of date: run tools/cmake_sources.sh"
  exit 1
}
