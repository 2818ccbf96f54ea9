"""Models of many kinds, as TensorFlow 1 and 2, tf_keras and Keras 3 save them.

`all_models()` is {name: function that writes the model to a folder and returns its calls}. A call is (signature or "", inputs):
the name of a signature, or of a function of a model without signatures, and arrays by the names of its inputs.
"""

import os

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
Spec = tf.TensorSpec

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


def floats(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def texts(*values):
    return np.array([v.encode() for v in values], object)


def save(folder, *specs, **state):
    """Decorates a function(module, inputs): saves it as the signature of a module with this state. Returns nothing."""
    def save_function(function):
        module = tf.Module()
        for name, value in state.items():
            setattr(module, name, value)
        module.f = tf.function(lambda *args: function(module, *args), input_signature=specs)
        tf.saved_model.save(module, folder, signatures=module.f)
    return save_function


def vocabulary(folder, *words):
    path = folder + ".txt"
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(word + "\n" for word in words))
    return tf.lookup.TextFileInitializer(path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                                         tf.lookup.TextFileIndex.LINE_NUMBER)


def example(**features):
    kinds = {float: lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v)),
             int: lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v)),
             bytes: lambda v: tf.train.Feature(bytes_list=tf.train.BytesList(value=v))}
    return tf.train.Example(features=tf.train.Features(
        feature={name: kinds[type(value[0])](value) for name, value in features.items()})).SerializeToString()


# ---- text and tables

@model
def words_of_a_vocabulary(folder):
    table = tf.lookup.StaticVocabularyTable(vocabulary(folder, "cat", "dog", "bird"), 3)

    @save(folder, Spec([None], tf.string, name="words"), table=table, weights=tf.Variable(floats(6, 4)))
    def _(m, words):
        return tf.nn.embedding_lookup(m.weights, m.table.lookup(tf.strings.lower(words)))
    return [("serving_default", {"words": texts("Cat", "fish", "BIRD", "cow")})]


@model
def cleaned_and_split(folder):
    @save(folder, Spec([None], tf.string, name="lines"))
    def _(_, lines):
        clean = tf.strings.regex_replace(tf.strings.lower(lines), r"[^a-z ]", " ")
        words = tf.strings.split(clean)
        return {"words": words.to_tensor(""), "lengths": words.row_lengths(),
                "joined": tf.strings.reduce_join(words, axis=-1, separator="_"),
                "letters": tf.strings.unicode_split(lines, "UTF-8").to_tensor("")}
    return [("serving_default", {"lines": texts("The cat, a dog!", "", "größer als 3")})]


@model
def numbers_as_text(folder):
    @save(folder, Spec([None], tf.string, name="numbers"), Spec([None], name="x"))
    def _(_, numbers, x):
        return {"parsed": tf.strings.to_number(numbers), "shown": tf.strings.as_string(x, precision=3),
                "hashed": tf.strings.to_hash_bucket_fast(numbers, 1000), "strong": tf.strings.to_hash_bucket_strong(numbers, 99, [1, 2]),
                "coded": tf.io.encode_base64(numbers), "part": tf.strings.substr(numbers, 0, 2)}
    return [("serving_default", {"numbers": texts("1.5", "-2e3", "0.25"), "x": floats(4)})]


@model
def mutable_tables(folder):
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, -1.0)
    table.insert(tf.constant(["a", "b"]), tf.constant([0.5, 1.5]))
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, empty_key=-2, deleted_key=-3)
    dense.insert(tf.constant([5, 6], tf.int64), tf.constant([50, 60], tf.int64))

    @save(folder, Spec([None], tf.string, name="keys"), Spec([None], tf.int64, name="ids"), table=table, dense=dense)
    def _(m, keys, ids):
        return {"values": m.table.lookup(keys), "of_ids": m.dense.lookup(ids)}
    return [("serving_default", {"keys": texts("a", "z", "b"), "ids": np.array([6, 7], np.int64)})]


# ---- ragged, sparse, examples

