#!/usr/bin/env python3
"""Records the results of TensorFlow (2.21) for image ops, for image_test.

    python3 tests/kernels/make_image_answers.py > tests/kernels/golden/image_answers.txt
"""
import os
import struct
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

tf.disable_eager_execution()
np.random.seed(7)
ROWS = []


def picture(*shape):
    return np.round(np.random.uniform(0, 1, shape), 2).astype(np.float32)


def floats(*values):
    return np.array(values, np.float32)


def ints(*values):
    return np.array(values, np.int32)


def ask(op, inputs, attrs=None, types=None, label=""):
    """Runs one node, records its outputs and returns them."""
    with tf.Graph().as_default():
        tensors = [tf.placeholder(tf.string if isinstance(x, bytes) else x.dtype,
                                  [] if isinstance(x, bytes) else x.shape) for x in inputs]
        fn = getattr(tf.raw_ops, op)
        names = [a.name for a in op_def_registry.get(op).input_arg]
        out = fn(**dict(zip(names, tensors)), **(attrs or {}), **(types or {}))
        out = list(out) if isinstance(out, tuple) else [out]
        with tf.Session(config=tf.ConfigProto(inter_op_parallelism_threads=1)) as session:
            answer = session.run(out, dict(zip(tensors, inputs)))
    ROWS.append((op, attrs or {}, types or {}, inputs, answer))
    return answer


def number(v):
    if isinstance(v, (np.floating, float)):
        return np.format_float_positional(np.float32(v), unique=True, trim="-")
    return str(int(v))


def tensor(x):
    if isinstance(x, bytes):
        return "string " + x.hex()
    x = np.asarray(x)
    return " ".join([x.dtype.name, ",".join(str(d) for d in x.shape) or "-"] +
                    [number(v) for v in x.ravel()])


def attr(v):
    if isinstance(v, tf.DType):
        return v.name
    if isinstance(v, list):
        return " ".join(str(f) for f in v)
    return str(v).lower() if isinstance(v, bool) else str(v)


def boxes_and_scores():
    corners = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11],
                        [0, 10.1, 1, 11.1], [1, 100, 0, 101], [0, 0, 0, 1]], np.float32)
    return corners, floats(0.9, 0.75, 0.6, 0.95, 0.5, 0.3, 0.75)


def suppression():
    boxes, scores = boxes_and_scores()
    most, half, low = np.int32(4), np.float32(0.5), np.float32(0.4)
    ask("NonMaxSuppression", [boxes, scores, most], {"iou_threshold": 0.5})
    ask("NonMaxSuppressionV2", [boxes, scores, most, half])
    ask("NonMaxSuppressionV3", [boxes, scores, most, half, low])
    for pad in (False, True):
        ask("NonMaxSuppressionV4", [boxes, scores, np.int32(6), half, low],
            {"pad_to_max_output_size": pad})
        for sigma in (0.0, 0.5):
            ask("NonMaxSuppressionV5", [boxes, scores, np.int32(6), half, np.float32(0.1),
                                        np.float32(sigma)], {"pad_to_max_output_size": pad})
    overlaps = picture(5, 5)
    ask("NonMaxSuppressionWithOverlaps",
        [overlaps, scores[:5], most, np.float32(0.6), np.float32(0)])
    many = np.stack([boxes / 11, boxes[::-1] / 7])[:, :, None, :].astype(np.float32)
    classes = np.stack([np.stack([scores, scores[::-1] - 0.01], -1),
                        np.stack([scores[::-1], scores * 0.6], -1)]).astype(np.float32)
    for pad, clip in ((False, True), (True, False)):
        ask("CombinedNonMaxSuppression",
            [many, classes, np.int32(2), np.int32(5), half, low],
            {"pad_per_class": pad, "clip_boxes": clip})


