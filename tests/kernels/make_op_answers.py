#!/usr/bin/env python3
"""Records the results of TensorFlow (2.21) for ops of several rooms, one file for each test.

    python3 tests/kernels/make_op_answers.py [NAME...]   (writes tests/kernels/golden/NAME_answers.txt)
"""
import os
import struct
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from tensorflow.lite.experimental.microfrontend.python.ops import audio_microfrontend_op  # noqa: E402,F401
from tensorflow.python.framework import op_def_registry  # noqa: E402

tf.disable_eager_execution()
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
ROWS = []


def dtype_of(x):
    return tf.string if isinstance(x, bytes) or np.asarray(x).dtype == object else \
        tf.as_dtype(np.asarray(x).dtype)


def set_attr(node, kind, name, value):
    target = node.attr[name]
    if kind == "type":
        target.type = tf.as_dtype(value).as_datatype_enum
    elif kind == "int":
        target.i = value
    elif kind == "float":
        target.f = value
    elif kind == "bool":
        target.b = value
    elif kind == "string":
        target.s = value.encode()
    elif kind == "list(int)":
        target.list.i.extend(value)
    elif kind == "list(type)":
        target.list.type.extend(tf.as_dtype(v).as_datatype_enum for v in value)
    else:
        raise ValueError(kind)


def ask(op, inputs, attrs=None, producer=None):
    """Runs one node, in a graph of an old version if the op needs one; records and returns its outputs."""
    op_def = op_def_registry.get(op)
    if producer is None and op_def.HasField("deprecation"):
        producer = op_def.deprecation.version - 1
    graph_def = tf.GraphDef()
    graph_def.versions.producer = producer or tf.GRAPH_DEF_VERSION
    for i, x in enumerate(inputs):
        node = graph_def.node.add(name="in%d" % i, op="Placeholder")
        node.attr["dtype"].type = dtype_of(x).as_datatype_enum
        node.attr["shape"].shape.CopyFrom(tf.TensorShape(np.shape(x)).as_proto())
    node = graph_def.node.add(name="node", op=op, input=["in%d" % i for i in range(len(inputs))])
    kinds = {a.name: a.type for a in op_def.attr}
    for name, value in (attrs or {}).items():
        set_attr(node, kinds[name], name, value)
    for arg, x in zip(op_def.input_arg, inputs):
        if arg.type_attr:
            set_attr(node, "type", arg.type_attr, dtype_of(x))
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        feeds = {"in%d:0" % i: x for i, x in enumerate(inputs)}
        with tf.Session(config=tf.ConfigProto(inter_op_parallelism_threads=1)) as session:
            answer = session.run(graph.get_operation_by_name("node").outputs, feeds)
    ROWS.append((op, attrs or {}, inputs, answer))
    return answer


def number(v):
    if isinstance(v, (np.floating, float)):
        return np.format_float_positional(v, unique=True, trim="-")
    return str(int(v))


def tensor(x):
    if isinstance(x, bytes):
        return "string " + x.hex()
    x = np.asarray(x)
    shape = ",".join(str(d) for d in x.shape) or "-"
    if x.dtype == object:
        return " ".join(["strings", shape] + [s.hex() or "-" for s in x.ravel()])
    return " ".join([x.dtype.name, shape] + [number(v) for v in x.ravel()])


def attr(v):
    if isinstance(v, tf.DType):
        return v.name
    if isinstance(v, list):
        return " ".join(str(f) for f in v)
    return str(v).lower() if isinstance(v, bool) else str(v)


# ---- audio


def wav(samples, channels=1, rate=8000, chunks=b"", extra=b""):
    data = np.asarray(samples, np.int16).tobytes()
    form = struct.pack("<HHIIHH", 1, channels, rate, 2 * channels * rate, 2 * channels, 16) + extra
    body = b"WAVE" + chunks + b"fmt " + struct.pack("<I", len(form)) + form + b"data" + \
        struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def tone(n, *frequencies, rate=16000):
    t = np.arange(n) / rate
    return sum(np.sin(2 * np.pi * f * t) / len(frequencies) for f in frequencies)


def audio():
    stereo = wav([1, -2, 3000, -32768, 32767, 6], channels=2, rate=44100)
    junk = wav([5, 6], chunks=b"JUNK" + struct.pack("<I", 3) + b"abc", extra=b"\0\0")
    for file in (wav([0, 1, -1]), stereo, junk, wav([])):
        for attrs in ({}, {"desired_channels": 1, "desired_samples": 2},
                      {"desired_channels": 3, "desired_samples": 4}):
            ask("DecodeWav", [file], attrs)
    sound = np.array([[0, 0.5], [-1, 1], [2, -3], [1e-5, np.nan]], np.float32)
    ask("EncodeWav", [sound, np.int32(22050)])
    ask("EncodeWav", [np.zeros([0, 1], np.float32), np.int32(1)])
    two = np.stack([tone(90, 440, 3000), 0.3 * tone(90, 1000)], 1).astype(np.float32)
    for window, stride, squared in ((32, 16, True), (30, 7, False), (100, 10, True), (90, 1, False)):
        ask("AudioSpectrogram", [two, ],
            {"window_size": window, "stride": stride, "magnitude_squared": squared})
    spectrogram = np.abs(np.random.RandomState(3).randn(2, 2, 65).astype(np.float32)) ** 2
    ask("Mfcc", [spectrogram, np.int32(16000)])
    ask("Mfcc", [spectrogram, np.int32(8000)],
        {"upper_frequency_limit": 3000.0, "lower_frequency_limit": 100.0,
         "filterbank_channel_count": 20, "dct_coefficient_count": 20})
    ask("Mfcc", [spectrogram, np.int32(4000)])  # which does not reach 4000 Hz
    micro()


