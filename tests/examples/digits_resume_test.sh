#!/usr/bin/env bash
# examples/digits, killed at random moments and resumed, ends with the bits of a run that was not
# killed: its dropout goes on, and so does its order of images. WEIR_KILLS is the number of kills;
# default 4.
set -eu
digits=$(realpath "$1") data=$(realpath "$2")
kills=${WEIR_KILLS:-4}
cd "${TEST_TMPDIR:-$(mktemp -d)}"
train() { exec "$digits" --data "$data" --epochs 2 --save-every 3 "$@" >>log 2>&1; }

rm -rf whole killed
start=$(date +%s%N)
(train --dir whole)
took_ms=$((($(date +%s%N) - start) / 1000000))
killed=0 ended=0
while [ "$killed" -lt "$kills" ] || [ "$ended" -eq 0 ]; do
  [ "$ended" -eq 0 ] || rm -rf killed
  ended=0
  resume=()
  [ ! -e killed/checkpoint ] || resume=(--resume)
  (train --dir killed "${resume[@]}") &
  child=$!
  if [ "$killed" -lt "$kills" ]; then
    ms=$((RANDOM % took_ms))
    sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
    kill -KILL "$child" 2>/dev/null || true
  fi
  status=0
  wait "$child" 2>/dev/null || status=$?
  if [ "$status" -eq 137 ]; then
    killed=$((killed + 1))
    continue
  fi
  [ "$status" -eq 0 ] || { tail -n 20 log; exit 1; }
  ended=1
  for file in index data-00000-of-00001; do
    for whole in whole/model-*."$file"; do
      cmp "$whole" "killed/$(basename "$whole")" || { echo "after $killed kills"; exit 1; }
    done
  done
done
if grep -n warning log; then exit 1; fi
echo "$killed kills"
