#!/usr/bin/env python3
"""Other programs read what weir ckpt writes, and it reads what they write, with equal values.

usage: array_files_test.py WEIR

TensorFlow and NumPy are needed; safetensors and gguf (PyPI) are used where they are installed, and
reported as skipped where not.
"""

import json
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import ml_dtypes  # of TensorFlow
import numpy as np
import tensorflow as tf

WEIR = os.path.abspath(sys.argv[1])
checked = 0


def weir(*args):
    done = subprocess.run([WEIR, "ckpt", *args], capture_output=True, text=True)
    assert done.returncode == 0, (args, done.stdout, done.stderr)
    return done.stdout


def check(what, got, want):
    """Compares dictionaries of arrays."""
    global checked
    assert sorted(got) == sorted(want), (what, sorted(got), sorted(want))
    for name, value in want.items():
        other = np.asarray(got[name])
        assert other.dtype == value.dtype, (what, name, other.dtype, value.dtype)
        assert other.shape == value.shape, (what, name, other.shape, value.shape)
        assert other.tobytes() == value.tobytes(), (what, name)
        checked += 1


def tensors():
    random = np.random.default_rng(1)
    return {
        "conv/kernel": random.normal(size=(3, 3, 4, 64)).astype(np.float32),
        "dense/kernel": random.normal(size=(8, 256)).astype(np.float32),
        "dense/half": random.normal(size=(5,)).astype(np.float16),
        "dense/bf16": random.normal(size=(5, 2)).astype(ml_dtypes.bfloat16),
        "ids": np.arange(-4, 4, dtype=np.int64),
        "step": np.array(7, np.int32),
    }


def write_checkpoint(prefix, values):
    """Writes a V2 checkpoint by TensorFlow."""
    names = sorted(values)
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names),
                      tensors=[tf.constant(values[n]) for n in names])


def read_checkpoint(prefix):
    reader = tf.train.load_checkpoint(prefix)
    return {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}


def test_tensorflow():
    """TensorFlow reads the output of every subcommand that writes."""
    values = tensors()
    write_checkpoint("a", values)
    write_checkpoint("b", {n: v + np.asarray(2, v.dtype) for n, v in values.items()})
    weir("convert", "a", "copy")
    check("convert", read_checkpoint("copy"), values)
    for shards in ("copy.index", "copy.data-00000-of-00001"):
        with open(shards, "rb") as mine, open(shards.replace("copy", "a"), "rb") as theirs:
            assert mine.read() == theirs.read(), "the bytes are not TensorFlow's"
    weir("convert", "a", "old", "--format", "v1", "--convert-types")
    wide = dict(values)
    wide["dense/bf16"] = wide["dense/bf16"].astype(np.float32)
    old = {n: tf.raw_ops.Restore(file_pattern="old", tensor_name=n, dt=v.dtype).numpy()
           for n, v in wide.items()}
    check("v1", old, wide)
    weir("rename", "a", "renamed", "^dense/=layer/")
    check("rename", read_checkpoint("renamed"),
          {n.replace("dense/", "layer/"): v for n, v in values.items()})
    weir("drop", "a", "dropped", "^dense")
    check("drop", read_checkpoint("dropped"),
          {n: v for n, v in values.items() if not n.startswith("dense")})
    weir("cast", "a", "cast", "half")
    floating = (np.float32, np.float16, ml_dtypes.bfloat16)
    check("cast", read_checkpoint("cast"),
          {n: v.astype(np.float16) if v.dtype in floating else v for n, v in values.items()})
    weir("average", "a", "b", "--out", "mean")
    mean = read_checkpoint("mean")
    second = read_checkpoint("b")
    for name, value in values.items():
        want = second[name]
        if value.dtype in floating:
            want = ((value.astype(np.float64) + want.astype(np.float64)) / 2).astype(value.dtype)
        check("average", {name: mean[name]}, {name: want})
    weir("split", "a", "parts", "--part", "dense=^dense", "--rest", "rest")
    check("split", {**read_checkpoint("parts/dense"), **read_checkpoint("parts/rest")}, values)
    weir("merge", "parts/dense", "parts/rest", "--out", "merged")
    check("merge", read_checkpoint("merged"), values)


