#!/usr/bin/env bash
# examples/cluster trains with 2 parameter servers and 3 workers in processes, asynchronously and synchronously, prints
# the progress of each worker and the accuracy, and leaves no process behind, also when it is killed.
set -eu
cluster=$1
dir=${TEST_TMPDIR:-$(mktemp -d)}

# The processes of this program whose arguments contain a text.
processes() { pgrep -f -- "$1" || true; }

check() { # name, arguments
  local name=$1 text
  shift
  text=$("$cluster" --report-every 10 "$@" 2>"$dir/errors") || { cat "$dir/errors"; exit 1; }
  echo "$name: $text"
  for worker in 0 1 2; do
    grep -q "^worker $worker: step [0-9]* of" <<<"$text" || { echo "$name: nothing of worker $worker"; exit 1; }
  done
  local accuracy address
  accuracy=$(sed -n 's/^Accuracy on 360 held-out images after [0-9]* steps: \([0-9]*\).*/\1/p' <<<"$text")
  [ "${accuracy:-0}" -ge 75 ] || { echo "$name: the accuracy is too low"; exit 1; }
  address=$(sed -n "s/.*--cluster='ps|\([^;]*\);.*/\1/p" <<<"$text")
  [ -n "$address" ] && [ -z "$(processes "$address")" ] || { echo "$name: processes are left"; exit 1; }
}

check asynchronous --steps 120 --rate 0.01
check synchronous --sync --steps 60 --rate 0.01
check continued --steps 120 --rate 0.01 --dir "$dir/run"
check continued --steps 150 --rate 0.01 --dir "$dir/run"

# Killed: its processes end with it.
"$cluster" --steps 1000000 >"$dir/killed" &
for _ in {1..200}; do grep -q '^worker' "$dir/killed" && break; sleep 0.1; done
address=$(sed -n "s/.*--cluster='ps|\([^;]*\);.*/\1/p" "$dir/killed")
[ "$(processes "$address" | wc -l)" = 5 ] || { echo "not five processes"; exit 1; }
kill -KILL $!
for _ in {1..100}; do [ -z "$(processes "$address")" ] && exit 0; sleep 0.1; done
echo "processes outlive the one that started them"
exit 1