@model
def ragged_sums(folder):
    @save(folder, Spec([None], name="values"), Spec([None], tf.int64, name="lengths"))
    def _(_, values, lengths):
        rows = tf.RaggedTensor.from_row_lengths(values, lengths)
        doubled = tf.concat([rows, rows * 2], axis=1)
        return {"sum": tf.reduce_sum(rows, axis=1), "max": tf.reduce_max(doubled, axis=1), "flat": doubled.flat_values,
                "dense": doubled.to_tensor(-1), "sorted": tf.sort(doubled.to_tensor(0), axis=1)}
    return [("serving_default", {"values": floats(6), "lengths": np.array([2, 0, 3, 1], np.int64)})]


@model
def sparse_products(folder):
    @save(folder, Spec([None, 2], tf.int64, name="indices"), Spec([None], name="values"), w=tf.Variable(floats(5, 3)))
    def _(m, indices, values):
        matrix = tf.sparse.reorder(tf.SparseTensor(indices, values, [4, 5]))
        ids = tf.SparseTensor(matrix.indices, tf.cast(matrix.indices[:, 1], tf.int64), matrix.dense_shape)
        return {"product": tf.sparse.sparse_dense_matmul(matrix, m.w), "dense": tf.sparse.to_dense(matrix),
                "rows": tf.sparse.reduce_sum(matrix, axis=1), "softmax": tf.sparse.softmax(matrix).values,
                "embedded": tf.nn.safe_embedding_lookup_sparse(m.w, ids, combiner="sqrtn")}
    return [("serving_default", {"indices": np.array([[2, 1], [0, 3], [0, 0]], np.int64), "values": floats(3)})]


@model
def parsed_examples(folder):
    features = {"x": tf.io.FixedLenFeature([2], tf.float32), "n": tf.io.FixedLenFeature([], tf.int64, 7),
                "s": tf.io.VarLenFeature(tf.string),
                "r": tf.io.RaggedFeature(tf.float32, row_splits_dtype=tf.int64)}

    @save(folder, Spec([None], tf.string, name="examples"), w=tf.Variable(floats(2, 3)))
    def _(m, serialized):
        parsed = tf.io.parse_example(serialized, features)
        return {"y": tf.matmul(parsed["x"], m.w), "n": parsed["n"], "s": tf.sparse.to_dense(parsed["s"]),
                "r": tf.reduce_sum(parsed["r"], axis=1)}
    records = np.array([example(x=[1.0, 2.0], s=[b"a", b"b"], r=[1.0, 2.5]), example(x=[3.0, -1.0], n=[9])], object)
    return [("serving_default", {"examples": records})]


# ---- audio and images

@model
def log_mel_spectrogram(folder):
    @save(folder, Spec([None, 2048], name="wave"))
    def _(_, wave):
        power = tf.abs(tf.signal.stft(wave, 256, 128))
        mel = tf.tensordot(power, tf.signal.linear_to_mel_weight_matrix(20, 129, 8000), 1)
        log = tf.math.log(mel + 1e-3)
        return {"log_mel": log, "mfcc": tf.signal.mfccs_from_log_mel_spectrograms(log)[..., :13]}
    return [("serving_default", {"wave": floats(2, 2048) * 0.1})]


@model
def decoded_audio(folder):
    @save(folder, Spec([], tf.string, name="wav"))
    def _(_, wav):
        audio, rate = tf.audio.decode_wav(wav)
        spectrogram = tf.raw_ops.AudioSpectrogram(input=audio, window_size=128, stride=64)
        return {"audio": audio, "rate": rate, "mfcc": tf.raw_ops.Mfcc(spectrogram=spectrogram, sample_rate=rate)}
    wav = tf.audio.encode_wav(0.5 * np.sin(np.arange(800, dtype=np.float32))[:, None], 8000).numpy()
    return [("serving_default", {"wav": np.array(wav, object)})]


@model
def decoded_images(folder):
    @save(folder, Spec([None], tf.string, name="files"), kernel=tf.Variable(floats(3, 3, 3, 4)))
    def _(m, files):
        images = tf.map_fn(lambda f: tf.image.resize(tf.io.decode_image(f, 3, expand_animations=False), [16, 20]), files,
                           fn_output_signature=tf.float32)
        return {"images": images, "y": tf.nn.conv2d(images / 255, m.kernel, 2, "SAME")}
    pixels = (np.random.default_rng(2).uniform(size=(30, 40, 3)) * 255).astype(np.uint8)
    files = np.array([tf.io.encode_jpeg(pixels).numpy(), tf.io.encode_png(pixels[:11]).numpy()], object)
    return [("serving_default", {"files": files})]


