#!/usr/bin/env python3
"""weir run with feeds and results in files that TensorFlow, NumPy and Python made.

Every value is compared with TensorFlow's for the same feed. Skipped without TensorFlow.
usage: feeds_test.py WEIR WEBP   (a fuzzer's input: a byte, and a WebP file)
"""

import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
try:
    import numpy as np
    import tensorflow as tf
except ImportError:
    print("SKIPPED: no TensorFlow")
    sys.exit(0)

v1 = tf.compat.v1


def write_graph(folder):
    """A graph with an input of each kind, whose results are the inputs themselves."""
    with tf.Graph().as_default() as graph:
        for name, dtype, shape in [
                ("x", tf.float32, [None, 3]), ("grid", tf.float32, [None, 2, 3]),
                ("v", tf.float32, [None]), ("i", tf.int32, [None]), ("w", tf.string, [None]),
                ("text", tf.string, []), ("u8", tf.uint8, [None, None, 3]),
                ("half", tf.float16, [None]), ("flag", tf.bool, [None]),
                ("rgb", tf.float32, [None, 5, 4, 3]), ("gray", tf.float32, [5, 4]),
                ("chw", tf.float32, [None, 3, 5, 2]), ("same", tf.float32, [None, None, None, 3]),
                ("frames", tf.uint8, [None, 2, 3, 3]), ("u16", tf.uint16, [2, 3, 1])]:
            tf.identity(v1.placeholder(dtype, shape, name), name + "_out")
        v1.placeholder(tf.string, [None], "examples")
        parsed = tf.io.parse_example(
            graph.get_tensor_by_name("examples:0"),
            {"age": tf.io.FixedLenFeature([], tf.int64), "score": tf.io.FixedLenFeature([2], tf.float32),
             "name": tf.io.FixedLenFeature([], tf.string)})
        for name, value in parsed.items():
            tf.identity(value, name)
        tf.reduce_sum(graph.get_tensor_by_name("x:0"), 1, name="sum")
        tf.reduce_mean(graph.get_tensor_by_name("x:0"), name="mean")
    path = os.path.join(folder, "g.pb")
    with open(path, "wb") as out:
        out.write(graph.as_graph_def().SerializeToString())
    return path


