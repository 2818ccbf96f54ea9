#!/usr/bin/env bash
# Runs a script with the Python that has TensorFlow, if WEIR_PYTHON names one (tools/test.sh does).
exec "${WEIR_PYTHON:-python3}" "$@"