@model
def augmented_images(folder):
    @save(folder, Spec([None, 12, 10, 3], name="images"))
    def _(_, images):
        return {"contrast": tf.image.adjust_contrast(images, 1.5), "hue": tf.image.adjust_hue(images, 0.1),
                "gray": tf.image.rgb_to_grayscale(images), "flipped": tf.image.flip_left_right(images),
                "cropped": tf.image.crop_and_resize(images, [[0.1, 0.2, 0.9, 0.8]], [0], [5, 6]),
                "cubic": tf.image.resize(images, [7, 9], "bicubic", antialias=True),
                "patches": tf.image.extract_patches(images, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
                "edges": tf.image.sobel_edges(images), "total": tf.image.total_variation(images)}
    return [("serving_default", {"images": np.abs(floats(2, 12, 10, 3)) / 4})]


@model
def detections(folder):
    @save(folder, Spec([1, 40, 4], name="boxes"), Spec([1, 40, 3], name="scores"))
    def _(_, boxes, scores):
        best = tf.image.combined_non_max_suppression(boxes[:, :, None], scores, 5, 8, 0.5, 0.2)
        kept = tf.image.non_max_suppression(boxes[0], scores[0, :, 0], 6, 0.4)
        return {"boxes": best[0], "scores": best[1], "classes": best[2], "count": best[3], "kept": tf.gather(boxes[0], kept)}
    corners = np.random.default_rng(3).uniform(size=(1, 40, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + 0.3], axis=-1)
    return [("serving_default", {"boxes": boxes, "scores": np.abs(floats(1, 40, 3)) / 3})]


# ---- random numbers and state

@model
def stateless_draws(folder):
    @save(folder, Spec([2], tf.int32, name="seed"))
    def _(_, seed):
        return {"normal": tf.random.stateless_normal([5], seed), "uniform": tf.random.stateless_uniform([3], seed, 0, 99, tf.int32),
                "truncated": tf.random.stateless_truncated_normal([4], seed),
                "gamma": tf.random.stateless_gamma([4], seed, [0.5, 2.0, 1.0, 9.0]),
                "categorical": tf.random.stateless_categorical([[0.1, 2.0, 1.0]], 6, seed),
                "shuffled": tf.random.experimental.stateless_shuffle(tf.range(9), seed)}
    return [("serving_default", {"seed": np.array([3, 4], np.int32)})]


@model
def seeded_draws(folder):
    tf.random.set_seed(5)

    @save(folder, Spec([None, 4], name="x"))
    def _(_, x):
        return {"dropped": tf.nn.dropout(x, 0.4, seed=1), "noise": x + tf.random.normal([4], seed=2),
                "order": tf.random.shuffle(tf.range(7), seed=3)}
    return [("serving_default", {"x": floats(3, 4)})]


@model
def generator_state(folder):
    @save(folder, Spec([], name="scale"), generator=tf.random.Generator.from_seed(9, alg="philox"))
    def _(m, scale):
        return {"normal": scale * m.generator.normal([4]), "count": m.generator.uniform([3], 0, 50, tf.int32)}
    return [("serving_default", {"scale": np.float32(2)})]


@model
def counter(folder):
    @save(folder, Spec([], name="by"), total=tf.Variable(1.0), calls=tf.Variable(0, dtype=tf.int64))
    def _(m, by):
        m.calls.assign_add(1)
        m.total.assign_add(by)
        return {"total": m.total.read_value(), "calls": m.calls.read_value()}
    return [("serving_default", {"by": np.float32(2.5)})]


# ---- control flow

@model
def loops(folder):
    @save(folder, Spec([], tf.int32, name="n"), Spec([None, 3], name="x"), w=tf.Variable(floats(3, 3) / 2))
    def _(m, n, x):
        _, power = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.tanh(y @ m.w)), (0, x))
        sums = tf.scan(lambda a, b: a + b, x)
        squares = tf.map_fn(lambda row: tf.reduce_sum(row ** 2), x)
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for i in tf.range(n):
            array = array.write(i, tf.cast(i, tf.float32) * x[0])
        return {"power": power, "sums": sums, "squares": squares, "stacked": array.stack()}
    return [("serving_default", {"n": np.int32(4), "x": floats(5, 3)})]


