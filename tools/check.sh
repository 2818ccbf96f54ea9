#!/usr/bin/env bash
# Runs all checks for a change: format, layering, wire formats, static analysis, tests, sanitizers.
# Prints PASS, FAIL or SKIP for each check and a summary; exits 1 if a check failed.
#
#   tools/check.sh                 all checks (the sanitizers rebuild everything: up to two hours,
#                                  and 40 GB of disk)
#   tools/check.sh format tests    some checks: format layering wire threads tidy tests asan tsan
source "$(dirname "$0")/setup.sh"

step_format() {
  git ls-files -z -- '*.h' '*.cc' '*.cu' | xargs -0 -r clang-format --dry-run --Werror
}
step_layering() { python3 tests/layering_test.py; }
step_wire() { python3 tests/proto/descriptor_check.py; }
# Clang's thread-safety analysis of the folders whose locks are annotated: core/tensor/mutex.h.
step_threads() {
  tools/compile_commands.sh && python3 tools/clang_checks.py threads core session serving rpc
}
# Takes several seconds per source.
step_tidy() {
  tools/compile_commands.sh && python3 tools/clang_checks.py tidy core ops kernels session serving rpc tools
}
step_tests() { tools/test.sh; }
# One build for the address sanitizer and the undefined-behavior sanitizer.
step_asan() { tools/test.sh --config=asan --config=ubsan //tests/...; }
step_tsan() { tools/test.sh --config=tsan //tests/core/... //tests/session/...; }

steps=("$@")
[ $# -gt 0 ] || steps=(format layering wire threads tidy tests asan tsan)
for step in "${steps[@]}"; do
  declare -F "step_$step" >/dev/null || die "Unknown check $step." "$(sed -n 7p tools/check.sh)"
done

install_packages clang clang-format clang-tidy
summary=()
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for step in "${steps[@]}"; do
  say "== $step"
  started=$SECONDS
  verdict=PASS
  "step_$step" 2>&1 | tee "$log" || verdict=FAIL
  if [ $verdict = FAIL ]; then failed=1; elif grep -q '^SKIP' "$log"; then verdict=SKIP; fi
  say "$verdict $step"
  summary+=("$(printf '%-4s  %-9s %4d s  %s' "$verdict" "$step" $((SECONDS - started)) \
    "$(tail -n 1 "$log")")")
done
printf '\n'
printf '%s\n' "${summary[@]}"
exit $failed