def resampling():
    image, scale, move = picture(1, 3, 4, 1), floats(1.7, 0.6), floats(0.4, -0.3)
    for kernel in ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle",
                   "keyscubic", "mitchellcubic"):
        for antialias in (True, False):
            ask("ScaleAndTranslate", [image, ints(4, 3), scale, move],
                {"kernel_type": kernel, "antialias": antialias})
    for kernel in ("lanczos3", "triangle"):
        ask("ScaleAndTranslateGrad", [picture(1, 4, 3, 1), image, scale, move],
            {"kernel_type": kernel})
    boxes = np.array([[0.1, 0.2, 0.8, 0.9], [0.6, 0, 0.1, 1]], np.float32)
    for method in ("bilinear", "nearest"):
        ask("CropAndResizeGradImage", [picture(2, 2, 3, 1), boxes, ints(1, 0), ints(2, 3, 4, 1)],
            {"method": method}, {"T": tf.float32})
    ask("CropAndResizeGradBoxes", [picture(2, 2, 3, 2), picture(2, 4, 5, 2), boxes, ints(1, 0)])
    ask("CropAndResizeGradBoxes", [picture(2, 1, 1, 2), picture(2, 4, 5, 2), boxes, ints(1, 0)])
    turn = floats(0.8, 0.6, -2.3, -0.6, 0.8, 1.2, 0, 0)[None]
    for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
        for interpolation in ("NEAREST", "BILINEAR"):
            ask("ImageProjectiveTransformV3",
                [image, turn, ints(3, 5), np.float32(0.25)],
                {"interpolation": interpolation, "fill_mode": mode})
    for op in ("ExtractGlimpse", "ExtractGlimpseV2"):
        for centered, normalized in ((True, True), (True, False), (False, False), (False, True)):
            offsets = floats(0.4, -0.6) if normalized else floats(1.2, -1.6)
            ask(op, [picture(1, 4, 5, 1), ints(3, 4), offsets[None]],
                {"centered": centered, "normalized": normalized, "uniform_noise": False,
                 "noise": "zero"})


def gaps():
    for size, stride in ((1, 3), (1, 4), (2, 4)):
        ask("ExtractVolumePatches", [picture(1, 5, 4, 2, 1)],
            {"ksizes": [1, size, size, 1, 1], "strides": [1, stride, stride, 1, 1],
             "padding": "SAME"})


def drawing():
    boxes = np.array([[[0.1, 0.2, 0.8, 0.9], [-0.5, 0.5, 0.5, 2], [0.9, 0, 0.1, 1]]], np.float32)
    ask("DrawBoundingBoxes", [picture(1, 5, 6, 3), boxes])
    ask("DrawBoundingBoxes", [picture(1, 4, 4, 1), boxes])
    ask("DrawBoundingBoxesV2", [picture(1, 5, 4, 1), boxes, np.array([[0.5, 0], [0.25, 0]],
                                                                     np.float32)])


def drawn_at_random():
    size, box = ints(40, 50, 3), np.array([[[0.2, 0.3, 0.6, 0.8]]], np.float32)
    for seed in (1, 2, 3):
        ask("SampleDistortedBoundingBox", [size, box], {"seed": seed, "seed2": 5})
        ask("SampleDistortedBoundingBoxV2", [size, box, np.float32(0.7)],
            {"seed": seed, "seed2": 0, "area_range": [0.3, 0.9], "max_attempts": 20})
        ask("StatelessSampleDistortedBoundingBox", [size, box, np.float32(0.1), ints(seed, 9)])
    empty = np.zeros((0, 0, 4), np.float32)
    ask("SampleDistortedBoundingBox", [size.astype(np.int64), empty],
        {"seed": 4, "seed2": 4, "use_image_if_no_bounding_boxes": True})
    image = picture(1, 7, 9, 1)
    for pseudo in (False, True):
        for overlapping in (False, True):
            attrs = {"pooling_ratio": [1.0, 1.44, 1.73, 1.0], "pseudo_random": pseudo,
                     "overlapping": overlapping, "deterministic": True, "seed": 3, "seed2": 8}
            out, rows, columns = ask("FractionalMaxPool", [image], attrs)
            grads = picture(*out.shape)
            only = {"overlapping": overlapping}
            ask("FractionalMaxPoolGrad", [image, out, grads, rows, columns], only)
            ask("FractionalAvgPool", [image], attrs)
            ask("FractionalAvgPoolGrad",
                [np.array(image.shape, np.int64), grads, rows, columns], only)


