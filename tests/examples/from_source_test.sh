#!/usr/bin/env bash
# Builds examples/from_source, a project that builds Weir as a part of itself.
#   from_source_test.sh cmake                 configures everything, and builds two small libraries
#   from_source_test.sh bazel                 analyzes everything
#   from_source_test.sh cmake|bazel --full    builds all that the program needs, and runs it; takes as
#                                             long as the first build of Weir
set -eu
by=$1 full=${2:-}
root=$(cd "$(dirname "$(realpath "$0")")/../.." && pwd)
work=${TEST_TMPDIR:-$(mktemp -d)}
if ! command -v "$by" >/dev/null; then
  echo "SKIPPED: there is no $by"
  exit
fi

with_cmake() {
  cmake -S "$root/examples/from_source" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
    -DWEIR_SOURCE="$root" -DWEIR_RPC=ON -DWEIR_CAPI=ON -DWEIR_TOOLS=ON -DWEIR_INSTALL=ON
  build() { cmake --build "$work/build" -j "$(nproc)" --target "$@"; }
  build weir_core_file weir_proto_snapshot_proto weir_core_generate_version_headers
  grep -q "define WEIR_VERSION \"$(cat "$root/VERSION")\"" \
    "$work/build/weir/generated/weir/core/tensor/version.h"
  # The objects are position-independent, and what no public header declares is hidden.
  find "$work/build" -path '*weir_core_file.dir*.o' -print0 |
    xargs -0 g++ -shared -o "$work/file.so"
  nm -DC --defined-only "$work/file.so" >"$work/symbols"
  grep -q ' weir::JoinPath' "$work/symbols"
  if grep ' weir::ExtendCrc32c' "$work/symbols"; then exit 1; fi
  [ -z "$full" ] || { build program && "$work/build/program" | tee "$work/said"; }
}

with_bazel() {
  cp -R "$root/examples/from_source" "$work/project"
  cd "$work/project"
  sed -i "s|path = \"../..\"|path = \"$root\"|" WORKSPACE
  sed -i "s|%workspace%/../..|$root|" .bazelrc
  run() { bazel --output_user_root="$work/bazel" "$1" --color=no --curses=no "${@:2}"; }
  trap 'run shutdown' EXIT
  run cquery 'deps(//:program + @weir//:rpc + @weir//:capi)' --output=label >"$work/labels"
  grep -q '^@weir//session:session ' "$work/labels"
  [ -z "$full" ] || run run //:program | tee "$work/said"
}

"with_$by"
[ -z "$full" ] || grep -qxF 'y = 2.00 x + 1.00' "$work/said"
