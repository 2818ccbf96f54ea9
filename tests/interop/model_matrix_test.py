#!/usr/bin/env python3
"""Models of many kinds give TensorFlow's values: called, frozen, and exported again.

Each model of model_matrix.py is called by `weir model run`. Each signature is frozen, and the graph runs on Weir and on TensorFlow.
`weir graph export` writes each model again, and TensorFlow calls its signatures.

Skipped without TensorFlow.
usage: model_matrix_test.py WEIR [NAME...]
"""

import json
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

try:
    import keras  # pylint: disable=unused-import
    import model_matrix
    import numpy as np
    import tensorflow as tf
except ImportError as error:
    print("SKIPPED: no TensorFlow to compare with (%s)" % error)
    sys.exit(0)

v1 = tf.compat.v1

TOLERANCE = 1e-5
# TensorFlow rounds sums of bfloat16 products in other places, on processors without instructions for them.
TOLERANCES = {"narrow_floats": 0.01}
# Models whose results need state that a frozen graph does not have: what the error says.
REFUSED = {"counter": "writes to a variable", "generator_state": "uses a variable's handle",
           "keras_flipped_images": "writes to a variable", "tf_keras_flipped_images": "RngReadAndSkip",
           "mutable_tables": "entries, and no node of a GraphDef would fill it again"}


