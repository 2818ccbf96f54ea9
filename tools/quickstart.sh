#!/usr/bin/env bash
# Installs missing packages, builds Weir, and trains a convolutional net on handwritten digits.
# Arguments are passed to the example: tools/quickstart.sh --evaluate
source "$(dirname "$0")/setup.sh"

readonly MAIN_JOB=bazel-bin/examples/digits/digits

install_packages
say "Building (the first build takes about ten minutes on two cores)"
bazel build //examples/... //tools/... ||
  die "The build failed; see the first error above." \
    "Debian releases other than 12 may have different packages: cat /etc/debian_version"
say "Running $MAIN_JOB $*"
exec "$MAIN_JOB" "$@"
