#!/usr/bin/env bash
# Runs a test of the Python package with the shared library.
#   run_test.sh TEST.py LIBRARY
# Says so and passes where Python has no NumPy; WEIR_PYTHON names another Python than python3.
set -eu
python=${WEIR_PYTHON:-python3}
"$python" -c 'import numpy' 2>/dev/null || {
  echo "SKIPPED: $python has no NumPy"
  exit
}
WEIR_LIBRARY=$(realpath "$2") exec "$python" -B "$1"
