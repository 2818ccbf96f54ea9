#!/usr/bin/env python3
"""Models that TensorFlow 1, TensorFlow 2 and Keras 3 export give the same values when they are served.

Skipped without TensorFlow.
usage: served_models_test.py CALL_MODEL
"""

import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

try:
    import numpy as np
    import tensorflow as tf
    from tensorflow.core.protobuf import named_tensor_pb2
except ImportError as error:
    print("SKIPPED: no TensorFlow to compare with (%s)" % error)
    sys.exit(0)

tf.get_logger().setLevel("ERROR")
v1 = tf.compat.v1
saved_model = v1.saved_model
RANDOM = np.random.RandomState(7)
WORDS = ["zero", "one", "two", "three"]


def example(**features):
    """A serialized tf.Example of floats and strings."""
    message = tf.train.Example()
    for name, value in features.items():
        if isinstance(value, str):
            message.features.feature[name].bytes_list.value.append(value.encode())
        else:
            message.features.feature[name].float_list.value.append(value)
    return message.SerializeToString()


EXAMPLES = np.array([example(x=0.5, word="one"), example(x=-2., word="none"), example(x=3., word="three")], object)


class Model:
    """A model in a folder, with calls of it."""

    def __init__(self, folder):
        self.base = folder
        self.path = os.path.join(folder, "1")
        self.calls = []  # signature, method, inputs, the results of TensorFlow

    def call(self, signature, inputs, want, method="predict"):
        self.calls.append((signature, method, inputs, {k: np.asarray(v) for k, v in want.items()}))

    def call_all(self, **inputs_of):
        """Records what TensorFlow 2 computes for signatures of the model."""
        signatures = tf.saved_model.load(self.path).signatures
        for name, inputs in inputs_of.items():
            want = signatures[name](**{k: tf.constant(v) for k, v in inputs.items()})
            self.call(name, inputs, {k: v.numpy() for k, v in want.items()})


def vocabulary(folder):
    path = os.path.join(folder, "words.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(WORDS) + "\n")
    return path


def save_v1(model, session, signatures, **options):
    builder = saved_model.Builder(model.path)
    builder.add_meta_graph_and_variables(session, ["serve"], signatures, **options)
    builder.save()


def v1_network(model):
    """Two layers with reference variables, and two signatures."""
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        x = v1.placeholder(tf.float32, [None, 4], "x")
        with v1.variable_scope("net", use_resource=False):
            w = v1.get_variable("w", [4, 5])
            b = v1.get_variable("b", [5], initializer=v1.random_normal_initializer())
        hidden = tf.nn.relu(tf.matmul(x, w) + b)
        best = tf.argmax(hidden, axis=1)
        session.run(v1.global_variables_initializer())
        predict = saved_model.predict_signature_def
        save_v1(model, session, {"serving_default": predict({"x": x}, {"hidden": hidden}),
                                 "best": predict({"x": x}, {"best": best, "hidden": hidden})})
        feed = RANDOM.randn(3, 4).astype(np.float32)
        values = session.run([hidden, best], {x: feed})
        model.call("", {"x": feed}, {"hidden": values[0]})
        model.call("best", {"x": feed}, {"hidden": values[0], "best": values[1]})


def v1_vocabulary(model):
    """Strings, a table that reads an asset, integers."""
    with tf.Graph().as_default(), v1.Session() as session:
        words = v1.placeholder(tf.string, [None, None], "words")
        table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(vocabulary(model.base), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                                          tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
        ids = table.lookup(words)
        session.run(v1.tables_initializer())
        save_v1(model, session,
                {"serving_default": saved_model.predict_signature_def({"words": words}, {"ids": ids})},
                main_op=v1.tables_initializer(),
                assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS))
        feed = np.array([["one", "none"], ["three", ""]], object)
        model.call("", {"words": feed}, {"ids": session.run(ids, {words: feed})})


def v1_examples(model):
    """Signatures for Classify and Regress, which take tf.Examples."""
    with tf.Graph().as_default(), v1.Session() as session:
        serialized = v1.placeholder(tf.string, [None], "examples")
        features = v1.io.parse_example(serialized, {"x": v1.FixedLenFeature([], tf.float32)})
        w = v1.get_variable("w", initializer=tf.constant([2., -1., 0.5]))
        scores = tf.nn.softmax(features["x"][:, None] * w)
        classes = tf.tile(tf.constant([["a", "b", "c"]]), [tf.shape(scores)[0], 1])
        session.run(v1.global_variables_initializer())
        save_v1(model, session, {
            "serving_default": saved_model.classification_signature_def(serialized, classes, scores),
            "regress": saved_model.regression_signature_def(serialized, scores[:, 0])})
        want = dict(zip(["classes", "scores"], session.run([classes, scores], {serialized: EXAMPLES})))
        model.call("serving_default", {"inputs": EXAMPLES}, want, "classify")
        model.call("serving_default", {"inputs": EXAMPLES}, want)
        model.call("regress", {"inputs": EXAMPLES}, {"outputs": want["scores"][:, 0]}, "regress")


def frozen_graph(model):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], "x")
        steps = v1.placeholder(tf.int32, [], "steps")
        w = v1.get_variable("w", [3, 3])
        _, y = tf.while_loop(lambda i, h: i < steps, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])
        y = tf.identity(y, "y")
        session.run(v1.global_variables_initializer())
        frozen = v1.graph_util.convert_variables_to_constants(session, session.graph_def, ["y"])
        os.makedirs(model.path)
        with open(os.path.join(model.path, "frozen.pb"), "wb") as file:
            file.write(frozen.SerializeToString())
        feed = RANDOM.randn(2, 3).astype(np.float32)
        model.call("", {"x": feed, "steps": np.int32(4)}, {"y": session.run(y, {x: feed, steps: 4})})