def distance(got, want):
    """The largest difference, relative to the largest value. Infinite where kinds or shapes differ."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return np.inf
    if want.dtype.kind in "OSU":
        plain = [[v if isinstance(v, bytes) else str(v).encode() for v in a.ravel()] for a in (got, want)]
        return 0 if plain[0] == plain[1] else np.inf
    if want.dtype.kind in "biu" or want.size == 0:
        return 0 if np.array_equal(got, want) else np.inf
    return float(np.max(np.abs(got - want)) / max(1, np.max(np.abs(want))))


def tensors(inputs):
    return {name: tf.constant(value) for name, value in inputs.items()}


class Matrix:
    def __init__(self, weir, folder):
        self.weir_path, self.folder, self.faults, self.tolerance = weir, folder, [], TOLERANCE

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def weir(self, *arguments):
        """Returns whether the command succeeds, and what it prints."""
        done = subprocess.run([self.weir_path, *arguments], capture_output=True, text=True)
        return done.returncode == 0, done.stdout if done.returncode == 0 else done.stderr.strip()

    def compare(self, what, got, want):
        for name, value in want.items():
            far = distance(got[name], value) if name in got else np.inf
            if not far <= self.tolerance:
                self.fault("%s: %s is %.2g apart: %s" % (what, name, far, str(got.get(name))[:200] + " for " + str(value)[:200]))

    def fault(self, text):
        self.faults.append(text)
        print("FAIL  " + text, flush=True)

    def value(self, i, value):
        """Writes a value, and returns it as an argument."""
        value = np.asarray(value)
        if value.dtype.kind not in "OSU":
            file = self.path("input%d.npy" % i)
            np.save(file, value)
            return file
        try:
            return json.dumps(np.vectorize(lambda v: v.decode(), otypes=[object])(value).tolist() if value.size else [])
        except UnicodeDecodeError:
            pass
        if value.shape == ():
            file = self.path("input%d.bin" % i)
            with open(file, "wb") as out:
                out.write(value.item())
            return "@" + file
        records = self.path("input%d.tfrecord" % i)
        with tf.io.TFRecordWriter(records) as writer:
            for data in value.ravel():
                writer.write(data)
        return records

    def run(self, what, command, inputs, outputs):
        """Runs a command with feeds and fetches, {name in `outputs`: name of the command}. Returns the values."""
        feeds = [w for i, (name, value) in enumerate(inputs.items()) for w in ("--feed", "%s=%s" % (name, self.value(i, value)))]
        files = {name: self.path("output%d.npy" % i) for i, name in enumerate(outputs)}
        fetches = [w for name, file in files.items() for w in ("--fetch", "%s=%s" % (outputs[name], file))]
        done, text = self.weir(*command, *feeds, *fetches)
        if not done:
            self.fault("%s: %s" % (what, text[:600]))
            return None
        return {name: np.load(file, allow_pickle=True) for name, file in files.items()}

    def wanted(self, model, signature, inputs):
        """TensorFlow's results of the first call."""
        loaded = tf.saved_model.load(model)
        if signature in loaded.signatures:
            return {k: v.numpy() for k, v in loaded.signatures[signature](**tensors(inputs)).items()}
        return {"output_0": getattr(loaded, signature)(*tensors(inputs).values()).numpy()}

    def check(self, name, make):
        model, self.tolerance = self.path(name), TOLERANCES.get(name, TOLERANCE)
        calls = make(model)
        for i, (signature, inputs) in enumerate(calls):
            want = self.wanted(model, signature, inputs)
            got = self.run(name, ["model", "run", model, "--signature", signature], inputs, {n: n for n in want})
            if got is not None:
                self.compare("%s %s" % (name, signature), got, want)
            if i == 0 or signature != calls[i - 1][0]:
                self.frozen(name, model, signature, inputs, want)
        self.exported(name, model, calls)

    def frozen(self, name, model, signature, inputs, want):
        shown = json.loads(self.weir("model", "show", model, "--json")[1])
        found = [s for s in shown["signatures"] if s["name"] == signature]
        if not found:
            return
        inputs_of, names = ({t["name"]: t["tensor"] for t in found[0][kind]} for kind in ("inputs", "outputs"))
        init = ["--target", shown["init_op"]] if shown["init_op"] and name not in REFUSED else []
        file = self.path(name + ".pb")
        done, text = self.weir("graph", "freeze", model, "--signature", signature, *init, "-o", file)
        if name in REFUSED:
            if done or REFUSED[name] not in text:
                self.fault("freeze %s: %s" % (name, text[:600]))
            return
        if not done:
            return self.fault("freeze %s: %s" % (name, text[:600]))
        feeds = {inputs_of[n]: v for n, v in inputs.items()}
        run_init = ["--init", shown["init_op"]] if init else []
        got = self.run("frozen " + name, ["run", file, *run_init], feeds, {n: names[n] for n in want})
        if got is not None:
            self.compare("frozen " + name, got, want)
        graph = v1.GraphDef()
        with open(file, "rb") as data:
            graph.ParseFromString(data.read())
        try:
            with tf.Graph().as_default(), v1.Session() as session:
                tf.import_graph_def(graph, name="")
                if init:
                    session.run(shown["init_op"])
                got = dict(zip(want, session.run([names[n] for n in want], feeds)))
        except Exception as error:  # pylint: disable=broad-except
            return self.fault("TensorFlow on frozen %s: %s" % (name, str(error)[:600]))
        self.compare("TensorFlow on frozen " + name, got, want)

    def exported(self, name, model, calls):
        copy = self.path(name + "_exported")
        done, text = self.weir("graph", "export", model, "-o", copy)
        if not done:
            return self.fault("export %s: %s" % (name, text[:600]))
        for signature, inputs in calls:
            want = self.wanted(model, signature, inputs)
            try:
                loaded = tf.saved_model.load(copy)
                if signature not in loaded.signatures:
                    return
                got = {k: v.numpy() for k, v in loaded.signatures[signature](**tensors(inputs)).items()}
            except Exception as error:  # pylint: disable=broad-except
                return self.fault("TensorFlow on exported %s: %s" % (name, str(error)[:600]))
            self.compare("TensorFlow on exported " + name, got, want)


def main():
    models = model_matrix.all_models()
    names = sys.argv[2:] or list(models)
    with tempfile.TemporaryDirectory() as folder:
        matrix = Matrix(os.path.abspath(sys.argv[1]), folder)
        for name in names:
            before = len(matrix.faults)
            matrix.check(name, models[name])
            print("%s  %s" % ("ok  " if len(matrix.faults) == before else "FAIL", name), flush=True)
        print("%d models, %d faults" % (len(names), len(matrix.faults)))
        return bool(matrix.faults)


if __name__ == "__main__":
    sys.exit(main())