@model
def branches(folder):
    @save(folder, Spec([], tf.int32, name="which"), Spec([4], name="x"))
    def _(_, which, x):
        picked = tf.switch_case(which, [lambda: x, lambda: x * 2, lambda: tf.sort(x)], default=lambda: -x)
        both = tf.cond(tf.reduce_sum(x) > 0, lambda: (x + 1, which), lambda: (x - 1, -which))
        return {"picked": picked, "x": both[0], "which": both[1], "where": tf.where(x > 0, x, 0.0), "found": tf.where(x > 0)}
    return [("serving_default", {"which": np.int32(n), "x": floats(4, seed=n)}) for n in (1, 2, 7)]


@model
def gradients_inside(folder):
    @save(folder, Spec([None, 3], name="x"), w=tf.Variable(floats(3, 2)))
    def _(m, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.nn.softplus(x @ m.w) ** 2)
        dx, dw = tape.gradient(y, [x, m.w])
        return {"y": y, "dx": dx, "dw": dw}
    return [("serving_default", {"x": floats(4, 3)})]


@model
def several_signatures(folder):
    module = tf.Module()
    module.w = tf.Variable(floats(3, 2))
    module.forward = tf.function(lambda x: {"y": x @ module.w}, input_signature=[Spec([None, 3], name="x")])
    module.back = tf.function(lambda y: {"x": tf.matmul(y, module.w, transpose_b=True)}, input_signature=[Spec([None, 2], name="y")])
    tf.saved_model.save(module, folder, signatures={"forward": module.forward, "back": module.back})
    return [("forward", {"x": floats(4, 3)}), ("back", {"y": floats(4, 2)})]


@model
def without_signatures(folder):
    module = tf.Module()
    module.w = tf.Variable(floats(3, 2))
    module.encode = tf.function(lambda x: tf.nn.relu(x @ module.w), input_signature=[Spec([None, 3], name="x")])
    tf.saved_model.save(module, folder)
    return [("encode", {"x": floats(4, 3)})]


# ---- mathematics

@model
def attention(folder):
    @save(folder, Spec([None, None, 8], name="x"), Spec([None], tf.int32, name="lengths"),
          q=tf.Variable(floats(8, 2, 4)), k=tf.Variable(floats(8, 2, 4, seed=2)), v=tf.Variable(floats(8, 2, 4, seed=3)))
    def _(m, x, lengths):
        q, k, v = (tf.einsum("bti,ihd->bhtd", x, w) for w in (m.q, m.k, m.v))
        scores = tf.einsum("bhtd,bhsd->bhts", q, k) / 2.0
        mask = tf.sequence_mask(lengths, tf.shape(x)[1], tf.float32)
        scores += (1 - mask[:, None, None]) * -1e9
        return {"y": tf.einsum("bhts,bhsd->bthd", tf.nn.softmax(scores), v), "weights": tf.nn.softmax(scores)}
    return [("serving_default", {"x": floats(2, 5, 8), "lengths": np.array([5, 3], np.int32)})]


@model
def linear_algebra(folder):
    @save(folder, Spec([None, 4, 4], name="a"))
    def _(_, a):
        positive = tf.matmul(a, a, transpose_b=True) + tf.eye(4)
        return {"cholesky": tf.linalg.cholesky(positive), "inverse": tf.linalg.inv(positive), "det": tf.linalg.det(a),
                "values": tf.linalg.eigvalsh(positive), "singular": tf.linalg.svd(a, compute_uv=False),
                "solved": tf.linalg.solve(positive, a), "band": tf.linalg.band_part(a, 1, 0), "exp": tf.linalg.expm(a / 4),
                "trace": tf.linalg.trace(a), "norm": tf.norm(a, axis=[-2, -1])}
    return [("serving_default", {"a": floats(3, 4, 4)})]


@model
def transforms_and_complex(folder):
    @save(folder, Spec([None, 16], name="x"))
    def _(_, x):
        spectrum = tf.signal.rfft(x)
        return {"real": tf.math.real(spectrum), "angle": tf.math.angle(spectrum + 2), "back": tf.signal.irfft(spectrum * 0.5),
                "dct": tf.signal.dct(x, norm="ortho"), "spectrum": spectrum, "frames": tf.signal.frame(x, 4, 2)}
    return [("serving_default", {"x": floats(2, 16)})]