def micro():
    random = np.random.RandomState(5)
    speech = (8000 * tone(1200, 300, 900, 2500) + 300 * random.randn(1200)).astype(np.int16)
    silence, loud = np.zeros(700, np.int16), np.where(random.rand(800) < 0.5, -32768, 32767)
    ask("AudioMicrofrontend", [speech])
    ask("AudioMicrofrontend", [silence])
    ask("AudioMicrofrontend", [loud.astype(np.int16)], {"num_channels": 10})
    ask("AudioMicrofrontend", [speech[:100]])
    ask("AudioMicrofrontend", [speech], {"enable_pcan": True, "num_channels": 12})
    ask("AudioMicrofrontend", [speech], {"enable_log": False, "num_channels": 8,
                                         "out_type": tf.float32, "out_scale": 3})
    ask("AudioMicrofrontend", [speech], {
        "left_context": 1, "right_context": 2, "frame_stride": 2, "num_channels": 4,
        "zero_padding": True, "out_scale": 2})
    ask("AudioMicrofrontend", [speech], {"left_context": 2, "right_context": 1, "num_channels": 3})
    ask("AudioMicrofrontend", [speech], {
        "sample_rate": 8000, "window_size": 32, "window_step": 20, "num_channels": 16,
        "upper_band_limit": 3800.0, "smoothing_bits": 8, "even_smoothing": 0.1,
        "odd_smoothing": 0.2, "min_signal_remaining": 0.2, "scale_shift": 5})


# ---- convolutions


def pad_conv():
    random = np.random.RandomState(1)

    def floats(*shape):
        return random.randint(-8, 9, shape).astype(np.float32) / 4

    # One image: TensorFlow mixes the rows of several.
    images, filters = floats(1, 4, 5, 2), floats(2, 3, 2, 3)
    paddings = np.array([[0, 0], [1, 2], [2, 1], [0, 0]], np.int32)
    for mode in ("REFLECT", "SYMMETRIC"):
        for padding, strides in (("VALID", [1, 1, 1, 1]), ("SAME", [1, 2, 2, 1])):
            attrs = {"mode": mode, "padding": padding, "strides": strides}
            ask("FusedPadConv2D", [images, paddings, filters], attrs)
            for size in ([6, 3], [4, 5], [3, 9]):
                for corners in (False, True):
                    ask("FusedResizeAndPadConv2D",
                        [images, np.array(size, np.int32), paddings, filters],
                        dict(attrs, resize_align_corners=corners))
    volumes, kernel = floats(1, 3, 4, 3, 2), floats(2, 2, 2, 2, 3)
    for padding, size in (("VALID", (2, 3, 2)), ("SAME", (3, 4, 3))):
        attrs = {"padding": padding, "strides": [1, 1, 1, 1, 1]}
        dy = floats(1, *size, 3)
        ask("Conv3DBackpropInput", [volumes, kernel, dy], attrs)
        ask("Conv3DBackpropFilter", [volumes, kernel, dy], attrs)


# ---- counts


def count():
    none = {t: np.zeros([0], t) for t in (np.int32, np.int64, np.float32, np.float64)}
    values = np.array([[1, 3, 1], [0, 5, 7]], np.int32)
    weights = np.array([[1, 2, 3], [4, 5, 6.5]], np.float32)
    for attrs in ({}, {"minlength": 10}, {"maxlength": 3}, {"maxlength": 0, "minlength": 2}):
        for binary in (False, True):
            both = dict(attrs, binary_output=binary)
            ask("DenseCountSparseOutput", [values, none[np.int64]], both)
            ask("DenseCountSparseOutput", [values, weights], both)
            ask("DenseCountSparseOutput", [values[0].astype(np.int64), none[np.float64]], both)
            indices = np.array([[0, 1], [0, 2], [2, 0], [2, 5]], np.int64)
            numbers = np.array([4, 4, 2, 0], np.int64)
            shape = np.array([4, 6], np.int64)
            ask("SparseCountSparseOutput", [indices, numbers, shape, none[np.int32]], both)
            ask("SparseCountSparseOutput",
                [indices, numbers, shape, np.array([1, 2, 3, 4], np.float64)], both)
            ask("SparseCountSparseOutput",
                [indices[:2, 1:], numbers[:2], shape[1:], none[np.int32]], both)
            splits = np.array([0, 0, 3, 4], np.int64)
            ask("RaggedCountSparseOutput", [splits, numbers, none[np.int64]], both)
            ask("RaggedCountSparseOutput",
                [splits, numbers, np.array([1, 2, 3, 4], np.float32)], both)


