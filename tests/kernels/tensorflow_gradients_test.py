#!/usr/bin/env python3
"""Which ops TensorFlow differentiates, as tensorflow_gradients.txt records it for coverage_test.

    tensorflow_gradients_test.py           compares the file with TensorFlow; skipped without one
    tensorflow_gradients_test.py --write   writes the file
"""

import ast
import importlib.util
import inspect
import os
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, "tensorflow_gradients.txt")


def is_none(value):
    """Whether an expression is None, or a list or tuple of it."""
    if isinstance(value, (ast.List, ast.Tuple)):
        return all(is_none(v) for v in value.elts)
    return value is None or isinstance(value, ast.Constant) and value.value is None


def kind_of(function):
    """How a gradient function ends: "zero", "refused", or otherwise ""."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    nodes = list(ast.walk(tree))
    returns = [n.value for n in nodes if isinstance(n, ast.Return)]
    raised = [ast.unparse(n.exc) for n in nodes if isinstance(n, ast.Raise) and n.exc]
    if not returns and any("NotImplementedError" in r for r in raised):
        return "refused"
    return "zero" if returns and all(is_none(v) for v in returns) else ""


def lines_from_tensorflow():
    import tensorflow as tf
    from tensorflow.python.framework import ops

    version = ".".join(tf.__version__.split(".")[:2])
    lines = [
        "# The ops that have a gradient function in TensorFlow %s (ops.gradient_registry, without "
        "those of NotDifferentiable)." % version,
        '# "zero": the function returns None for every input. "refused": it raises '
        "NotImplementedError.",
    ]
    for op in sorted(ops.gradient_registry.list()):
        function = ops.gradient_registry.lookup(op)
        if function is not None:
            lines.append(("%s %s" % (op, kind_of(function))).strip())
    return lines


def main():
    if importlib.util.find_spec("tensorflow") is None:
        print("SKIPPED: this Python has no TensorFlow")
        return 0
    made = lines_from_tensorflow()
    if "--write" in sys.argv:
        with open(FILE, "w", encoding="utf-8") as f:
            f.write("\n".join(made) + "\n")
        return 0
    with open(FILE, encoding="utf-8") as f:
        recorded = f.read().splitlines()
    differences = sorted(set(made) ^ set(recorded))
    for line in differences:
        print(">" if line in made else "<", line)
    print("%d gradients, %d differences" % (len(made) - 2, len(differences)))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