class Statistics(tf.Module):
    """Several functions, unknown dimensions, results of several types."""

    def __init__(self):
        super().__init__()
        self.scale = tf.Variable([1.5, -2.], name="scale")

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32, "values")])
    def summary(self, values):
        return {"sum": tf.reduce_sum(values), "count": tf.size(values, tf.int64), "shape": tf.shape(values),
                "any": tf.reduce_any(values > 1), "double": tf.cast(values, tf.float64) * 2}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([], tf.bool)])
    def scaled(self, x, negate):
        return {"y": tf.cond(negate, lambda: -x * self.scale, lambda: x * self.scale)}


def module(model):
    statistics = Statistics()
    tf.saved_model.save(statistics, model.path,
                        {"serving_default": statistics.summary, "scaled": statistics.scaled})
    model.call_all(serving_default={"values": RANDOM.randn(2, 3, 2).astype(np.float32)},
                   scaled={"x": RANDOM.randn(3, 2).astype(np.float32), "negate": np.bool_(True)})
    model.call_all(serving_default={"values": np.float32(2)})


class Text(tf.Module):
    """Strings, ragged tensors inside, a table with an asset, a table of constants."""

    def __init__(self, words):
        super().__init__()
        self.words = tf.saved_model.Asset(words)
        self.table = tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(self.words.asset_path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                                          tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 2)
        self.names = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant([0, 1], tf.int64), tf.constant(["no", "yes"])), "?")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, text):
        tokens = tf.strings.split(tf.strings.lower(text))
        ids = self.table.lookup(tokens.to_tensor(""))
        return {"ids": ids, "lengths": tokens.row_lengths(), "names": self.names.lookup(ids),
                "first": tf.strings.substr(text, 0, 2)}


def text_module(model):
    text = Text(vocabulary(model.base))
    tf.saved_model.save(text, model.path, text.__call__)
    model.call_all(serving_default={"text": np.array([b"One two", b"", b"three x zero", b"\xff"], object)})


def keras(model, network, inputs):
    """Exports with Keras 3, and compares with the exported signature and with the network itself."""
    network.export(model.path, verbose=False)
    model.call_all(serving_default=inputs)
    want = network.predict(list(inputs.values()) if len(inputs) > 1 else tf.constant(next(iter(inputs.values()))),
                           verbose=0)
    exported = next(iter(model.calls[0][3].values()))
    assert np.allclose(exported, want, atol=1e-5)


def keras_mlp(model):
    layers = tf.keras.layers
    network = tf.keras.Sequential([tf.keras.Input([8], name="features"), layers.Dense(16, "gelu"),
                                   layers.LayerNormalization(), layers.Dropout(0.5), layers.Dense(3, "softmax")])
    keras(model, network, {"features": RANDOM.randn(5, 8).astype(np.float32)})