def test_numpy():
    values = {**tensors(), "größe": np.ones(2, np.float32)}
    write_checkpoint("n", values)
    weir("convert", "n", "a.npz")
    with np.load("a.npz") as arrays:
        got = {n: arrays[n] for n in arrays}
    bits = got.pop("dense/bf16.bf16")
    got["dense/bf16"] = bits.view(ml_dtypes.bfloat16)
    check("npz by Weir", got, values)
    plain = {n: v for n, v in values.items() if n != "dense/bf16"}
    plain["fortran"] = np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3))
    plain["big_endian"] = np.arange(5, dtype=">i4")
    for save in (np.savez, np.savez_compressed):
        save("theirs.npz", **plain)
        weir("convert", "theirs.npz", "from_npz", "--force")
        native = {n: np.ascontiguousarray(v.astype(v.dtype.newbyteorder("="))).reshape(v.shape)
                  for n, v in plain.items()}
        check("npz by NumPy", read_checkpoint("from_npz"), native)


def test_safetensors():
    from safetensors import numpy as safetensors
    values = tensors()
    weir("convert", "a", "a.safetensors")
    check("safetensors by Weir", safetensors.load_file("a.safetensors"), values)
    safetensors.save_file(values, "theirs.safetensors", metadata={"format": "np"})
    weir("convert", "theirs.safetensors", "from_safetensors")
    check("safetensors by safetensors", read_checkpoint("from_safetensors"), values)
    metadata = json.loads(weir("ls", "theirs.safetensors", "--metadata", "--json"))
    assert metadata["format"]["value"] == "np", metadata


def gguf_arrays(path):
    import gguf
    arrays = {}
    for tensor in gguf.GGUFReader(path).tensors:
        plain = {gguf.GGMLQuantizationType.F32: np.float32,
                 gguf.GGMLQuantizationType.F16: np.float16}.get(tensor.tensor_type)
        data = tensor.data if plain else gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        arrays[tensor.name] = data.reshape([int(n) for n in reversed(tensor.shape)])
    return arrays


def test_gguf():
    import gguf
    random = np.random.default_rng(2)
    values = {"a": random.normal(size=(3, 512)).astype(np.float32),
              "b": random.normal(size=(7,)).astype(np.float16)}
    write_checkpoint("g", values)
    weir("convert", "g", "g.gguf")
    check("gguf by Weir", gguf_arrays("g.gguf"), values)
    weir("convert", "g", "q.gguf", "--quantize")
    q8 = gguf.quants.quantize(values["a"], gguf.GGMLQuantizationType.Q8_0)
    mine = next(t for t in gguf.GGUFReader("q.gguf").tensors if t.name == "a")
    check("Q8_0 by Weir", {"a": mine.data}, {"a": q8})

    writer = gguf.GGUFWriter("theirs.gguf", "llama")
    writer.add_uint32("answer", 42)
    writer.add_array("words", ["x", "y"])
    want = {}
    kinds = gguf.GGMLQuantizationType
    for kind in (kinds.F32, kinds.F16, kinds.BF16, kinds.Q8_0, kinds.Q4_0, kinds.Q4_K, kinds.Q6_K):
        name = kind.name.lower()
        if kind in (kinds.Q4_K, kinds.Q6_K):  # gguf only decodes these: random blocks
            _, size = gguf.GGML_QUANT_SIZES[kind]
            raw = random.integers(0, 256, size=(3, 2 * size), dtype=np.uint8)
            for at in ((0, 2) if kind == kinds.Q4_K else (size - 2,)):  # finite scales
                raw[:, at + 1::size] &= 0x3b
        else:
            raw = gguf.quants.quantize(values["a"], kind)
        writer.add_tensor(name, raw, raw_dtype=kind)
        decoded = gguf.quants.dequantize(raw, kind)
        want[name] = decoded.astype({"f16": np.float16, "bf16": ml_dtypes.bfloat16}.get(
            name, np.float32)).reshape(3, 512)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    weir("convert", "theirs.gguf", "from_gguf")
    check("gguf by gguf", read_checkpoint("from_gguf"), want)
    metadata = json.loads(weir("ls", "theirs.gguf", "--metadata", "--json"))
    assert metadata["answer"]["value"] == 42 and metadata["words"]["value"] == ["x", "y"], metadata


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for test in (test_tensorflow, test_numpy, test_safetensors, test_gguf):
            try:
                test()
                print("%s: passed" % test.__name__)
            except ImportError as error:
                print("%s: SKIPPED: %s" % (test.__name__, error))
    print("%d tensors compared" % checked)
    return 0 if checked > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
