#!/usr/bin/env python3
"""Keras and h5py read what weir ckpt writes, and it reads what they write, with equal values.

usage: keras_files_test.py WEIR

Keras 3, tf_keras and h5py are used where they are installed, and reported as skipped where not.
"""

import json
import os
import subprocess
import sys
import tempfile
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"

import numpy as np

import array_files_test as files
from array_files_test import check, read_checkpoint, weir, write_checkpoint

HALF_POLICY = "bfloat16"


def error(*args):
    done = subprocess.run([files.WEIR, "ckpt", *args], capture_output=True, text=True)
    assert done.returncode == 1, (args, done.returncode, done.stdout, done.stderr)
    return done.stderr


def make_model(keras, policy=None):
    """A trained model with state that is not trained, and a second layer of another type."""
    inputs = keras.Input((4,), name="x")
    hidden = keras.layers.Dense(3, name="hidden")(inputs)
    hidden = keras.layers.BatchNormalization(name="norm")(hidden)
    outputs = keras.layers.Dense(2, name="out", **({"dtype": policy} if policy else {}))(hidden)
    model = keras.Model(inputs, outputs)
    model.compile("adam", "mse")
    model.fit(np.ones((4, 4), np.float32), np.ones((4, 2), np.float32), verbose=0)
    return model


def weights_of(model):
    """The weights by their paths in a file of Keras 3: one group a layer, in their order."""
    names = {"hidden": "dense", "norm": "batch_normalization", "out": "dense_1"}
    return {"layers/%s/vars/%d" % (names[layer.name], i): np.asarray(value)
            for layer in model.layers if layer.name in names
            for i, value in enumerate(layer.get_weights())}


def test_keras_weights():
    import keras
    model = make_model(keras, HALF_POLICY)
    want = weights_of(model)
    model.save_weights("w.weights.h5")
    weir("verify", "w.weights.h5")
    weir("convert", "w.weights.h5", "from_h5", "--keep", "^layers/")
    check("weights by Keras", read_checkpoint("from_h5"), want)
    metadata = json.loads(weir("ls", "w.weights.h5", "--metadata", "--json"))
    assert metadata["layers/dense/vars@name"]["value"] == "hidden", metadata

    other = {n: (v.astype(np.float32) + 1).astype(v.dtype) for n, v in want.items()}
    write_checkpoint("other", other)
    weir("convert", "other", "other.weights.h5")
    model.load_weights("other.weights.h5")
    check("weights by Weir", weights_of(model), other)
    weir("convert", "w.weights.h5", "copy.weights.h5")
    model.load_weights("copy.weights.h5")
    check("weights with those of the optimizer", weights_of(model), want)


def test_keras_model():
    import keras
    model = make_model(keras, HALF_POLICY)
    want = weights_of(model)
    model.save("m.keras")
    assert "sound" in weir("verify", "m.keras")
    weir("convert", "m.keras", "from_keras")
    everything = read_checkpoint("from_keras")
    check("model by Keras", {n: everything[n] for n in want}, want)
    assert int(everything["optimizer/vars/0"]) == 1, "the optimizer's step"
    metadata = json.loads(weir("ls", "m.keras", "--metadata", "--json"))
    assert json.loads(metadata["config.json"]["value"])["class_name"] == "Functional"

    other = {n: (v.astype(np.float32) + 1).astype(v.dtype) for n, v in want.items()}
    write_checkpoint("replaced", other)
    weir("convert", "replaced", "replaced.keras", "--like", "m.keras")
    loaded = keras.saving.load_model("replaced.keras", compile=False)
    check("model by Weir", weights_of(loaded), other)
    loaded.predict(np.ones((1, 4)), verbose=0)
    with zipfile.ZipFile("replaced.keras") as mine, zipfile.ZipFile("m.keras") as theirs:
        assert mine.testzip() is None
        assert mine.read("config.json") == theirs.read("config.json")
    weir("cast", "m.keras", "cast.keras", "half")
    loaded = keras.saving.load_model("cast.keras")
    check("cast model", weights_of(loaded),
          {n: v.astype(np.float16).astype(v.dtype) for n, v in want.items()})
    assert loaded.optimizer.iterations.numpy() == 1, "the optimizer's state"


def test_keras_old_model():
    import keras
    model = make_model(keras)
    model.save("old.h5")
    weir("convert", "old.h5", "from_old", "--keep", "^model_weights/", "--rename",
         "^model_weights/[^/]*/=")
    got = read_checkpoint("from_old")
    kernel = model.get_layer("hidden").get_weights()[0]
    check("old model by Keras", {"k": got["hidden/kernel"]}, {"k": kernel})
    weir("convert", "old.h5", "same.h5")
    loaded = keras.saving.load_model("same.h5", compile=False)
    check("old model by Weir", weights_of(loaded), weights_of(model))


