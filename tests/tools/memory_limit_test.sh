#!/usr/bin/env bash
# A command that runs out of memory reports this and exits with status 1; it does not abort.
set -u
weir=$(realpath "${1:-tools/weir}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
graph=$scratch/graph.pbtxt
for ((i = 0; i < 150000; ++i)); do
  printf 'node { name: "a_layer_with_a_name_of_some_length_%d" op: "NoOp" }\n' $i
done >"$graph"

failed=0 exhausted=0
for megabytes in $(seq 60 8 220); do
  for command in show ops; do
    (ulimit -v $((megabytes * 1024)) && "$weir" graph $command "$graph") >/dev/null 2>"$scratch/err"
    status=$?
    if [ $status -eq 1 ] && grep -q RESOURCE_EXHAUSTED "$scratch/err"; then
      exhausted=$((exhausted + 1))
    elif [ $status -ne 0 ] && ! grep -q 'error while loading' "$scratch/err"; then
      echo "weir graph $command with $megabytes MB: status $status"
      head -5 "$scratch/err"
      failed=1
    fi
  done
done
[ $exhausted -gt 0 ] || { echo "no limit was too small"; failed=1; }
exit $failed
