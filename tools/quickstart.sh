#!/usr/bin/env bash
# Installs what is missing, builds, and trains a convolutional net on handwritten digits.
# Arguments go to the example: tools/quickstart.sh --evaluate
source "$(dirname "$0")/setup.sh"

readonly MAIN_JOB=bazel-bin/examples/digits/digits

install_packages
say "Building (a first build takes some ten minutes on two cores)"
bazel build //examples/... //tools/... ||
  die "The build failed; the first error stands above." \
    "Packages of a Debian other than 12 may differ: cat /etc/debian_version"
say "Running $MAIN_JOB $*"
exec "$MAIN_JOB" "$@"