class Test:
    def __init__(self, weir, webp, folder):
        self.weir, self.webp, self.folder, self.faults = weir, webp, folder, 0
        self.graph = write_graph(folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, contents):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as out:
            out.write(contents if isinstance(contents, bytes) else contents.encode())
        return self.path(name)

    def run(self, *args):
        return subprocess.run([self.weir, "run", self.graph] + list(args), cwd=self.folder,
                              capture_output=True, text=True)

    def expect(self, holds, text):
        print("%s  %s" % ("ok  " if holds else "FAIL", text), flush=True)
        self.faults += not holds

    def fetch(self, fetches, *args):
        """Runs a step and returns the fetches by name, or the error."""
        for name in fetches:
            args += ("--fetch", name + "=out.npz")
        done = self.run(*args)
        if done.returncode:
            return done.stderr
        with np.load(self.path("out.npz")) as out:
            return {name: out[name] for name in fetches}

    def expect_value(self, feed, want, fetch=None, options=(), tolerance=0):
        fetch = fetch or feed.split("=")[0] + "_out"
        got = self.fetch([fetch], "--feed", feed, *options)
        if isinstance(got, str):
            return self.expect(False, "%s: %s" % (feed, got.strip()))
        got, want = got[fetch], np.asarray(want)
        same = got.shape == want.shape and (
            np.array_equal(got, want) if want.dtype.kind in "SOb" or not tolerance
            else np.allclose(got, want, rtol=0, atol=tolerance))
        self.expect(same, "%s -> %s%s" % (feed, list(got.shape), "" if same else
                                          ": %s, not %s" % (got.tolist(), want.tolist())))

    def expect_error(self, feed, *words, fetch=None, options=()):
        fetch = fetch or feed.split("=")[0] + "_out"
        done = self.run("--feed", feed, "--fetch", fetch, *options)
        self.expect(done.returncode == 1 and all(word in done.stderr for word in words),
                    "%s: %s" % (feed, done.stderr.strip()))

    # ---- arrays

    def test_arrays(self):
        x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
        np.save(self.path("f64.npy"), x.astype(np.float64))
        np.save(self.path("fortran.npy"), np.asfortranarray(x))
        np.save(self.path("big.npy"), x.astype(">i2"))
        np.savez(self.path("x.npz"), x=x)
        np.savez(self.path("positional.npz"), x)
        np.savez_compressed(self.path("two.npz"), x=x, other=x + 1, unused=x)
        np.savez(self.path("colon.npz"), **{"x:0": x + 2})
        for name in ["f64.npy", "fortran.npy", "big.npy", "x.npz", "positional.npz", "two.npz"]:
            self.expect_value("x=" + name, x)
        self.expect_value("x:0=two.npz", x, fetch="x_out")
        self.expect_value("x=colon.npz", x + 2)
        self.expect_value("x=two.npz:other", x + 1)
        self.expect_error("x=two.npz:missing", "no array 'missing'; arrays: other, unused, x")
        self.expect_error("v=two.npz", "two.npz", "append :NAME, one of: other, unused, x")
        np.savez(self.path("both.npz"), x=x, v=x[0], spare=x)
        got = self.fetch(["x_out", "v_out"], "--feed", "both.npz")
        self.expect(not isinstance(got, str) and np.array_equal(got["v_out"], x[0]) and
                    np.array_equal(got["x_out"], x), "an npz without a name feeds all inputs")
        done = self.run("--feed", "both.npz", "--fetch", "sum")
        self.expect(done.returncode == 0 and "not fed: spare" in done.stderr, done.stderr.strip())
        np.savez(self.path("none.npz"), a=x)
        done = self.run("--feed", "none.npz", "--fetch", "sum")
        self.expect(done.returncode == 1 and "values: a; inputs: " in done.stderr, done.stderr)
        np.save(self.path("unicode.npy"), np.array(["ab", "\u00e9"]))
        self.expect_value("w=unicode.npy", np.array([b"ab", "\u00e9".encode()]))
        np.save(self.path("bytes.npy"), np.array([b"ab", b"c"]))
        self.expect_value("w=bytes.npy", np.array([b"ab", b"c"]))
        damaged = bytearray(open(self.path("x.npz"), "rb").read())
        damaged[damaged.index(b"\0\0\0@")] ^= 1
        self.put("damaged.npz", bytes(damaged))
        self.expect_error("x=damaged.npz", "DATA_LOSS", "damaged.npz", "checksum is wrong")
        self.put("cut.npz", bytes(damaged[:100]))
        self.expect_error("x=cut.npz", "INVALID_ARGUMENT", "cut.npz", "not a zip archive")

    def test_conversion(self):
        np.save(self.path("i64.npy"), np.array([1, 2]))
        self.expect_value("i=i64.npy", np.array([1, 2], np.int32))
        self.expect_value("half=i64.npy", np.array([1, 2], np.float16))
        self.expect_error("flag=i64.npy", "element 1 is 2 (int64), which is not a value of type bool")
        np.save(self.path("tenth.npy"), np.array([1, 0.1]))
        self.expect_error("v=tenth.npy", "element 1 is 0.1 (double)", "--round allows rounding")
        self.expect_value("v=tenth.npy", np.array([1, 0.1], np.float32), options=["--round"])
        np.save(self.path("large.npy"), np.array([2**40]))
        self.expect_error("i=large.npy", "1099511627776 (int64)", "int32", options=["--round"])

    # ---- text

    def test_text(self):
        x = np.array([[1, 2.5, 3], [4, 5, 6]], np.float32)
        np.savetxt(self.path("x.csv"), x, delimiter=",")
        np.savetxt(self.path("x.txt"), x)
        np.savetxt(self.path("commented.csv"), x, delimiter=",", header="a,b,c")
        self.put("header.csv", "a,b,c\n1,2.5,3\n4,5,6\n")
        self.put("tabs.tsv", "1\t2.5\t3\n4\t5\t6\n")
        self.put("x.csv.gz", gzip.compress(b"1,2.5,3\n4,5,6\n"))
        self.put("x.json", json.dumps(x.tolist()))
        self.put("x.jsonl", "\n".join(json.dumps(row) for row in x.tolist()) + "\n")
        self.put("rows.jsonl", "\n".join(json.dumps({"x": row, "v": 7}) for row in x.tolist()))
        for name in ["x.csv", "x.txt", "commented.csv", "header.csv", "tabs.tsv", "x.csv.gz",
                     "x.json", "x.jsonl", "rows.jsonl"]:
            self.expect_value("x=" + name, x)
        self.put("flat.csv", "1,2,3,4,5,6\n7,8,9,10,11,12\n")
        self.expect_value("grid=flat.csv", np.arange(1, 13, dtype=np.float32).reshape(2, 2, 3))
        self.put("column.csv", "1\n2\n")
        self.expect_value("v=column.csv", np.array([1, 2], np.float32))
        self.put("table.csv", "i,v,w\n1,0.5,a\n2,1.5,\"b,\"\"c\"\"\"\n")
        got = self.fetch(["i_out", "v_out", "w_out"], "--feed", "table.csv")
        self.expect(not isinstance(got, str) and got["i_out"].tolist() == [1, 2] and
                    got["v_out"].tolist() == [0.5, 1.5] and
                    got["w_out"].tolist() == [b"a", b"b,\"c\""], "columns feed inputs: %s" % (got,))
        self.put("bad.csv", "1,2,3\n4,5\n")
        self.expect_error("x=bad.csv", "bad.csv", "line 2: 2 fields, but the first line has 3")
        self.put("word.csv", "1,2,3\n4,five,6\n")
        self.expect_error("x=word.csv", "line 2: 'five' is not a value of type float")
        self.expect_error("grid=x.csv", "2 lines of 3 fields", "[?,2,3]")
        self.expect_error("x=missing.csv", "NOT_FOUND", "missing.csv: no such file")
        self.put("words.txt", "some words")
        self.expect_value("text=words.txt", np.array(b"some words"))
        self.put("odd.bin", "abc")
        self.expect_error("v=odd.bin", "odd.bin", "its contents are no array", "@FILE")
        self.expect_value("v=[1, 2]", np.array([1, 2], np.float32))

    def test_bytes(self):
        v = np.array([1.5, -2], "<f4")
        self.put("v.bin", v.tobytes())
        self.expect_value("v=@v.bin", v)
        self.put("grid.bin", np.arange(12, dtype="<f4").tobytes())
        self.expect_value("grid=@grid.bin", np.arange(12, dtype=np.float32).reshape(2, 2, 3))
        self.put("odd.bin", b"abc")
        self.expect_error("v=@odd.bin", "3 bytes are no multiple of the 4 bytes")
        self.expect_error("grid=@v.bin", "2 elements do not fit", "[?,2,3]")
        self.put("raw", b"\xff\0x")
        self.expect_value("text=@raw", np.array(b"\xff\0x"))
        self.expect_value("w=@raw", np.array([b"\xff\0x"]))
        self.put("texts/b", "two")
        self.put("texts/a", "one")
        self.put("texts/.hidden", "no")
        self.expect_value("w=@texts", np.array([b"one", b"two"]))
        self.expect_value("w=texts/*", np.array([b"one", b"two"]))

    # ---- examples

    def test_examples(self):
        def example(age, score, name):
            feature = tf.train.Feature
            return tf.train.Example(features=tf.train.Features(feature={
                "age": feature(int64_list=tf.train.Int64List(value=[age])),
                "score": feature(float_list=tf.train.FloatList(value=score)),
                "name": feature(bytes_list=tf.train.BytesList(value=[name]))}))
        examples = [example(3, [0.5, 1], b"a"), example(4, [2, 3], b"\xff")]
        for name, options in [("e.tfrecord", None), ("e.gz", "GZIP")]:
            with tf.io.TFRecordWriter(self.path(name), options) as out:
                for e in examples:
                    out.write(e.SerializeToString())
        lines = [{"age": 3, "score": [0.5, 1], "name": "a"},
                 {"age": [4], "score": [2.0, 3], "name": {"b64": "/w=="}}]
        self.put("e.json", json.dumps(lines))
        self.put("e.jsonl", "\n".join(map(json.dumps, lines)))
        from google.protobuf.json_format import MessageToJson
        self.put("message.json", "[%s]" % ",".join(MessageToJson(e) for e in examples))
        for name in ["e.tfrecord", "e.gz", "e.json", "e.jsonl", "message.json", json.dumps(lines)]:
            self.expect_value("examples=" + name, np.array([3, 4]), fetch="age")
            self.expect_value("examples=" + name, np.array([[0.5, 1], [2, 3]], np.float32),
                              fetch="score")
            self.expect_value("examples=" + name, np.array([b"a", b"\xff"]), fetch="name")
        records = open(self.path("e.tfrecord"), "rb").read()
        self.put("torn.tfrecord", records[:-3])
        self.expect_error("examples=torn.tfrecord", "DATA_LOSS", "torn.tfrecord", "truncated",
                          fetch="age")
        self.expect_error("x=e.tfrecord", "TFRecord file holds strings")
        self.expect_error('examples={"age": [1, "a"]}', "feature 'age'", "both strings and numbers",
                          fetch="age")

    # ---- images

    def test_images(self):
        pixels = np.random.RandomState(1).randint(0, 256, [7, 6, 3]).astype(np.uint8)
        smooth = np.tile(np.arange(0, 120, 20, dtype=np.uint8)[None, :, None], [7, 1, 3])
        files = {"a.png": tf.io.encode_png(pixels), "a.jpg": tf.io.encode_jpeg(smooth, quality=95),
                 "gray.png": tf.io.encode_png(pixels[:, :, :1]),
                 "rgba.png": tf.io.encode_png(np.concatenate([pixels, pixels[:, :, :1]], 2)),
                 "a.bmp": self.bmp(pixels[:, :4])}
        for name, contents in files.items():
            contents = contents if isinstance(contents, bytes) else contents.numpy()
            self.put(name, contents)
            decoded = tf.io.decode_image(contents, channels=0, expand_animations=False)
            rgb = tf.io.decode_image(contents, channels=0 if name == "a.bmp" else 3,
                                     dtype=tf.float32, expand_animations=False)
            resized = tf.image.resize(rgb, [5, 4]).numpy()
            self.expect_value("rgb=" + name, resized[None], tolerance=1e-6)
            narrow = tf.image.resize(rgb, [5, 2]).numpy()
            self.expect_value("chw=" + name, narrow.transpose(2, 0, 1)[None], tolerance=1e-6)
            self.expect_value("rgb=" + name, (resized * 2 - 1)[None], options=["--pixels=-1,1"],
                              tolerance=1e-6)
            self.expect_value("same=" + name, rgb.numpy()[None], tolerance=0)
            self.expect_value("u8=" + name, decoded.numpy()[:, :, :3].repeat(
                3 if decoded.shape[2] == 1 else 1, 2))
            self.expect_value("text=" + name, np.array(contents))
            self.expect_value("w=" + name, np.array([contents]))
        gray = tf.image.resize(tf.io.decode_image(files["a.jpg"], channels=1, dtype=tf.float32),
                               [5, 4])
        self.expect_value("gray=a.jpg", gray.numpy()[:, :, 0], tolerance=1e-6)
        gray = tf.image.resize(tf.image.rgb_to_grayscale(tf.io.decode_image(
            files["a.bmp"], dtype=tf.float32)), [5, 4])
        self.expect_value("gray=a.bmp", gray.numpy()[:, :, 0], tolerance=1e-6)
        deep = np.arange(6, dtype=np.uint16).reshape(2, 3, 1) * 9001
        self.put("deep.png", tf.io.encode_png(deep).numpy())
        self.expect_value("u16=deep.png", deep)
        red_then_blue = self.gif([[1] * 6, [2] * 6], 3, 2)
        frames = tf.io.decode_gif(red_then_blue).numpy()
        self.put("a.gif", red_then_blue)
        self.expect_value("frames=a.gif", frames)
        self.expect_value("u8=a.gif", frames[0])
        webp = open(self.webp, "rb").read()[1:]
        self.put("a.webp", webp)
        image = tf.io.decode_image(webp, channels=3, expand_animations=False)
        self.expect_value("u8=a.webp", image.numpy())
        self.expect_value("rgb=a.webp", tf.image.resize(
            tf.cast(image, tf.float32) / 255, [5, 4]).numpy()[None], tolerance=1e-6)
        self.put("broken.png", files["a.png"].numpy()[:60])
        self.expect_error("rgb=broken.png", "INVALID_ARGUMENT", "broken.png")
        self.expect_error("x=a.png", "[?,3]", "a.png")
        self.expect_error("flag=a.png", "bool")

    @staticmethod
    def gif(frames, width, height):
        """A GIF file of frames of pixels 0 to 3: black, red, blue, white."""
        size = np.array([width, height], "<u2").tobytes()
        out = b"GIF89a" + size + b"\xf1\0\0" + bytes.fromhex("000000ff00000000ffffffff")
        for pixels in frames:
            # Codes of three bits. After a "clear" (4) each is a pixel; 5 is the end.
            codes = [c for p in pixels for c in (4, p)] + [5]
            bits = sum(code << 3 * i for i, code in enumerate(codes))
            data = bits.to_bytes((3 * len(codes) + 7) // 8, "little")
            out += b"," + b"\0" * 4 + size + b"\0\2" + bytes([len(data)]) + data + b"\0"
        return out + b";"

    @staticmethod
    def bmp(pixels):
        height, width, _ = pixels.shape
        row = (width * 3 + 3) // 4 * 4
        header = b"BM" + np.array([54 + row * height, 0, 54, 40, width, height], "<u4").tobytes()
        header += np.array([1, 24], "<u2").tobytes() + np.array([0] * 6, "<u4").tobytes()
        rows = [pixels[y, :, ::-1].tobytes().ljust(row, b"\0") for y in reversed(range(height))]
        return header + b"".join(rows)

    # ---- batches and results

    def test_batches(self):
        images = np.random.RandomState(2).randint(0, 256, [5, 5, 4, 3]).astype(np.uint8)
        for i, image in enumerate(images):
            self.put("photos/%d.png" % i, tf.io.encode_png(image).numpy())
        want = images.astype(np.float32) * np.float32(1 / 255)
        self.expect_value("rgb=photos", want, tolerance=1e-6)
        self.expect_value("rgb=photos/?.png", want, tolerance=1e-6)
        self.expect_value("rgb=photos", want, options=["--batch", "2"], tolerance=1e-6)
        self.put("photos/notes.md", "text")
        self.expect_error("rgb=photos", "photos/notes.md", "its contents are no array")
        self.expect_value("rgb=photos/*.png", want, tolerance=1e-6)
        self.put("mixed/a.png", tf.io.encode_png(images[0]).numpy())
        self.put("mixed/b.png", tf.io.encode_png(images[0, :3]).numpy())
        self.expect_error("same=mixed", "values of one shape", "a.png", "b.png")
        self.put("deep/inner/a.png", "")
        self.expect_error("rgb=deep", "deep: it has the folder inner in it")
        self.expect_error("rgb=none/*.png", "NOT_FOUND", "no file matches")
        x = np.arange(30, dtype=np.float32).reshape(10, 3)
        np.savez(self.path("xs.npz"), x=x, v=np.zeros(9, np.float32))
        got = self.fetch(["sum", "mean"], "--feed", "x=xs.npz", "--batch", "4")
        self.expect(not isinstance(got, str) and np.allclose(got["sum"], x.sum(1)) and
                    np.allclose(got["mean"], [x[:4].mean(), x[4:8].mean(), x[8:].mean()]),
                    "rows are joined, scalars are stacked: %s" % (got,))
        self.expect_error("xs.npz", "one feed has", fetch="sum", options=["--batch", "4"])
        self.expect_error("x=[[1, 2, 3]]", "no feed has rows", fetch="sum",
                          options=["--batch", "4"])
        self.expect_error("x=xs.npz", "not both", fetch="sum",
                          options=["--batch", "4", "--repeat", "2"])

    def test_results(self):
        x = np.array([[0.1, np.nan, -np.inf], [4, 5e-30, 6]], np.float32)
        np.save(self.path("x.npy"), x)
        self.put("w.json", json.dumps(["a,b", "\u00e9\"\n"]))
        args = ["--feed", "x=x.npy", "--feed", "w=w.json", "--fetch", "x_out", "--fetch", "w_out:0"]
        for name in ["all.npz", "all.csv", "all.jsonl"]:
            done = self.run(*args, "--out", name)
            self.expect(done.returncode == 0, "%s: %s" % (name, done.stderr.strip()))
        with np.load(self.path("all.npz")) as out:
            self.expect(sorted(out) == ["w_out", "x_out"] and
                        np.array_equal(out["x_out"], x, equal_nan=True) and
                        out["w_out"].tolist() == [b"a,b", "\u00e9\"\n".encode()], "npz")
        with open(self.path("all.csv"), newline="") as file:
            rows = list(csv.reader(file))
        self.expect(rows[0] == ["x_out.0", "x_out.1", "x_out.2", "w_out"] and
                    np.array_equal(np.array([row[:3] for row in rows[1:]], np.float32), x,
                                   equal_nan=True) and
                    [row[3] for row in rows[1:]] == ["a,b", "\u00e9\"\n"], "csv: %s" % rows)
        with open(self.path("all.jsonl")) as file:
            rows = [json.loads(line) for line in file]
        self.expect(np.array_equal(np.array([row["x_out"] for row in rows], np.float32), x,
                                   equal_nan=True) and
                    [row["w_out"] for row in rows] == ["a,b", "\u00e9\"\n"], "jsonl: %s" % rows)
        for name in ["y.npy", "y.csv"]:
            self.run(*args[:4], "--fetch", "x_out=" + name)
        self.expect(np.array_equal(np.load(self.path("y.npy")), x, equal_nan=True), "npy")
        self.expect(np.array_equal(np.loadtxt(self.path("y.csv"), np.float32, delimiter=","), x,
                                   equal_nan=True), "numpy.loadtxt reads a CSV file of one result")
        self.run(*args[:4], "--fetch", "w_out=w.npy")
        self.expect(np.load(self.path("w.npy")).tolist() == [b"a,b", "\u00e9\"\n".encode()],
                    "strings in an npy file")
        for args_of_error, words in [
                (["--fetch", "x_out=y.txt"], "ends in .npy, .npz, .csv"),
                (["--fetch", "x_out=y.npy", "--fetch", "w_out=y.npy"], "holds one value"),
                (["--fetch", "x_out", "--fetch", "mean", "--out", "y.csv"],
                 "'mean' has 1 rows, but 'x_out' has 2")]:
            done = self.run(*args[:4], *args_of_error)
            self.expect(done.returncode == 1 and words in done.stderr, done.stderr.strip())


def main():
    with tempfile.TemporaryDirectory() as folder:
        test = Test(*map(os.path.abspath, sys.argv[1:3]), folder)
        for name in sorted(dir(test)):
            if name.startswith("test_"):
                getattr(test, name)()
        print("%d faults" % test.faults)
        return test.faults > 0


if __name__ == "__main__":
    sys.exit(main())