@model
def integers(folder):
    @save(folder, Spec([None], tf.int32, name="n"))
    def _(_, n):
        values, index, counts = tf.unique_with_counts(n)
        return {"and": tf.bitwise.bitwise_and(n, 6), "shift": tf.bitwise.left_shift(n, 2), "sum": tf.cumsum(n, reverse=True, exclusive=True),
                "values": values, "index": index, "counts": counts, "bins": tf.math.bincount(tf.abs(n), minlength=9),
                "found": tf.searchsorted(tf.range(0, 30, 4), n), "mod": n % 5, "div": n // 3, "top": tf.math.top_k(n, 3).indices,
                "one_hot": tf.one_hot(n, 4, dtype=tf.int8), "segments": tf.math.unsorted_segment_max(n, tf.abs(n) % 3, 3)}
    return [("serving_default", {"n": np.array([5, -3, 8, 5, 1, 0], np.int32)})]


@model
def convolutions(folder):
    @save(folder, Spec([None, 9, 8, 4], name="x"), Spec([None, 5, 6, 4, 2], name="volume"), depth=tf.Variable(floats(3, 3, 4, 2)),
          point=tf.Variable(floats(1, 1, 8, 5)), up=tf.Variable(floats(3, 3, 6, 4)), cube=tf.Variable(floats(2, 2, 2, 2, 3)))
    def _(m, x, volume):
        return {"separable": tf.nn.separable_conv2d(x, m.depth, m.point, [1, 1, 1, 1], "SAME"),
                "up": tf.nn.conv2d_transpose(x, m.up, [tf.shape(x)[0], 18, 16, 6], 2),
                "dilated": tf.nn.depthwise_conv2d(x, m.depth, [1, 1, 1, 1], "SAME", dilations=[2, 2]),
                "cube": tf.nn.conv3d(volume, m.cube, [1, 1, 1, 1, 1], "VALID"), "pool": tf.nn.avg_pool3d(volume, 2, 2, "SAME"),
                "normal": tf.nn.local_response_normalization(x), "blocks": tf.nn.depth_to_space(x, 2)}
    return [("serving_default", {"x": floats(2, 9, 8, 4), "volume": floats(1, 5, 6, 4, 2)})]


# ---- narrow types

@model
def fake_quantized(folder):
    @save(folder, Spec([None, 6], name="x"), w=tf.Variable(floats(6, 4)))
    def _(m, x):
        w = tf.quantization.fake_quant_with_min_max_vars(m.w, -2.0, 2.0)
        y = tf.nn.relu(tf.quantization.fake_quant_with_min_max_args(x, -4, 4) @ w)
        return {"y": tf.quantization.fake_quant_with_min_max_vars(y, 0.0, 6.0, num_bits=4)}
    return [("serving_default", {"x": floats(3, 6)})]


@model
def quantized(folder):
    @save(folder, Spec([3, 6], name="x"))
    def _(_, x):
        parts = tf.quantization.quantize(x, -3.0, 3.0, tf.quint8)
        return {"back": tf.quantization.dequantize(*parts), "bytes": tf.cast(tf.bitcast(parts[0], tf.uint8), tf.int32),
                "both": tf.quantization.quantize_and_dequantize_v2(x, -2.0, 2.0)}
    return [("serving_default", {"x": floats(3, 6)})]


@model
def narrow_floats(folder):
    @save(folder, Spec([None, 8], name="x"), w=tf.Variable(tf.cast(floats(8, 3), tf.bfloat16)), h=tf.Variable(floats(8, 3).astype(np.float16)))
    def _(m, x):
        return {"bfloat16": tf.cast(tf.nn.softmax(tf.matmul(tf.cast(x, tf.bfloat16), m.w)), tf.float32),
                "half": tf.cast(tf.nn.relu(tf.cast(x, tf.float16) @ m.h), tf.float32),
                "doubles": tf.cast(x, tf.float64) ** 3}
    return [("serving_default", {"x": floats(4, 8)})]


# ---- Keras