# ---- random numbers


def draws():
    key, counter = np.array([77], np.uint64), np.array([5, 2**63], np.uint64)
    for value in (np.arange(11, dtype=np.int32), np.arange(12, dtype=np.float32).reshape(6, 2),
                  np.array([b"a", b"", b"c", b"dd", b"e"], object), np.array([4], np.int64)):
        for alg in (1, 3):
            ask("StatelessShuffle", [value, key, counter, np.int32(alg)])
    random = np.random.RandomState(2)
    for n in (3, 40):
        x = random.randn(n) * 50
        x[::7] = np.round(x[::7])
        x[1], x[2] = np.nan, -1e12
        for dtype in (np.float64, np.float32, np.float16):
            for out in (tf.int8, tf.int16, tf.int32):
                with np.errstate(over="ignore"):
                    ask("StochasticCastToInt", [x.astype(dtype), key, counter, np.int32(1)],
                        {"Tout": out})


def sobol():
    for dim, results, skip, dtype in ((1, 9, 0, tf.float32), (3, 5, 0, tf.float64), (3, 4, 1, tf.float32),
                                      (300, 2, 5, tf.float64), (2, 3, 2**24 + 5, tf.float32),
                                      (4, 2, 2**30 - 4, tf.float64)):
        ask("SobolSample", [np.int32(dim), np.int32(results), np.int32(skip)], {"dtype": dtype})


# ---- matrices


def old_matrix():
    random = np.random.RandomState(4)
    for scale in (0.1, 1, 20):
        x = random.randn(2, 3, 3) * scale
        ask("MatrixExponential", [x])
        ask("MatrixExponential", [x.astype(np.float32)])
    x, d = random.randint(-9, 9, [2, 3, 4]).astype(np.float32), np.arange(6, dtype=np.float32)
    ask("BatchMatrixDiag", [d.reshape(2, 3)])
    ask("BatchMatrixDiagPart", [x])
    ask("BatchMatrixSetDiag", [x, d.reshape(2, 3)])
    ask("BatchMatrixBandPart", [x, np.int64(1), np.int64(-1)])


# Written by cwebp and img2webp 1.2.4: without loss, with alpha, with loss, and an animation.
WEBP = {
    "rgb": bytes.fromhex(
        "5249464634000000574542505650384c270000002f038000005f20164cce11e46f1bc354dca162fe13db8120"
        "8044219658669965964923fa1f98ee00"),
    "rgba": bytes.fromhex(
        "5249464638000000574542505650384c2c0000002f038000105f20164cae19e48f1bc3505c818240803255f8"
        "2af1de81208044219658669965964923fa1f98ee"),
    "lossy": bytes.fromhex(
        "524946469e0000005745425056503820920000001004009d012a1000080002804225b002747f0618064807e8"
        "0758012957c51a657facc58f02b19bc70000fe27abbc36b5f922f7ae415cddc321e310db6290ee5da14f57fe"
        "5dfb58a252c1c7ebf427491ad7b57d0de7c91c0fdc1316edfde7dd834762b590b3bf60a2d0b3f449306437f2"
        "6d536f462312826f1591bf99a28d01e866823d9ec9ff3d5cac4dacc6ca45c0040000"),
    "anim": bytes.fromhex(
        "524946460c01000057454250565038580a00000012000000030000020000414e494d06000000ffffffff0000"
        "414e4d4644000000000000000000030000020000640000025650384c2c0000002f038000105f20164cae19e4"
        "8f1bc3505c818240803255f82af1de81208044219658669965964923fa1f98ee414e4d464600000000000000"
        "0000030000020000320000025650384c2d0000002f038000105f20104824d2d8df708653a09c428640803255"
        "f82afbd881208044219658669965964923fa1f98ee00414e4d46460000000000000000000300000200003200"
        "00025650384c2d0000002f038000105f2010482452dbdf668653409d428b40803255f82afbd8812080442196"
        "58669965964923fa1f98ee00"),
}


def webp():
    for name, file in WEBP.items():
        ask("DecodeWebP", [file], {"channels": 3 if name == "rgb" else 0})
        for expand in (False, True):
            ask("DecodeImage", [file], {"expand_animations": expand})


FILES = {"audio": audio, "pad_conv": pad_conv, "count": count, "draws": draws, "sobol": sobol,
         "old_matrix": old_matrix, "webp": webp}


def main(names):
    for name in names or FILES:
        ROWS.clear()
        FILES[name]()
        with open(os.path.join(GOLDEN, name + "_answers.txt"), "w", encoding="ascii") as out:
            out.write("# TensorFlow 2.21's answers, written by make_op_answers.py: ops, attributes, inputs, "
                      "outputs.\n")
            for op, attrs, inputs, outputs in ROWS:
                out.write("op %s\n" % op)
                out.writelines("attr %s %s\n" % (k, attr(v)) for k, v in attrs.items())
                out.writelines("in %s\n" % tensor(x) for x in inputs)
                out.writelines("out %s\n" % tensor(x) for x in outputs)


if __name__ == "__main__":
    main(sys.argv[1:])
