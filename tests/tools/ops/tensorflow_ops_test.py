#!/usr/bin/env python3
"""The ops that TensorFlow runs on a CPU, as tools/ops/tensorflow_ops.txt records them.

    tensorflow_ops_test.py           compares the file with TensorFlow; skipped without one
    tensorflow_ops_test.py --write   writes the file
"""

import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
FILE = os.path.join(HERE, "../../../tools/ops/tensorflow_ops.txt")


def lines_from_tensorflow():
    import tensorflow as tf
    from tensorflow.python.framework import kernels, op_def_registry

    version = ".".join(tf.__version__.split(".")[:2])
    names = {k.op for k in kernels.get_all_registered_kernels().kernel if k.device_type == "CPU"}
    foreign = ("_", "Xla", "TPU", "Mkl")
    names = {n for n in names if not n.startswith(foreign) and op_def_registry.get(n) is not None}
    return [
        "# The ops with CPU kernels in TensorFlow %s, without those of MKL, XLA and TPUs and names that begin" % version,
        "# with an underscore. Written by tests/tools/ops/tensorflow_ops_test.py --write.",
    ] + sorted(names)


def main():
    if importlib.util.find_spec("tensorflow") is None:
        print("SKIP: no TensorFlow in this Python")
        return 0
    lines = lines_from_tensorflow()
    if "--write" in sys.argv:
        with open(FILE, "w") as f:
            f.write("\n".join(lines) + "\n")
        return 0
    with open(FILE) as f:
        recorded = f.read().splitlines()
    for sign, some, others in (("-", recorded, lines), ("+", lines, recorded)):
        for line in sorted(set(some) - set(others)):
            print(sign + line)
    return 0 if recorded == lines else 1


if __name__ == "__main__":
    sys.exit(main())
