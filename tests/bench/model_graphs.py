"""What the scripts that write the graphs of W13 to W17 share: how a model is described, written with
TensorFlow's results beside it, and checked."""

import importlib
import os
import subprocess
import sys
import tempfile
from typing import Callable, NamedTuple

import numpy as np

# The script that writes the graphs of each workload. It has `models(small)`, a list of Model.
SCRIPTS = {"W13": "make_gpt2", "W14": "make_ssd", "W15": "make_wide_deep", "W16": "make_images", "W17": "make_low_precision"}


class Model(NamedTuple):
    """A graph and its step, which fetches `fetches` and runs `target` after `init` has run once."""

    name: str  # "w16_images_b32": the workload is W16.images_b32
    build: Callable  # (tf, folder): builds the default graph, or returns a GraphDef
    fetches: list
    feeds: dict = {}  # name: (shape, exclusive bound of integers or 0), as graph_bench feeds them
    init: str = ""
    target: str = ""
    steps: int = 5  # that are compared with TensorFlow's
    tolerance: float = 0  # of a value, relative to the largest one; 0: the same values

    def workload(self):
        return self.name[0].upper() + self.name[1:].replace("_", ".", 1)


def integers(shape, bound):
    """Returns what graph_bench feeds for NAME:SHAPE:BOUND."""
    hashes = np.arange(np.prod(shape), dtype=np.uint64) * np.uint64(2654435761) >> np.uint64(7)
    return (hashes % np.uint64(bound)).astype(np.int32).reshape(shape)


def floats(shape):
    """Returns what graph_bench feeds for NAME:SHAPE to a placeholder of floats."""
    hashes = np.arange(np.prod(shape), dtype=np.uint64) * np.uint64(2654435761) >> np.uint64(8)
    return ((hashes & np.uint64(0xFFFF)).astype(np.float32) / 65536).reshape(shape)


def fed(model):
    """Returns the arrays of a model's feeds by name."""
    return {
        name: integers(shape, bound) if bound else floats(shape)
        for name, (shape, bound) in model.feeds.items()
    }


def models(family, small=False):
    return importlib.import_module(SCRIPTS[family]).models(small)


def arguments(model):
    """Returns the arguments of the suite's program of TensorFlow's C API."""
    words = ["--init=" + model.init] if model.init else []
    words += ["--fetch=" + model.fetches[0]]
    words += ["--target=" + model.target] if model.target else []
    words += ["--feed=%s:%s" % (name, ",".join(map(str, shape))) for name, (shape, _) in model.feeds.items()]
    return words + ["--int-range=%d" % bound for bound in {bound for _, bound in model.feeds.values()} if bound]


def tensorflow():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # The default with VNNI. Without oneDNN, QuantizeV2 gives other values.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    import tensorflow.compat.v1 as tf

    tf.logging.set_verbosity(tf.logging.ERROR)  # of deprecation
    tf.disable_v2_behavior()
    return tf


def frozen(tf, fetches):
    """Returns the default graph with the initial values of its variables as constants."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        definition = session.graph.as_graph_def()
        return tf.graph_util.convert_variables_to_constants(session, definition, fetches)


def imported(tf, path):
    """Returns a session with the graph of a file."""
    definition = tf.GraphDef()
    with open(path, "rb") as file:
        definition.ParseFromString(file.read())
    config = tf.ConfigProto(intra_op_parallelism_threads=2, inter_op_parallelism_threads=2)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
        return tf.Session(graph=graph, config=config)


def write(model, folder):
    """Writes NAME.pb, and NAME.npz with TensorFlow's values of "STEP/FETCH"."""
    tf = tensorflow()
    path = os.path.join(folder, model.name)
    with tf.Graph().as_default() as graph:
        definition = model.build(tf, folder) or graph.as_graph_def()
    with open(path + ".pb", "wb") as file:
        file.write(definition.SerializeToString())
    values = {}
    with imported(tf, path + ".pb") as session:
        if model.init:
            session.run(model.init)
        feeds = {name + ":0": value for name, value in fed(model).items()}
        run = [name + ":0" for name in model.fetches], [model.target] if model.target else []
        for step in range(model.steps):
            for name, value in zip(model.fetches, session.run(run, feeds)[0]):
                values["%d/%s" % (step, name)] = value
    np.savez(path + ".npz", **values)


def write_all(family, folder, small=False):
    """Writes what the folder lacks."""
    os.makedirs(folder, exist_ok=True)
    for model in models(family, small):
        if not os.path.exists(os.path.join(folder, model.name + ".npz")):
            write(model, folder)


def write_in_child(family, folder):
    """Writes what the folder lacks, and returns the memory that it takes: 11 GB for GPT-2."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), SCRIPTS[family] + ".py")
    subprocess.run([sys.executable, script, folder], check=True)


def difference(got, expected):
    """Returns the largest difference, relative to the largest value; infinite for other shapes."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return np.inf
    if np.array_equal(got, expected):
        return 0.0
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    return float(np.max(np.abs(got - expected)) / max(np.max(np.abs(expected)), 1e-30))


def run_weir(model, folder, program):
    """Runs the steps in Weir's tests/interop:run_steps and returns values by "STEP/FETCH"."""
    with tempfile.TemporaryDirectory() as scratch:
        os.symlink(os.path.join(os.path.abspath(folder), model.name + ".pb"), os.path.join(scratch, "graph.pb"))
        lines = ["target %s\nrun" % model.init] if model.init else []
        for name, value in fed(model).items():
            np.save(os.path.join(scratch, name + ".npy"), value)
        for step in range(model.steps):
            lines += ["feed %s %s.npy" % (name, name) for name in model.feeds]
            lines += ["fetch %s %d_%s.npy" % (name, step, name) for name in model.fetches]
            lines += (["target " + model.target] if model.target else []) + ["run"]
        with open(os.path.join(scratch, "steps"), "w") as file:
            file.write("\n".join(lines) + "\n")
        subprocess.run([program, scratch], check=True)
        return {
            "%d/%s" % (step, name): np.load(os.path.join(scratch, "%d_%s.npy" % (step, name)))
            for step in range(model.steps)
            for name in model.fetches
        }


def faults(model, folder, program):
    """Yields a line for each value that differs from TensorFlow's by more than the tolerance."""
    values = run_weir(model, folder, program)
    with np.load(os.path.join(folder, model.name + ".npz")) as expected:
        for key, value in values.items():
            far = difference(value, expected[key])
            if not far <= model.tolerance:
                yield "%s: %s differs from TensorFlow's by %.2g" % (model.name, key, far)


def main(family, description):
    """The scripts' main program: make_NAME.py FOLDER."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(description)
    write_all(family, sys.argv[1])