def gif(frames, width, height):
    """Frames of (left, top, width, height, indices, transparent), two bits per pixel."""
    out = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x91, 0, 0)
    out += bytes([10, 20, 30, 200, 0, 0, 0, 200, 0, 0, 0, 200])
    for left, top, w, h, indices, transparent in frames:
        out += b"\x21\xf9\x04" + struct.pack("<BHBB", transparent is not None, 0,
                                             transparent or 0, 0)
        out += b"\x2c" + struct.pack("<HHHHB", left, top, w, h, 0) + b"\x02"
        bits, count = 0, 0
        for index in indices:  # a clear code before each pixel: codes stay three bits long
            bits |= (4 | index << 3) << count
            count += 6
        bits |= 5 << count
        data = bits.to_bytes((count + 3 + 7) // 8, "little")
        out += bytes([len(data)]) + data + b"\0"
    return out + b";"


def bmp(width, height, channels, top_down):
    row = (width * channels + 3) // 4 * 4
    pixels = bytes(range(row * height))
    header = struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + struct.pack(
        "<IiiHHIIiiII", 40, width, -height if top_down else height, 1, 8 * channels, 0, 0, 0, 0,
        0, 0)
    return b"BM" + header + pixels


def png(width, height, bits, color, rows, extra=b""):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(
            ">I", zlib.crc32(kind + data))
    raw = b"".join(b"\0" + row for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits,
                                                               color, 0, 0, 0)) + extra +
            chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def files():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(
            ">I", zlib.crc32(kind + data))
    gray = np.arange(20, dtype=np.uint8).reshape(4, 5, 1) * 12
    color = (np.indices((6, 7)).sum(0)[..., None] * [9, 17, 3] % 256).astype(np.uint8)
    jpeg_gray = ask("EncodeJpeg", [gray], {"quality": 80})[0]
    with tf.Graph().as_default(), tf.Session() as session:
        jpeg = session.run(tf.raw_ops.EncodeJpeg(image=color, quality=70, progressive=True))
    ROWS.pop()  # other builds of the library may write different bytes
    ask("DecodeJpeg", [jpeg_gray])
    ask("DecodeJpeg", [jpeg_gray], {"channels": 3})
    for attrs in ({}, {"ratio": 2}, {"dct_method": "INTEGER_ACCURATE"}, {"channels": 1},
                  {"fancy_upscaling": False}):
        ask("DecodeJpeg", [jpeg], attrs)
    ask("DecodeAndCropJpeg", [jpeg, ints(1, 2, 3, 4)])
    ask("ExtractJpegShape", [jpeg])
    ask("DecodeImage", [jpeg_gray], {"dtype": tf.float32})
    ask("DecodeImage", [jpeg_gray], {"dtype": tf.uint16})
    palette = png(5, 2, 2, 3, [bytes([0x1b, 0x40]), bytes([0xe4, 0x80])],
                  chunk(b"PLTE", bytes([1, 2, 3, 40, 50, 60, 7, 8, 9, 100, 200, 250])) +
                  chunk(b"tRNS", bytes([255, 100])))
    for channels in (0, 1, 3, 4):
        ask("DecodePng", [palette], {"channels": channels})
    wide = png(2, 2, 16, 4, [bytes(range(10, 18)), bytes(range(30, 38))])
    for channels in (0, 1, 3, 4):
        ask("DecodePng", [wide], {"channels": channels, "dtype": tf.uint16})
    ask("DecodePng", [wide])
    bits = png(9, 1, 1, 0, [bytes([0xa5, 0x80])])
    ask("DecodePng", [bits])
    ask("DecodePng", [bits], {"channels": 4, "dtype": tf.uint16})
    ask("DecodeImage", [bits], {"dtype": tf.float32})
    moving = gif([(0, 0, 3, 2, [0, 1, 2, 3, 0, 1], None), (1, 0, 2, 2, [3, 1, 1, 2], 1)], 3, 2)
    still = gif([(0, 0, 3, 2, [0, 1, 2, 3, 0, 1], 2)], 3, 2)
    ask("DecodeGif", [moving])
    ask("DecodeImage", [moving], {"expand_animations": False})
    ask("DecodePng", [still])
    ask("DecodeGif", [jpeg_gray])
    for channels, top_down in ((1, False), (3, True), (4, False)):
        ask("DecodeBmp", [bmp(3, 2, channels, top_down)])
    ask("DecodeBmp", [bmp(3, 2, 3, False)], {"channels": 4})
    ask("DecodeImage", [bmp(3, 2, 3, False)], {"dtype": tf.float32, "channels": 3})


for part in (suppression, resampling, gaps, drawing, drawn_at_random, files):
    part()

print("# TensorFlow 2.21's answers, written by make_image_answers.py: ops, attributes, inputs, outputs.")
for op, attrs, types, inputs, answer in ROWS:
    print("op", op)
    for key, value in {**attrs, **types}.items():
        print("attr", key, attr(value))
    for x in inputs:
        print("in", tensor(x))
    for x in answer:
        print("out", tensor(x))