def keras_convolution(model):
    layers = tf.keras.layers
    network = tf.keras.Sequential([
        tf.keras.Input([None, None, 3], name="image"), layers.Conv2D(4, 3, strides=2, padding="same"),
        layers.BatchNormalization(), layers.ReLU(6.), layers.DepthwiseConv2D(3, padding="same"),
        layers.SeparableConv2D(6, 3), layers.GlobalAveragePooling2D(), layers.Dense(2)])
    keras(model, network, {"image": RANDOM.rand(2, 17, 12, 3).astype(np.float32)})


def keras_sequence(model):
    layers = tf.keras.layers
    network = tf.keras.Sequential([
        tf.keras.Input([None], dtype="int32", name="ids"), layers.Embedding(20, 6, mask_zero=True),
        layers.Bidirectional(layers.LSTM(5, return_sequences=True)), layers.GRU(4), layers.Dense(1, "sigmoid")])
    keras(model, network, {"ids": np.array([[3, 4, 5, 0], [7, 0, 0, 0]], np.int32)})


def keras_two_inputs(model):
    layers = tf.keras.layers
    left, right = tf.keras.Input([4], name="left"), tf.keras.Input([6, 4], name="right")
    attended = layers.MultiHeadAttention(2, 3)(right, right)
    joined = layers.Concatenate()([layers.Dense(4)(left), layers.GlobalMaxPooling1D()(attended)])
    network = tf.keras.Model([left, right], layers.Dense(2)(joined))
    keras(model, network, {"left": RANDOM.randn(3, 4).astype(np.float32),
                           "right": RANDOM.randn(3, 6, 4).astype(np.float32)})


def keras_text(model):
    layers = tf.keras.layers
    vectorize = layers.TextVectorization(output_sequence_length=5, vocabulary=WORDS)
    network = tf.keras.Sequential([tf.keras.Input([1], dtype="string", name="text"), vectorize,
                                   layers.Embedding(10, 3), layers.Flatten(), layers.Dense(2)])
    keras(model, network, {"text": np.array([["One, two!"], ["none of three"]], object)})


MODELS = [v1_network, v1_vocabulary, v1_examples, frozen_graph, module, text_module, keras_mlp, keras_convolution,
          keras_sequence, keras_two_inputs, keras_text]


def write_tensors(path, tensors):
    with tf.io.TFRecordWriter(path) as writer:
        for name, value in tensors.items():
            named = named_tensor_pb2.NamedTensorProto(name=name, tensor=tf.make_tensor_proto(value))
            writer.write(named.SerializeToString())


def read_tensors(path):
    tensors = {}
    for record in v1.io.tf_record_iterator(path):
        named = named_tensor_pb2.NamedTensorProto.FromString(record)
        tensors[named.name] = tf.make_ndarray(named.tensor)
    return tensors


def difference(got, want):
    """What is wrong with a result, or None."""
    if sorted(got) != sorted(want):
        return "returns %s, not %s" % (sorted(got), sorted(want))
    for name, value in want.items():
        other = got[name]
        if value.shape != other.shape or value.dtype != other.dtype:
            return "%s is %s%s, not %s%s" % (name, other.dtype, other.shape, value.dtype, value.shape)
        if value.dtype.kind == "f":
            if not np.allclose(value, other, rtol=1e-4, atol=1e-5):
                return "%s: %g apart" % (name, np.max(np.abs(value - other)))
        elif not np.array_equal(value, other):
            return "%s: %s, not %s" % (name, other.tolist(), value.tolist())
    return None


def serve(call_model, model, signature, method, inputs):
    """Returns the results of a call, or the error as text."""
    write_tensors(model.base + "/inputs", inputs)
    done = subprocess.run([call_model, model.base, signature, method, model.base + "/inputs",
                           model.base + "/outputs"], capture_output=True, text=True)
    return read_tensors(model.base + "/outputs") if done.returncode == 0 else done.stderr.strip()


def main():
    faults = 0
    for make in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            model = Model(folder)
            make(model)
            for signature, method, inputs, want in model.calls:
                got = serve(os.path.abspath(sys.argv[1]), model, signature, method, inputs)
                why = got if isinstance(got, str) else difference(got, want)
                print("%s  %s %s of %s%s" % ("FAIL" if why else "ok  ", method, signature or "serving_default",
                                             make.__name__, ": " + why if why else ""), flush=True)
                faults += why is not None
    print("%d models, %d faults" % (len(MODELS), faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
