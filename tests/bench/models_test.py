#!/usr/bin/env python3
"""Small variants of the workloads W13 to W17 give the same results in Weir and in TensorFlow.

Skipped without TensorFlow.
usage: models_test.py W16 RUN_STEPS [FOLDER]   (tests/interop:run_steps; a folder to keep the graphs in)
"""

import sys
import tempfile

try:
    import model_graphs

    model_graphs.tensorflow()
except ImportError as error:
    print("SKIPPED: no TensorFlow to compare with (%s)" % error)
    sys.exit(0)


def test(family, program, folder):
    model_graphs.write_all(family, folder, small=True)
    found = 0
    for model in model_graphs.models(family, small=True):
        lines = list(model_graphs.faults(model, folder, program))
        print("\n".join(lines or ["ok  " + model.name]), flush=True)
        found += len(lines)
    return found


def main():
    family, program = sys.argv[1:3]
    if len(sys.argv) > 3:
        sys.exit(test(family, program, sys.argv[3]) > 0)
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(test(family, program, folder) > 0)


if __name__ == "__main__":
    main()
