#!/usr/bin/env bash
# Netron opens the plans that `weir passes --dump-plan` writes after each pass.
#   netron_test.sh WEIR NETRON_OPEN GRAPH...      (graphs of one folder)
# Skipped without node, or without the Python package netron, whose parsers node runs.
set -euo pipefail
weir=$(realpath "$1") open=$(realpath "$2") graphs=$(dirname "$(realpath "$3")")

command -v node >/dev/null || {
  echo "SKIPPED: node is not installed"
  exit 0
}
netron=$("${WEIR_PYTHON:-python3}" -c 'import netron, os; print(os.path.dirname(netron.__file__))' \
  2>/dev/null) || {
  echo "SKIPPED: the Python package netron is not installed"
  exit 0
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Dumps the plans of a step: NAME ARGUMENTS...
check() {
  local name=$1
  shift
  "$weir" passes "$graphs/$name.pbtxt" "$@" --dump-plan "$folder/$name" >/dev/null
  node "$open" "$netron" "$name"/*.pb >"$name.txt"
  local plans opened
  plans=$(find "$name" -name '*.pb' | wc -l)
  opened=$(grep -c 'TensorFlow Graph, [1-9][0-9]* nodes' "$name.txt")
  echo "$name: Netron opens $opened of $plans plans"
  [ "$plans" -ge 30 ] && [ "$plans" = "$opened" ]
}

row='[1,2,3,4,5,6]'
check training_mlp_adam_res --init init --feed "x:0=[$row,$row,$row,$row,$row,$row,$row,$row]" \
  --feed 'labels:0=[0,1,2,0,1,2,0,1]' --target Adam
check flow_cond_in_cond_res --feed p:0=true --feed q:0=false --feed x:0=2 --fetch outer/Merge:0
check flow_while_nested_res --init v/Assign --fetch outer/Exit_1:0