def keras_model(folder, keras, network, **inputs):
    """Exports a network with one or several inputs, in the order of `inputs`."""
    if keras.__name__ == "tf_keras":
        network.export(folder)
    else:
        network.export(folder, verbose=False)
    names = list(tf.saved_model.load(folder).signatures["serving_default"].structured_input_signature[1])
    byname = {n: next((v for k, v in inputs.items() if k == n or n.startswith(k)), None) for n in names}
    if any(v is None for v in byname.values()):
        byname = dict(zip(sorted(names), inputs.values()))
    return [("serving_default", byname)]


def mlp(folder, keras):
    layers = keras.layers
    network = keras.Sequential([keras.Input((6,)), layers.Dense(8, "gelu"), layers.BatchNormalization(), layers.Dropout(0.5),
                                layers.Dense(4, "selu"), layers.LayerNormalization(), layers.Dense(3, "softmax")])
    return keras_model(folder, keras, network, x=floats(5, 6))


def images(folder, keras):
    layers = keras.layers
    network = keras.Sequential([
        keras.Input((16, 16, 3)), layers.Resizing(12, 12), layers.Rescaling(0.5), layers.Conv2D(6, 3, activation="relu"),
        layers.DepthwiseConv2D(3, padding="same"), layers.SeparableConv2D(5, 3, strides=2), layers.PReLU(), layers.MaxPooling2D(),
        layers.UpSampling2D(interpolation="bilinear"), layers.Conv2DTranspose(3, 2), layers.GlobalAveragePooling2D(), layers.Dense(2)])
    return keras_model(folder, keras, network, x=floats(2, 16, 16, 3))


def flipped_images(folder, keras):
    layers = keras.layers
    network = keras.Sequential([keras.Input((8, 8, 3)), layers.RandomFlip(seed=4), layers.Flatten(), layers.Dense(2)])
    return keras_model(folder, keras, network, x=floats(2, 8, 8, 3))


def sequences(folder, keras):
    layers = keras.layers
    network = keras.Sequential([keras.Input((7,), dtype="int32"), layers.Embedding(20, 6, mask_zero=True),
                                layers.Bidirectional(layers.LSTM(5, return_sequences=True)), layers.GRU(4), layers.Dense(2)])
    ids = np.array([[3, 4, 5, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6, 19]], np.int32)
    return keras_model(folder, keras, network, ids=ids)


def transformer(folder, keras):
    layers = keras.layers
    x = keras.Input((6, 8), name="x")
    attended = layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    h = layers.LayerNormalization()(layers.Add()([x, attended]))
    y = layers.Dense(8)(layers.Dense(16, activation="gelu")(h))
    network = keras.Model(x, layers.LayerNormalization()(layers.Add()([h, y])))
    return keras_model(folder, keras, network, x=floats(2, 6, 8))


def two_inputs(folder, keras):
    layers = keras.layers
    a, b = keras.Input((3,), name="a"), keras.Input((4,), name="b")
    joined = layers.Concatenate()([layers.Dense(5, activation="tanh")(a), b])
    network = keras.Model([a, b], [layers.Dense(2)(joined), layers.Dot(1)([layers.Dense(4)(a), b])])
    return keras_model(folder, keras, network, a=floats(2, 3), b=floats(2, 4))


def vectorized_text(folder, keras):
    layers = keras.layers
    vectorize = layers.TextVectorization(max_tokens=20, output_sequence_length=6, vocabulary=["the", "cat", "sat", "mat"])
    network = keras.Sequential([keras.Input((1,), dtype="string"), vectorize, layers.Embedding(20, 4), layers.GlobalMaxPooling1D(), layers.Dense(2)])
    lines = np.array([[b"The cat SAT!"], [b"a dog on the mat"]], object)
    return keras_model(folder, keras, network, text=lines)


def tables(folder, keras):
    layers = keras.layers
    age, city, job = keras.Input((1,), name="age"), keras.Input((1,), name="city", dtype="string"), keras.Input((1,), name="job", dtype="string")
    normal = layers.Normalization(mean=30.0, variance=25.0)(age)
    bucket = layers.CategoryEncoding(num_tokens=4, output_mode="one_hot")(layers.Discretization([20.0, 30.0, 40.0])(age))
    where = layers.StringLookup(vocabulary=["rome", "oslo"], output_mode="one_hot")(city)
    hashed = layers.Embedding(8, 3)(layers.Hashing(8)(job))
    joined = layers.Concatenate()([normal, bucket, where, layers.Flatten()(hashed)])
    network = keras.Model([age, city, job], layers.Dense(2)(joined))
    return keras_model(folder, keras, network, age=np.array([[25.0], [41.0]], np.float32),
                       city=np.array([[b"oslo"], [b"bern"]], object), job=np.array([[b"cook"], [b"smith"]], object))


