#!/usr/bin/env bash
# Runs the commands in golden/transcript.txt (the lines that begin with "$ ") and compares their output, and exit statuses
# other than 0, such as "[1]", with the transcript. To update the transcript after a change:
#     bazel build //tools:weir && tests/tools/golden_test.sh --update bazel-bin/tools/weir
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
golden=$here/golden/transcript.txt
update=0
if [ "${1:-}" = --update ]; then update=1; shift; fi
binary=$(realpath "${1:-tools/weir}")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
ln -s "$binary" "$scratch/bin/weir"
cp "$here"/golden/*.pbtxt "$scratch"
actual=$scratch/transcript.out
cd "$scratch" || exit 1
while IFS= read -r command; do
  printf '$ %s\n' "$command"
  PATH=$scratch/bin:$PATH bash -c "$command" 2>&1
  status=$?
  if [ $status -ne 0 ]; then printf '[%d]\n' $status; fi
  printf '\n'
done < <(sed -n 's/^\$ //p' "$golden") >"$actual"

if [ $update = 1 ]; then
  cp "$actual" "$golden"
elif ! diff -u "$golden" "$actual"; then
  echo "The output of weir has changed; if this is intended, run tests/tools/golden_test.sh --update."
  exit 1
fi
