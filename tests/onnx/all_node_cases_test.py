#!/usr/bin/env python3
"""Runs all node tests of onnx.backend.test, which PyPI's onnx generates.

  all_node_cases_test.py RUN_NODE_CASES

Says SKIP and passes in a Python without onnx. Fails if a result is wrong; the last line counts the
cases that passed and those that need what is not imported.
"""

import os
import re
import subprocess
import sys
import tempfile
import warnings

# With a mask of NumPy's random numbers, which no other program draws.
RANDOM = {"test_training_dropout", "test_training_dropout_default",
          "test_training_dropout_default_mask", "test_training_dropout_mask"}


def serialized(value, info):
    from onnx import TensorProto, numpy_helper
    if isinstance(value, TensorProto):
        return value.SerializeToString()
    kinds = {"sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional,
             "map_type": numpy_helper.from_dict}
    make = kinds.get(info.type.WhichOneof("value"), numpy_helper.from_array)
    return make(value, info.name).SerializeToString()


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def write_cases(folder):
    from onnx.backend.test.loader import load_model_tests
    for case in load_model_tests(kind="node"):
        write("%s/%s/model.onnx" % (folder, case.name), case.model.SerializeToString())
        inputs, outputs = case.data_sets[0]
        graph = case.model.graph
        for kind, values, infos in (("input", inputs, graph.input),
                                    ("output", outputs, graph.output)):
            for i, value in enumerate(values):
                write("%s/%s/test_data_set_0/%s_%d.pb" % (folder, case.name, kind, i),
                      serialized(value, infos[i]))


def main():
    try:
        import onnx
    except ImportError:
        print("SKIP: no onnx in %s" % sys.executable)
        return 0
    warnings.filterwarnings("ignore")
    print("onnx %s" % onnx.__version__)
    with tempfile.TemporaryDirectory() as folder:
        write_cases(folder)
        run = subprocess.run([sys.argv[1], folder], stdout=subprocess.PIPE, text=True, check=False)
    lines = run.stdout.splitlines()
    failed = [re.match(r"FAIL (\S+?):", line)[1] for line in lines if line.startswith("FAIL ")]
    wrong = sorted(set(failed) - RANDOM)
    if run.returncode not in (0, 1) or not lines:
        print("the cases ended with %d" % run.returncode)
        return 1
    print("\n".join(line for line in lines if any(line.startswith("FAIL %s:" % w) for w in wrong)))
    print(lines[-1])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
