#!/usr/bin/env bash
# Writes cmake/sources.cmake, the sources that CMake compiles, from the BUILD files. To be run after
# a change to them, and after sources are added, moved or removed.
source "$(dirname "$0")/setup.sh"

install_packages
list=$(bazel cquery //tools/install:cmake_sources --output=starlark --starlark:expr \
  'providers(target)["//tools/install:cmake_sources.bzl%CMakeSources"].text')
printf '%s\n' "$list" >cmake/sources.cmake
say "Wrote cmake/sources.cmake: $(grep -c '\.cc' cmake/sources.cmake) sources."
