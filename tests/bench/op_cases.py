"""The single ops that op_sweep.py times: some members of each family, in three sizes. A
case is a function from placeholders to the result, and its inputs."""

import numpy as np

SIZES = ("small", "usual", "large")


class Case:
    """build: from the placeholders to the tensor that a step fetches. inputs: from the index of a
    size to the arrays that it feeds."""

    def __init__(self, family, name, build, inputs):
        self.family, self.name, self.build, self.inputs = family, name, build, inputs


def _random():
    return np.random.RandomState(0)


def floats(*shape):
    return _random().rand(*shape).astype(np.float32) + 0.1


def integers(below, *shape):
    return _random().randint(0, below, shape).astype(np.int32)


def boxes(n):
    corners = _random().rand(n, 4).astype(np.float32)
    return np.concatenate(
        [np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])], 1
    )


def vector(size):
    return floats((64, 1 << 20, 1 << 24)[size])


def matrix(size):
    return floats(*((8, 8), (4096, 1024), (16384, 1024))[size])


def square(size):
    return floats(*((8, 8), (512, 512), (1024, 1024))[size])


def images(size, channels=32):
    return floats(*((1, 16, 16), (8, 128, 128), (16, 224, 224))[size], channels)


def rows(size):
    return (16, 4096, 65536)[size]


def texts(size, digits=9):
    """Texts of this many digits."""
    numbers = integers(10**digits, (16, 100000, 1000000)[size])
    return numbers.astype("S%d" % digits)


def of(function, *arguments):
    """The inputs of a case: one array, made by a function of the size."""
    return lambda size: [function(size, *arguments)]