def videos(folder, keras):
    layers = keras.layers
    network = keras.Sequential([keras.Input((4, 8, 8, 2)), layers.ConvLSTM2D(3, 3, return_sequences=True), layers.Conv3D(2, 2),
                                layers.TimeDistributed(layers.Flatten()), layers.SimpleRNN(3)])
    return keras_model(folder, keras, network, x=floats(1, 4, 8, 8, 2))


def mobile_net(folder, keras):
    network = keras.applications.MobileNetV2((32, 32, 3), alpha=0.35, weights=None, classes=5)
    return keras_model(folder, keras, network, x=floats(2, 32, 32, 3))


def _add_keras():
    import keras
    for make in (mlp, images, flipped_images, sequences, transformer, two_inputs, vectorized_text, tables, videos):
        MODELS["keras_" + make.__name__] = lambda folder, make=make: make(folder, keras)
    try:
        import tf_keras
    except ImportError as error:
        print("SKIPPED: models of tf_keras (%s)" % error)
        return
    for make in (mlp, images, flipped_images, sequences, transformer, two_inputs, tables, mobile_net):
        MODELS["tf_keras_" + make.__name__] = lambda folder, make=make: make(folder, tf_keras)


# ---- TensorFlow 1

def save_v1(folder, inputs, outputs, **options):
    """Initializes and saves the default graph."""
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, folder, inputs, outputs, **options)


@model
def v1_reference_variables(folder):
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 3], "x")
        with v1.variable_scope("net", use_resource=False):
            w = v1.get_variable("w", [3, 4], initializer=v1.ones_initializer(), partitioner=v1.fixed_size_partitioner(2))
            step = v1.get_variable("step", initializer=3, trainable=False)
        save_v1(folder, {"x": x}, {"y": tf.matmul(x, tf.convert_to_tensor(w)) * tf.cast(step, tf.float32)})
    return [("serving_default", {"x": floats(2, 3)})]


@model
def v1_dynamic_rnn(folder):
    with tf.Graph().as_default():
        v1.disable_control_flow_v2()
        x, lengths = v1.placeholder(tf.float32, [None, None, 3], "x"), v1.placeholder(tf.int32, [None], "lengths")
        w, state = v1.get_variable("w", initializer=floats(7, 4)), tf.zeros([tf.shape(x)[0], 4])
        array = tf.TensorArray(tf.float32, tf.shape(x)[1]).unstack(tf.transpose(x, [1, 0, 2]))

        def body(t, h):
            new = tf.tanh(tf.concat([array.read(t), h], 1) @ w)
            return t + 1, v1.where(t < lengths, new, h)
        _, last = tf.while_loop(lambda t, h: t < tf.shape(x)[1], body, (0, state))
        save_v1(folder, {"x": x, "lengths": lengths}, {"last": last, "first": tf.cond(last[0, 0] > 0, lambda: last[0], lambda: -last[0])})
        v1.enable_control_flow_v2()
    return [("serving_default", {"x": floats(2, 5, 3), "lengths": np.array([5, 2], np.int32)})]


@model
def v1_table_of_a_file(folder):
    with tf.Graph().as_default():
        words = v1.placeholder(tf.string, [None], "words")
        table = tf.lookup.StaticHashTable(vocabulary(folder, "one", "two"), -1)
        save_v1(folder, {"words": words}, {"rows": table.lookup(words)}, legacy_init_op=v1.tables_initializer())
    return [("serving_default", {"words": texts("two", "six")})]


@model
def v1_batch_norm_and_queue(folder):
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 4, 4, 2], "x")
        y, _, _ = v1.nn.fused_batch_norm(x, [1.0, 2.0], [0.5, 0.0], [0.1, 0.2], [1.5, 2.5], is_training=False)
        pooled = v1.nn.max_pool_with_argmax(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        save_v1(folder, {"x": x}, {"y": pooled[0], "where": pooled[1]})
    return [("serving_default", {"x": floats(2, 4, 4, 2)})]


def all_models():
    _add_keras()
    return MODELS