def test_tf_keras():
    import tf_keras
    model = make_model(tf_keras)
    want = weights_of(model)
    model.save("t.keras")
    weir("verify", "t.keras")
    weir("convert", "t.keras", "from_tf_keras", "--keep", "^layers/")
    check("model by tf_keras", read_checkpoint("from_tf_keras"), want)
    weir("convert", "t.keras", "t2.keras")
    loaded = tf_keras.models.load_model("t2.keras")
    check("model for tf_keras", weights_of(loaded), want)
    model.save("t.h5")
    weir("convert", "t.h5", "from_tf_h5", "--keep", "hidden/hidden", "--drop", "optimizer")
    kernel, bias = model.get_layer("hidden").get_weights()
    check("old model by tf_keras", read_checkpoint("from_tf_h5"),
          {"model_weights/hidden/hidden/kernel:0": kernel,
           "model_weights/hidden/hidden/bias:0": bias})


def test_h5py():
    import h5py
    import ml_dtypes
    random = np.random.default_rng(3)
    values = {
        "a/f32": random.normal(size=(3, 5, 7)).astype(np.float32),
        "a/f64": random.normal(size=(4,)),
        "a/f16": random.normal(size=(4,)).astype(np.float16),
        "a/bf16": random.normal(size=(4, 2)).astype(ml_dtypes.bfloat16),
        "b/i8": np.arange(-3, 3, dtype=np.int8),
        "b/u16": np.arange(9, dtype=np.uint16),
        "b/u64": np.array([2**64 - 1], np.uint64),
        "bool": np.array([True, False, True]),
        "complex": np.array([1 + 2j, 3 - 4j], np.complex64),
        "empty": np.zeros((0, 4), np.float32),
        "large": random.normal(size=(700, 900)).astype(np.float32),
        "scalar": np.array(7, np.int64),
    }
    write_checkpoint("v", values)
    weir("convert", "v", "mine.h5")
    with h5py.File("mine.h5") as mine:
        got = {n: mine[n][()] for n in values}
        got["a/bf16"] = np.array(mine["a/bf16"], dtype=ml_dtypes.bfloat16)
        check("h5 by Weir", got, values)
        assert mine["a/bf16"].attrs["dtype"] == "bfloat16"

    with h5py.File("theirs.hdf5", "w", libver=("earliest", "v110")) as theirs:
        for name, value in values.items():
            chunked = value.ndim > 0 and value.size > 0 and name != "a/bf16"
            theirs.create_dataset(name, data=value, **(dict(
                chunks=tuple(max(1, n // 3) for n in value.shape), compression="gzip",
                shuffle=True, fletcher32=name != "complex") if chunked else {}))
        theirs["a/bf16"].attrs["dtype"] = "bfloat16"
        theirs["big"] = values["a/f32"].astype(">f4")
    weir("verify", "theirs.hdf5")
    weir("convert", "theirs.hdf5", "from_theirs")
    check("h5 by h5py", read_checkpoint("from_theirs"), {**values, "big": values["a/f32"]})


def test_refused_files():
    import h5py

    def refused(write, *texts):
        with h5py.File("r.h5", "w") as file:
            write(file)
        message = error("ls", "r.h5")
        for text in ("UNIMPLEMENTED",) + texts:
            assert text in message, (message, text)

    refused(lambda f: f.create_dataset("words", data=["a", "b"]), "'words'", "texts")
    refused(lambda f: f.create_dataset("raw", data=np.void(b"abc")), "'raw'", "unknown type")
    refused(lambda f: f.create_dataset("l", (64,), chunks=(8,), compression="lzf", data=range(64)),
            "'l'", "filter")
    refused(lambda f: f.__setitem__("soft", h5py.SoftLink("/x")), "'soft'", "link")
    refused(lambda f: f.__setitem__("far", h5py.ExternalLink("x.h5", "/x")), "'far'", "link")
    refused(lambda f: f.create_dataset("out", (2,), external=[("/etc/passwd", 0, 16)]),
            "'out'", "other files")
    refused(lambda f: f.create_dataset("big", (1 << 26,), np.float32, chunks=(1 << 25,)),
            "'big'", "64 MB")
    layout = h5py.VirtualLayout((4,), np.float32)
    layout[:] = h5py.VirtualSource("x.h5", "x", (4,))
    refused(lambda f: f.create_virtual_dataset("v", layout), "'v'", "other files")
    # A terabyte of which nothing is written.
    with h5py.File("r.h5", "w") as file:
        file.create_dataset("bomb", (1 << 38,), np.float32, chunks=(1 << 20,), compression="gzip")
    assert "would have 1099511627776 bytes" in error("ls", "r.h5")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for test in (test_keras_weights, test_keras_model, test_keras_old_model, test_tf_keras,
                     test_h5py, test_refused_files):
            try:
                test()
                print("%s: passed" % test.__name__)
            except ImportError as missing:
                print("%s: SKIPPED: %s" % (test.__name__, missing))
    print("%d tensors compared" % files.checked)
    return 0 if files.checked > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