def cases(tf):
    """All cases, with the module tensorflow.compat.v1."""
    out = []

    def add(family, name, build, inputs):
        out.append(Case(family, name, build, inputs))

    for name in (
        "abs neg sign square sqrt rsqrt reciprocal exp expm1 log log1p sin cos tan asin "
        "acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc lgamma digamma floor "
        "ceil rint is_nan is_finite ndtri erfinv"
    ).split():
        find = {
            "neg": tf.negative,
            "is_nan": tf.math.is_nan,
            "is_finite": tf.math.is_finite,
            "ndtri": tf.math.ndtri,
            "erfinv": tf.math.erfinv,
        }
        op = find.get(name) or getattr(tf.math, name)
        low = 1.1 if name == "acosh" else 0
        scale = 0.8 if name in ("asin", "acos", "atanh", "ndtri", "erfinv") else 1
        add(
            "unary",
            name,
            op,
            lambda k, low=low, scale=scale: [vector(k) * np.float32(scale) + np.float32(low)],
        )
    for name in ("relu relu6 elu selu softplus softsign leaky_relu").split():
        add("activation", name, getattr(tf.nn, name), lambda k: [vector(k) - np.float32(0.6)])
    add(
        "activation",
        "gelu_erf",
        lambda a: 0.5 * a * (1.0 + tf.math.erf(a * 0.70710678)),
        of(vector),
    )
    add(
        "activation",
        "gelu_tanh",
        lambda a: 0.5 * a * (1.0 + tf.tanh(0.79788456 * (a + 0.044715 * tf.pow(a, 3.0)))),
        of(vector),
    )

    for name in (
        "add subtract multiply divide maximum minimum squared_difference pow floordiv "
        "floormod atan2 less equal divide_no_nan xdivy xlogy igamma igammac zeta"
    ).split():
        op = getattr(tf.math, name)
        slow = name in ("igamma", "igammac", "zeta")
        add(
            "binary",
            name,
            op,
            (
                (lambda k: [vector(k)[: 1 << 18] + np.float32(1.0), vector(k)[: 1 << 18]])
                if slow
                else (lambda k: [vector(k), vector(k)[::-1].copy()])
            ),
        )
    add("binary", "pow3", lambda a: tf.pow(a, 3.0), of(vector))
    add("binary", "pow_half", lambda a: tf.pow(a, 0.5), of(vector))
    add("binary", "int_div", lambda a: a // 7, lambda k: [integers(1 << 30, vector(k).size)])
    add("binary", "int_mod", lambda a: a % 7, lambda k: [integers(1 << 30, vector(k).size)])
    add("binary", "add_column", lambda a, b: a + b, lambda k: [matrix(k), matrix(k)[:, :1].copy()])
    add("binary", "add_row", lambda a, b: a + b, lambda k: [matrix(k), matrix(k)[:1].copy()])
    add(
        "binary",
        "bitwise_xor",
        lambda a: tf.bitwise.bitwise_xor(a, a + 1),
        lambda k: [integers(1 << 30, vector(k).size)],
    )
    add("binary", "select", lambda a: tf.where(a > 0.5, a, -a), of(matrix))
    add("binary", "clip_by_value", lambda a: tf.clip_by_value(a, 0.2, 0.8), of(vector))
    for kind in ("float64", "float16", "int32", "int64", "uint8", "bool"):
        add("cast", "cast_" + kind, lambda a, kind=kind: tf.cast(a, kind), of(vector))
    add("cast", "cast_bfloat16", lambda a: tf.cast(tf.cast(a, tf.bfloat16), tf.float32), of(vector))

    for name in "sum mean max min prod logsumexp euclidean_norm".split():
        op = getattr(tf.math, "reduce_" + name)
        for axis in (0, 1):
            add(
                "reduction",
                "%s_axis%d" % (name, axis),
                lambda a, op=op, axis=axis: op(a, axis),
                of(matrix),
            )
    add("reduction", "sum_all", tf.reduce_sum, of(matrix))
    add("reduction", "any", lambda a: tf.reduce_any(a > 0.99, 1), of(matrix))
    add("reduction", "all", lambda a: tf.reduce_all(a > 0.01, 1), of(matrix))
    add("reduction", "moments", lambda a: tf.nn.moments(a, [0])[1], of(matrix))
    for axis in (0, 1):
        add(
            "reduction", "argmax_axis%d" % axis, lambda a, axis=axis: tf.argmax(a, axis), of(matrix)
        )
        add(
            "reduction", "cumsum_axis%d" % axis, lambda a, axis=axis: tf.cumsum(a, axis), of(matrix)
        )
    add("reduction", "cumprod", lambda a: tf.cumprod(a, 1), of(matrix))
    add("reduction", "l2_normalize", lambda a: tf.nn.l2_normalize(a, 1), of(matrix))
    add("reduction", "clip_by_norm", lambda a: tf.clip_by_norm(a, 1.0), of(matrix))
    add("reduction", "count_nonzero", lambda a: tf.math.count_nonzero(a), of(matrix))

    def segments(size):
        return np.sort(integers(max(2, rows(size) // 8), matrix(size).shape[0]))

    for name in "sum mean max min prod".split():
        op, unsorted = getattr(tf.math, "segment_" + name), getattr(
            tf.math, "unsorted_segment_" + name
        )
        add("segment", "segment_" + name, op, lambda k: [matrix(k), segments(k)])
        add(
            "segment",
            "unsorted_segment_" + name,
            lambda a, s, op=unsorted: op(a, s, 500),
            lambda k: [matrix(k), integers(500, matrix(k).shape[0])],
        )
    add(
        "segment",
        "bincount",
        lambda a: tf.math.bincount(a, minlength=1000, maxlength=1000),
        lambda k: [integers(1000, vector(k).size)],
    )

    for name, build in (
        ("tile", lambda a: tf.tile(a, [1, 4])),
        ("concat", lambda a: tf.concat([a, a], 1)),
        ("split", lambda a: tf.split(a, 4, 1)[1] + 1.0),
        ("stack", lambda a: tf.stack([a, a], 2)),
        ("unstack", lambda a: tf.unstack(a, axis=1)[3] + 1.0),
        ("reverse", lambda a: tf.reverse(a, [1])),
        ("roll", lambda a: tf.roll(a, 3, 1)),
        ("transpose", lambda a: tf.transpose(a)),
        ("strided_slice", lambda a: a[::2, ::3] + 0.0),
        ("slice", lambda a: a[1:, 1:-1] + 0.0),
        ("pad", lambda a: tf.pad(a, [[1, 1], [2, 2]])),
        ("mirror_pad", lambda a: tf.pad(a, [[1, 1], [2, 2]], "REFLECT")),
        ("broadcast_to", lambda a: tf.broadcast_to(a[:, :1], tf.shape(a)) + 0.0),
        ("matrix_band_part", lambda a: tf.linalg.band_part(a, 2, 2)),
        ("diag_part", lambda a: tf.linalg.diag_part(a)),
        ("where", lambda a: tf.where(a > 0.6)),
        ("boolean_mask", lambda a: tf.boolean_mask(a, a > 0.6)),
        ("fill", lambda a: tf.fill(tf.shape(a), 1.0) + a[0, 0]),
        ("ones_like", lambda a: tf.ones_like(a) + a[0, 0]),
    ):
        add("array", name, build, of(matrix))
    add(
        "array",
        "transpose_0213",
        lambda a: tf.transpose(a, [0, 2, 1, 3]),
        lambda k: [floats(*((1, 8, 4, 8), (8, 128, 12, 64), (16, 384, 12, 64))[k])],
    )
    add(
        "array",
        "transpose_021",
        lambda a: tf.transpose(a, [0, 2, 1]),
        lambda k: [floats(*((2, 8, 8), (64, 256, 256), (256, 256, 256))[k])],
    )
    for name, build in (
        ("depth_to_space", lambda a: tf.depth_to_space(a, 4)),
        ("space_to_depth", lambda a: tf.space_to_depth(a, 4)),
        ("space_to_batch", lambda a: tf.space_to_batch(a, [[0, 0], [0, 0]], 2)),
        (
            "extract_patches",
            lambda a: tf.image.extract_patches(
                a, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"
            ),
        ),
    ):
        add("array", name, build, of(images))
    add("array", "one_hot", lambda a: tf.one_hot(a, 1000), lambda k: [integers(1000, rows(k))])
    add("array", "gather_rows", tf.gather, lambda k: [matrix(k), integers(8, rows(k))])
    add(
        "array",
        "embedding_lookup",
        tf.nn.embedding_lookup,
        lambda k: [floats((100, 100000, 1000000)[k], 64), integers(100, rows(k))],
    )
    add(
        "array",
        "gather_nd",
        tf.gather_nd,
        lambda k: [matrix(k), np.stack([integers(8, rows(k) * 16), integers(8, rows(k) * 16)], 1)],
    )
    add(
        "array",
        "gather_batch",
        lambda a, i: tf.gather(a, i, batch_dims=1),
        lambda k: [matrix(k), integers(8, matrix(k).shape[0], 16)],
    )
    add(
        "array",
        "scatter_nd",
        lambda i, u: tf.scatter_nd(i, u, [65536, 1024]),
        lambda k: [integers(4096, rows(k) // 4, 1), floats(rows(k) // 4, 1024)],
    )
    add(
        "array",
        "tensor_scatter_add",
        tf.tensor_scatter_add,
        lambda k: [
            matrix(k),
            integers(8, rows(k) // 4, 1),
            floats(rows(k) // 4, matrix(k).shape[1]),
        ],
    )
    add(
        "array",
        "dynamic_partition",
        lambda a, p: tf.dynamic_partition(a, p, 4)[1],
        lambda k: [matrix(k), integers(4, matrix(k).shape[0])],
    )
    add(
        "array",
        "sequence_mask",
        lambda a: tf.sequence_mask(a, 512),
        lambda k: [integers(512, rows(k))],
    )
    add(
        "array", "range", lambda a: tf.range(a[0]), lambda k: [np.array([vector(k).size], np.int32)]
    )

    for name, build in (
        ("sort", tf.sort),
        ("argsort", tf.argsort),
        ("top_k", lambda a: tf.nn.top_k(a, min(10, a.shape[1]))[0]),
        ("top_k_half", lambda a: tf.nn.top_k(a, a.shape[1] // 2)[0]),
    ):
        add("search", name, build, of(matrix))
    add("search", "unique", lambda a: tf.unique(a)[0], lambda k: [integers(100000, vector(k).size)])
    add(
        "search",
        "searchsorted",
        lambda a, b: tf.searchsorted(a, b),
        lambda k: [np.sort(vector(k)), vector(k)[: 1 << 18]],
    )
    add(
        "search",
        "in_top_k",
        lambda a, b: tf.nn.in_top_k(a, b, 5),
        lambda k: [matrix(k), integers(8, matrix(k).shape[0])],
    )
    add(
        "search",
        "setdiff1d",
        lambda a, b: tf.setdiff1d(a, b)[0],
        lambda k: [
            integers(1000000, (64, 100000, 1000000)[k]),
            integers(500000, (64, 100000, 1000000)[k]),
        ],
    )

    for name, build in (
        ("max_pool", lambda a: tf.nn.max_pool2d(a, 2, 2, "SAME")),
        ("max_pool_3x3", lambda a: tf.nn.max_pool2d(a, 3, 1, "SAME")),
        ("avg_pool", lambda a: tf.nn.avg_pool2d(a, 3, 1, "SAME")),
        ("avg_pool_2x2", lambda a: tf.nn.avg_pool2d(a, 2, 2, "SAME")),
        ("lrn", tf.nn.lrn),
        (
            "batch_norm",
            lambda a: tf.nn.batch_normalization(
                a, a[0, 0, 0], a[0, 0, 1], a[0, 0, 2], a[0, 0, 3], 1e-3
            ),
        ),
        ("bias_add", lambda a: tf.nn.bias_add(a, a[0, 0, 0])),
    ):
        add("nn", name, build, of(images))
    for name, shape, build in (
        ("conv_3x3", (3, 3, 32, 32), lambda a, w: tf.nn.conv2d(a, w, 1, "SAME")),
        ("conv_1x1", (1, 1, 32, 64), lambda a, w: tf.nn.conv2d(a, w, 1, "SAME")),
        ("conv_5x5_s2", (5, 5, 32, 64), lambda a, w: tf.nn.conv2d(a, w, 2, "SAME")),
        ("conv_dilated", (3, 3, 32, 32), lambda a, w: tf.nn.conv2d(a, w, 1, "SAME", dilations=2)),
        ("conv_grouped", (3, 3, 4, 32), lambda a, w: tf.nn.conv2d(a, w, 1, "SAME")),
        (
            "depthwise",
            (3, 3, 32, 1),
            lambda a, w: tf.nn.depthwise_conv2d(a, w, [1, 1, 1, 1], "SAME"),
        ),
    ):
        add("nn", name, build, lambda k, shape=shape: [images(k), floats(*shape)])
    add(
        "nn",
        "conv_transpose",
        lambda a, w: tf.nn.conv2d_transpose(
            a, w, [a.shape[0], 2 * a.shape[1], 2 * a.shape[2], 16], 2
        ),
        lambda k: [images(k), floats(4, 4, 16, 32)],
    )
    add(
        "nn",
        "conv1d",
        lambda a, w: tf.nn.conv1d(a, w, 1, "SAME"),
        lambda k: [floats(*((1, 16, 64), (16, 1024, 64), (64, 1024, 64))[k]), floats(5, 64, 64)],
    )
    add(
        "nn",
        "conv3d",
        lambda a, w: tf.nn.conv3d(a, w, [1] * 5, "SAME"),
        lambda k: [
            floats(*((1, 4, 8, 8, 16), (1, 16, 64, 64, 16), (4, 16, 64, 64, 16))[k]),
            floats(3, 3, 3, 16, 32),
        ],
    )
    add("nn", "softmax", tf.nn.softmax, of(matrix))
    add("nn", "softmax_narrow", tf.nn.softmax, lambda k: [floats(rows(k) * 16, 10)])
    add("nn", "log_softmax", tf.nn.log_softmax, of(matrix))
    add(
        "nn",
        "sparse_xent",
        lambda a, b: tf.nn.sparse_softmax_cross_entropy_with_logits(logits=a, labels=b),
        lambda k: [matrix(k), integers(8, matrix(k).shape[0])],
    )
    add(
        "nn",
        "xent",
        lambda a: tf.nn.softmax_cross_entropy_with_logits_v2(logits=a, labels=a),
        of(matrix),
    )
    add(
        "nn",
        "layer_norm",
        lambda a: (a - tf.reduce_mean(a, 1, keepdims=True))
        * tf.rsqrt(tf.nn.moments(a, [1], keepdims=True)[1] + 1e-6),
        of(matrix),
    )

    add("linalg", "matmul", tf.matmul, lambda k: [square(k), square(k)])
    add("linalg", "matmul_row", tf.matmul, lambda k: [square(k)[:1].copy(), square(k)])
    add(
        "linalg",
        "matmul_transposed",
        lambda a, b: tf.matmul(a, b, transpose_b=True),
        lambda k: [square(k), square(k)],
    )
    add(
        "linalg",
        "batch_matmul",
        tf.matmul,
        lambda k: [floats(*((4, 4, 4), (4096, 16, 16), (384, 128, 128))[k])] * 2,
    )
    add(
        "linalg",
        "einsum",
        lambda a, b: tf.einsum("bij,bjk->bik", a, b),
        lambda k: [floats(*((2, 8, 8), (64, 128, 128), (256, 128, 128))[k])] * 2,
    )
    add(
        "linalg",
        "svd",
        lambda a: tf.svd(a, compute_uv=False),
        lambda k: [square(k)[: (8, 256, 512)[k], : (8, 256, 512)[k]].copy()],
    )
    add("linalg", "qr", lambda a: tf.qr(a)[1], of(square))
    add(
        "linalg",
        "cholesky",
        lambda a: tf.cholesky(tf.matmul(a, a, transpose_b=True) + tf.eye(tf.shape(a)[0]) * 100.0),
        of(square),
    )
    add("linalg", "inverse", tf.matrix_inverse, of(square))
    add("linalg", "determinant", tf.linalg.det, of(square))
    add("linalg", "solve", tf.matrix_solve, lambda k: [square(k), square(k)[:, :64].copy()])
    add(
        "linalg",
        "triangular_solve",
        tf.linalg.triangular_solve,
        lambda k: [square(k) + np.eye(square(k).shape[0], dtype=np.float32) * 100, square(k)],
    )
    add(
        "linalg",
        "eigenvalues",
        lambda a: tf.self_adjoint_eigvals(a + tf.transpose(a)),
        lambda k: [square(k)[: (8, 256, 512)[k], : (8, 256, 512)[k]].copy()],
    )
    add(
        "linalg",
        "batch_inverse",
        tf.matrix_inverse,
        lambda k: [floats((4, 1000, 10000)[k], 8, 8) + np.eye(8, dtype=np.float32)],
    )
    signals = lambda k: [floats(*((4, 64), (256, 4096), (4096, 4096))[k])]
    add("transform", "fft", lambda a: tf.abs(tf.fft(tf.cast(a, tf.complex64))), signals)
    add("transform", "rfft", lambda a: tf.abs(tf.signal.rfft(a)), signals)
    add("transform", "irfft", lambda a: tf.signal.irfft(tf.cast(a, tf.complex64)), signals)
    add(
        "transform",
        "fft_1000",
        lambda a: tf.abs(tf.fft(tf.cast(a, tf.complex64))),
        lambda k: [floats((4, 64, 4096)[k], 1000)],
    )
    add("transform", "fft2d", lambda a: tf.abs(tf.fft2d(tf.cast(a, tf.complex64))), of(square))
    add(
        "transform",
        "stft",
        lambda a: tf.abs(tf.signal.stft(a, 512, 256)),
        lambda k: [floats((1024, 1 << 18, 1 << 21)[k])],
    )

    for name in "bilinear nearest_neighbor bicubic area".split():
        for channels in (3, 32):
            add(
                "image",
                "resize_%s_%d" % (name, channels),
                lambda a, op=getattr(tf.image, "resize_" + name): op(
                    a, [2 * a.shape[1] - 3, 2 * a.shape[2] - 3]
                ),
                lambda k, channels=channels: [images(k, channels)],
            )
    add(
        "image",
        "resize_bytes",
        lambda a: tf.image.resize_bilinear(tf.cast(a, tf.uint8), [224, 224]),
        lambda k: [integers(255, *((1, 32, 32, 3), (1, 375, 500, 3), (8, 375, 500, 3))[k])],
    )
    add(
        "image",
        "crop_and_resize",
        lambda a, b, k: tf.image.crop_and_resize(a, b, k, [32, 32]),
        lambda k: [images(k), boxes((2, 64, 512)[k]), integers(1, (2, 64, 512)[k])],
    )
    add(
        "image",
        "non_max_suppression",
        lambda b, s: tf.image.non_max_suppression(b, s, 100),
        lambda k: [boxes((64, 5000, 50000)[k]), floats((64, 5000, 50000)[k])],
    )
    add("image", "rgb_to_hsv", tf.image.rgb_to_hsv, lambda k: [images(k, 3)])
    add(
        "image",
        "adjust_contrast",
        lambda a: tf.image.adjust_contrast(a, 1.5),
        lambda k: [images(k, 3)],
    )
    add(
        "image",
        "flip_left_right",
        lambda a: tf.image.flip_left_right(a) + 0.0,
        lambda k: [images(k, 3)],
    )

    for name, build in (
        ("random_normal", lambda a: tf.random_normal(tf.shape(a)) + a),
        ("random_uniform", lambda a: tf.random_uniform(tf.shape(a)) + a),
        ("truncated_normal", lambda a: tf.random.truncated_normal(tf.shape(a)) + a),
        ("stateless_uniform", lambda a: tf.random.stateless_uniform(tf.shape(a), [1, 2]) + a),
        ("random_gamma", lambda a: tf.random_gamma([64], a[0, :8])),
        ("random_poisson", lambda a: tf.random_poisson(a[0, :8], [64])),
        ("random_shuffle", tf.random_shuffle),
        ("dropout", lambda a: tf.nn.dropout(a, rate=0.5)),
    ):
        add("random", name, build, of(matrix))
    add(
        "random",
        "multinomial",
        lambda a: tf.multinomial(a, 100),
        lambda k: [floats(*((4, 16), (256, 1000), (1024, 4096))[k])],
    )

    add(
        "text",
        "as_string",
        lambda a: tf.strings.length(tf.as_string(a)),
        lambda k: [floats((16, 100000, 1000000)[k])],
    )
    add(
        "text",
        "as_string_integer",
        lambda a: tf.strings.length(tf.as_string(a)),
        lambda k: [integers(1 << 30, (16, 100000, 1000000)[k])],
    )
    for name, build in (
        ("string_to_number", tf.string_to_number),
        ("hash_fast", lambda a: tf.string_to_hash_bucket_fast(a, 1000)),
        ("hash_strong", lambda a: tf.string_to_hash_bucket_strong(a, 1000, [1, 2])),
        ("hash", lambda a: tf.string_to_hash_bucket(a, 1000)),
        ("string_split", lambda a: tf.strings.length(tf.string_split(a, "5").values)),
        ("string_split_v2", lambda a: tf.strings.length(tf.strings.split(a, sep="5").values)),
        ("regex_replace", lambda a: tf.strings.length(tf.regex_replace(a, "[0-4]", "x"))),
        ("regex_match", lambda a: tf.strings.regex_full_match(a, "[0-4]+.*")),
        ("join", lambda a: tf.strings.length(tf.strings.join([a, a], "-"))),
        ("reduce_join", lambda a: tf.strings.length(tf.strings.reduce_join(a))),
        ("substr", lambda a: tf.strings.length(tf.strings.substr(a, 1, 4))),
        ("lower", lambda a: tf.strings.length(tf.strings.lower(a))),
        ("upper", lambda a: tf.strings.length(tf.strings.upper(a))),
        ("strip", lambda a: tf.strings.length(tf.strings.strip(a))),
        ("encode_base64", lambda a: tf.strings.length(tf.io.encode_base64(a))),
        ("string_equal", lambda a: tf.equal(a, "123")),
        ("unicode_decode", lambda a: tf.strings.unicode_decode(a, "UTF-8").values),
        ("decode_raw", lambda a: tf.decode_raw(tf.strings.substr(a, 0, 1), tf.uint8)),
    ):
        add("text", name, build, of(texts))

    def sparse(size):
        n, count = ((16, 32), (4096, 100000), (16384, 1000000))[size]
        flat = np.unique(_random().randint(0, n * n, count))
        return np.stack([flat // n, flat % n], 1).astype(np.int64)

    def as_sparse(i, n):
        return tf.SparseTensor(i, tf.ones(tf.shape(i)[:1]), [n, n])

    add(
        "sparse",
        "sparse_dense_matmul",
        lambda i, b: tf.sparse_tensor_dense_matmul(as_sparse(i, b.shape[0]), b),
        lambda k: [sparse(k), floats((16, 4096, 16384)[k], 64)],
    )
    add(
        "sparse",
        "to_dense",
        lambda i: tf.sparse.to_dense(as_sparse(i, 16384)),
        lambda k: [sparse(min(k, 1))],
    )
    add(
        "sparse",
        "reorder",
        lambda i: tf.sparse.reorder(as_sparse(i[::-1], 16384)).indices,
        lambda k: [sparse(k)],
    )
    add(
        "sparse",
        "sparse_add",
        lambda i: tf.sparse.add(as_sparse(i, 16384), as_sparse(i, 16384)).values,
        lambda k: [sparse(k)],
    )
    add(
        "sparse",
        "reduce_sum",
        lambda i: tf.sparse.reduce_sum(as_sparse(i, 16384), 1),
        lambda k: [sparse(k)],
    )
    add(
        "sparse",
        "embedding_sum",
        lambda t, s: tf.math.segment_sum(tf.gather(t, s // 8), s // 8),
        lambda k: [floats((100, 10000, 10000)[k], 64), np.sort(integers(800, rows(k)))],
    )

    def quantized(a):
        return tf.quantization.quantize(a, 0.0, 1.2, tf.quint8).output

    add("quantize", "quantize", lambda a: tf.bitcast(quantized(a), tf.uint8), of(vector))
    add(
        "quantize",
        "dequantize",
        lambda a: tf.quantization.dequantize(quantized(a), 0.0, 1.2),
        of(vector),
    )
    add(
        "quantize",
        "fake_quant",
        lambda a: tf.quantization.fake_quant_with_min_max_args(a, 0.0, 1.0),
        of(vector),
    )
    return out
