#!/usr/bin/env bash
# examples/digits refuses to train on a device that is not there, says which ones are, and writes nothing.
set -u
digits=$1 data=$2
out=$TEST_TMPDIR/run
text=$("$digits" --data "$data" --dir "$out" --device /gpu:99 2>&1)
status=$?
echo "$text"
[ "$status" -eq 1 ] || { echo "exit status $status, not 1"; exit 1; }
[ ! -e "$out" ] || { echo "it has made $out"; exit 1; }
grep -q -- '--device /gpu:99: no such device; available: .*/device:CPU:0' <<<"$text"
