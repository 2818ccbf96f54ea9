#!/usr/bin/env python3
"""Files of TensorFlow's Examples through `weir data convert`, to JSON lines and CSV and back.

    tensorflow_records_test.py WEIR

Random Examples that TensorFlow writes, plain and compressed, are equal messages when TensorFlow reads the files
that come back. Skipped without TensorFlow.
"""

import importlib.util
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

COUNT = 300


def random_feature(tf, kind, r):
    size = r.choice([0, 1, 1, 1, 2, 5])
    if kind == "int64":
        values = [r.choice([0, 1, -1, 2**53 + 1, r.randrange(-2**63, 2**63)]) for _ in range(size)]
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    if kind == "float":
        values = [struct.unpack("<f", struct.pack("<I", r.getrandbits(32)))[0] for _ in range(size)]
        values = [r.choice([v, 0.1, 1.0, -0.0, math.inf]) if not math.isnan(v) else float("nan") for v in values]
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    texts = [b"", b"[x", b"a,b", b'"', "größe".encode(), b"line\r\nend", b"\xff\x00", r.randbytes(20), b"007"]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[r.choice(texts) for _ in range(size)]))


def random_example(tf, r, mixed):
    features = {}
    for name, kind in (("i", "int64"), ("f", "float"), ("s", "bytes"), ("größe, x", "bytes")):
        if mixed:
            kind = r.choice(["int64", "float", "bytes"])
        if r.random() < 0.8:
            features[name] = random_feature(tf, kind, r)
    features["always"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[r.randrange(10)]))
    return tf.train.Example(features=tf.train.Features(feature=features))


def write(tf, path, examples, compression):
    with tf.io.TFRecordWriter(path, compression) as writer:
        for example in examples:
            writer.write(example.SerializeToString())


def read(tf, path, compression=""):
    return [tf.train.Example.FromString(r.numpy()) for r in tf.data.TFRecordDataset(path, compression)]


def same(a, b):
    """Whether lists of messages are equal, NaNs included."""
    return [x.SerializeToString(deterministic=True) for x in a] == [x.SerializeToString(deterministic=True) for x in b]


def check_round_trip(tf, weir, folder, mixed, compression, ending):
    r = random.Random(len(compression) + 10 * mixed)
    examples = [random_example(tf, r, mixed) for _ in range(COUNT)]
    source, text, back = (os.path.join(folder, n) for n in ("a.tfrecord", "a" + ending, "b.tfrecord"))
    write(tf, source, examples, compression)
    run = lambda *args: subprocess.run([weir, "data", *args], check=True, stdout=subprocess.PIPE, text=True).stdout
    run("convert", source, "-o", text)
    run("convert", text, "-o", back, *(["--compress", "gzip"] if compression == "GZIP" else []))
    assert same(examples, read(tf, back, "GZIP" if compression == "GZIP" else "")), (mixed, compression, ending)
    stats = json.loads(run("stats", source, "--json"))
    assert stats["records"] == COUNT, stats["records"]
    always = next(f for f in stats["features"] if f["name"] == "always")
    values = [e.features.feature["always"].int64_list.value[0] for e in examples]
    assert (always["min"], always["max"]) == (min(values), max(values)), always
    assert abs(always["mean"] - sum(values) / COUNT) < 1e-12, always


def main():
    if importlib.util.find_spec("tensorflow") is None:
        print("SKIP: no TensorFlow in this Python")
        return 0
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import tensorflow as tf

    weir = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        for compression in ("", "GZIP", "ZLIB"):
            for mixed, ending in ((True, ".jsonl"), (False, ".jsonl.gz"), (False, ".csv")):
                check_round_trip(tf, weir, folder, mixed, compression, ending)
    print("the same Examples come back")
    return 0


if __name__ == "__main__":
    sys.exit(main())
