#!/usr/bin/env python3
"""TensorFlow runs graphs of data sets that Weir has built, and reads the same elements in the same order.

Skipped without TensorFlow.
usage: datasets_test.py WRITE_DATASET_GRAPHS
"""

import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

try:
    import tensorflow as tf
except ImportError as error:
    print("SKIPPED: no TensorFlow to compare with (%s)" % error)
    sys.exit(0)


def write_records(folder):
    for name, first in (("a", 0), ("b", 50)):
        with tf.io.TFRecordWriter(os.path.join(folder, name)) as writer:
            for i in range(first, first + 9):
                writer.write(b"%d" % i)


def read(path):
    """Returns the elements that TensorFlow reads with the graph, each as a list of its numbers."""
    definition = tf.compat.v1.GraphDef()
    with open(path, "rb") as file:
        definition.ParseFromString(file.read())
    elements = []
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        tf.import_graph_def(definition, name="")
        following = graph.get_tensor_by_name("next:0")
        while True:
            try:
                elements.append(session.run(following).ravel().tolist())
            except tf.errors.OutOfRangeError:
                return elements


def main():
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        write_records(folder)
        done = subprocess.run([sys.argv[1], folder], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit("FAIL  %s" % done.stderr)
        ours = {}
        for line in done.stdout.splitlines():
            name, *numbers = line.split()
            ours.setdefault(name, []).append([int(n) for n in numbers])
        for name in ("records", "buckets", "groups", "mixed"):
            theirs = read(os.path.join(folder, name + ".pb"))
            same = bool(theirs) and ours.get(name) == theirs
            faults += not same
            print("%s  %s: %d elements" % ("ok  " if same else "FAIL", name, len(theirs)))
            if not same:
                print("  Weir:       %s\n  TensorFlow: %s" % (ours.get(name), theirs))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
