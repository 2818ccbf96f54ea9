#!/usr/bin/env bash
# Installs missing packages, builds everything and runs all tests. The last line counts test cases
# (each TEST of a binary, each script): `N passed, N failed, N skipped`.
#
#   tools/test.sh                                      all tests
#   tools/test.sh //tests/core/...                     some tests
#   tools/test.sh --config=asan //tests/session/...    with Bazel options
source "$(dirname "$0")/setup.sh"

what=("$@")
[[ " $* " == *" //"* ]] || what+=(//...)
# Tests of shared libraries, which need source packages of Debian.
if [ $# = 0 ]; then
  bash tools/fetch_sources.sh && what+=(//tests/shared //tests/python) || say "The shared libraries are not tested."
fi

# Recorded conformance cases, if they are next to the project; tests/tools/case/cases_test.cc runs
# them.
if [ -z "${WEIR_CASES:-}" ] && [ -d ../shared/cases ]; then
  WEIR_CASES=$(cd ../shared/cases && pwd)
  export WEIR_CASES
fi

# The caller's Python, if it has TensorFlow; tests/interop compares with it.
if [ -z "${WEIR_PYTHON:-}" ]; then
  WEIR_PYTHON=$(python3 -c '
import importlib.util, sys
print(sys.executable if importlib.util.find_spec("tensorflow") else "")' 2>/dev/null || true)
  [ -z "$WEIR_PYTHON" ] || export WEIR_PYTHON
fi

install_packages cmake pkgconf # for builds of other projects in tests/examples
say "Building and testing ${what[*]} (the first build takes ten to twenty minutes on two cores)"
# A header that has moved to another library of its folder leaves a link among the old library's
# headers, where compilers find it first. Bazel makes anew those that it needs.
find "$(bazel info output_path 2>/dev/null)" -path '*/_virtual_includes/*' -type l -delete \
  2>/dev/null || true
events=$(mktemp)
trap 'rm -f "$events"' EXIT
status=0
bazel test --keep_going --test_output=errors --test_summary=terse \
  --build_event_json_file="$events" "${what[@]}" || status=$?
say "Done."
python3 tools/test_report.py "$events" "$status"
