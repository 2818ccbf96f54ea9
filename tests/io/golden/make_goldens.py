#!/usr/bin/env python3
"""Writes the checkpoints in this folder with TensorFlow (2.21 was used): python3 make_goldens.py

tests/io/bundle_golden_test.cc writes the same tensors with Weir and expects the same bytes. Element j of a tensor with
seed k is made of bytes (31 * j + 17 * k + 1) % 128, j counting bytes; see `plain` for the exceptions.
"""

import os
import pathlib
import shutil
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent

NUMPY = {
    "float": np.float32, "double": np.float64, "int32": np.int32, "uint8": np.uint8, "int16": np.int16,
    "int8": np.int8, "complex64": np.complex64, "int64": np.int64, "uint16": np.uint16, "complex128": np.complex128,
    "half": np.float16, "uint32": np.uint32, "uint64": np.uint64, "bfloat16": ml_dtypes.bfloat16,
    "float8_e5m2": ml_dtypes.float8_e5m2, "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
}
QUANTIZED = {"qint8": np.int8, "quint8": np.uint8, "qint32": np.int32, "qint16": np.int16, "quint16": np.uint16}


def crc32c(data):
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ table[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def plain(dtype, shape, seed):
    n = int(np.prod(shape, dtype=np.int64))
    if dtype == "bool":
        return tf.constant(np.arange(n) % 2 == 1, shape=shape)
    if dtype in ("int4", "uint4"):
        low = -8 if dtype == "int4" else 0
        return tf.constant((np.arange(n) % 16 + low).astype(getattr(ml_dtypes, dtype)).reshape(shape))
    numpy = np.dtype(NUMPY.get(dtype) or QUANTIZED[dtype])
    raw = ((31 * np.arange(n * numpy.itemsize) + 17 * seed + 1) % 128).astype(np.uint8)
    value = raw.view(numpy).reshape(shape)
    if dtype in QUANTIZED:
        return tf.bitcast(tf.constant(value), getattr(tf, dtype))
    return tf.constant(value)


def strings(shape, seed):
    n = int(np.prod(shape, dtype=np.int64))
    return tf.constant([b"s%d\x00" % seed * ((i * 37) % 200) for i in range(n)], shape=shape, dtype=tf.string)


def save(prefix, rows):
    """rows: (name, shape_and_slice, tensor), in order of names."""
    names, slices, tensors = zip(*rows)
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=slices, tensors=tensors)


def all_dtypes():
    rows = []
    for seed, dtype in enumerate(sorted(list(NUMPY) + list(QUANTIZED) + ["bool", "int4", "uint4"])):
        for shape in ([], [0, 3], [2, 3]):
            rows.append(("t/%s/%s" % (dtype, "x".join(map(str, shape))), "", plain(dtype, shape, seed)))
    for shape in ([], [0], [5, 2]):
        rows.append(("t/string/%s" % "x".join(map(str, shape)), "", strings(shape, len(shape))))
    save(HERE / "all_dtypes", sorted(rows, key=lambda row: row[0]))


def parts():
    """Slices, written by two shards and merged."""
    whole = plain("float", [7, 4], 3).numpy()
    text = strings([4], 9)
    with tempfile.TemporaryDirectory() as temp:
        a, b = temp + "/x_temp/part-00000-of-00002", temp + "/x_temp/part-00001-of-00002"
        save(a, [("p", "7 4 0,3:0,2", whole[0:3, 0:2]), ("p", "7 4 0,3:2,2", whole[0:3, 2:4]),
                 ("q", "7 4 -:0,4", whole), ("text", "4 0,1", text[0:1]), ("z", "", plain("int64", [300], 1))])
        save(b, [("a", "", plain("double", [3], 2)), ("p", "7 4 3,4:-", whole[3:7]), ("text", "4 1,3", text[1:4])])
        tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[a, b], destination_prefix=str(HERE / "parts"),
                                      delete_old_dirs=True)


def large():
    """Several blocks, and keys about as long as two: only sizes and checksums are kept."""
    lines = []

    def note(name, prefix):
        for suffix in (".index", ".data-00000-of-00001"):
            data = pathlib.Path(prefix + suffix).read_bytes()
            lines.append("%s%s %d %08x\n" % (name, suffix, len(data), crc32c(data)))

    with tempfile.TemporaryDirectory() as temp:
        save(temp + "/many", [("layer_%05d/weights_%s" % (i, "x" * (i % 50)), "", plain("float", [i % 3], i))
                              for i in range(15000)])
        note("many", temp + "/many")
        for length in (524270, 524271):
            rows = [(name, "", plain("float", [2], 1)) for name in ("a", "b" * length, "c", "d")]
            save(temp + "/long%d" % length, rows)
            note("long%d" % length, temp + "/long%d" % length)
    (HERE / "large.txt").write_text("".join(lines))


def version1():
    rows = [(dtype, plain(dtype, [2, 3], seed)) for seed, dtype in enumerate(
        ["bool", "complex128", "complex64", "double", "float", "half", "int16", "int32", "int64", "int8", "qint32", "qint8",
         "quint8", "uint8"])]
    rows.append(("string", strings([3], 4)))
    rows.append(("scalar", plain("float", [], 1)))
    names, tensors = zip(*rows)
    tf.raw_ops.Save(filename=str(HERE / "v1"), tensor_names=names, data=tensors)
    whole = plain("float", [7, 4], 3).numpy()
    for shard, (begin, end) in enumerate([(0, 3), (3, 7)]):
        tf.raw_ops.SaveSlices(filename=str(HERE / ("v1_parts-%05d-of-00002" % shard)), tensor_names=["p"],
                              shapes_and_slices=["7 4 %d,%d:-" % (begin, end - begin)], data=[whole[begin:end]])


def state_files():
    from tensorflow.python.checkpoint import checkpoint_management as management
    for name, folder, paths, relative in (
            ("state_relative", "train", ["train/m-1", "train/m-2"], False),
            ("state_made_relative", "/tmp/weir_golden/train",
             ["/tmp/weir_golden/m-1", "/tmp/weir_golden/train/m \"2\""], True)):
        with tempfile.TemporaryDirectory() as temp:
            os.chdir(temp)
            os.makedirs(folder, exist_ok=True)
            management.update_checkpoint_state_internal(folder, paths[-1], all_model_checkpoint_paths=paths,
                                                        save_relative_paths=relative)
            shutil.copy(folder + "/checkpoint", HERE / (name + ".txt"))
            os.chdir("/")
    shutil.rmtree("/tmp/weir_golden")


if __name__ == "__main__":
    all_dtypes()
    parts()
    large()
    version1()
    state_files()
