#!/usr/bin/env python3
"""Writes golden/layer_values.txt: what TensorFlow computes with losses, metrics and layers, one line for each case.

layer_values_test.cc does the same with Weir. Inputs and initial values are pattern() of their shape. Run with
TensorFlow and tf_keras installed:
    python3 tests/ops/make_layer_values.py
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import warnings  # noqa: E402

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

VALUES = {}


def pattern(shape, seed):
    """Returns pseudo-random numbers between -0.5 and 0.5."""
    n = int(np.prod(shape))
    i = np.arange(n, dtype=np.int64)
    return (((i * (17 + 2 * seed) + 5 * seed + 3) % 23) / 23.0 - 0.5).reshape(shape).astype(np.float32)


def flat(arrays):
    return np.concatenate([np.ravel(np.asarray(a, np.float64)) for a in arrays])


# ---- losses: the value, and its gradient with respect to the predictions

WEIGHTS = np.array([[1.0], [0.0], [0.5], [2.0]], np.float32)


def losses():
    x, y, w = pattern([4, 3], 1), pattern([4, 3], 2) + np.float32(0.5), WEIGHTS
    p = np.abs(x) + np.float32(0.25)
    classes = np.array([2, 0, 1, 1], np.int64)
    return {
        "absolute_difference": (x, lambda v: tf.losses.absolute_difference(y, v, w)),
        "cosine_distance": (x, lambda v: tf.losses.cosine_distance(y, v, 1, w)),
        "hinge_loss": (x, lambda v: tf.losses.hinge_loss((y > 0.5).astype(np.float32), v, w)),
        "huber_loss": (x, lambda v: tf.losses.huber_loss(y, v, w, 0.4)),
        "log_loss": (p, lambda v: tf.losses.log_loss(y, v, w)),
        "mean_pairwise_squared_error": (x, lambda v: tf.losses.mean_pairwise_squared_error(y, v, w)),
        "mean_squared_error": (x, lambda v: tf.losses.mean_squared_error(y, v, w)),
        "mean": (x, lambda v: tf.losses.mean_squared_error(y, v, w, reduction="weighted_mean")),
        "sum": (x, lambda v: tf.losses.mean_squared_error(y, v, w, reduction="weighted_sum")),
        "batch": (x, lambda v: tf.losses.mean_squared_error(y, v, w, reduction="weighted_sum_over_batch_size")),
        "sigmoid": (x, lambda v: tf.losses.sigmoid_cross_entropy(y, v, w, 0.1)),
        "softmax": (x, lambda v: tf.losses.softmax_cross_entropy(np.eye(3, dtype=np.float32)[classes], v, w[:, 0], 0.1)),
        "sparse_softmax": (x, lambda v: tf.losses.sparse_softmax_cross_entropy(classes, v, w)),
    }


# ---- metrics: the update op's value for each of three batches, then the value


def metrics():
    x, y, w = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3]), WEIGHTS
    px, by = x + 0.5, tf.greater(y, 0.1)
    cx, cy, w1 = tf.argmax(x, 1), tf.argmax(y, 1), tf.constant(w[:, 0])
    m = tf.metrics
    return (x, y), {
        "mean": m.mean(x, w),
        "mean_tensor": m.mean_tensor(tf.ensure_shape(x, [4, 3]), w),
        "accuracy": m.accuracy(cy, cx, w),
        "mean_absolute_error": m.mean_absolute_error(y, x, w),
        "mean_squared_error": m.mean_squared_error(y, x),
        "root_mean_squared_error": m.root_mean_squared_error(y, x, w),
        "mean_relative_error": m.mean_relative_error(y, x, tf.abs(y)),
        "mean_cosine_distance": m.mean_cosine_distance(y, x, 1),
        "percentage_below": m.percentage_below(x, 0.1),
        "true_positives": m.true_positives(by, tf.greater(x, 0)),
        "false_positives": m.false_positives(by, tf.greater(x, 0)),
        "true_negatives": m.true_negatives(by, tf.greater(x, 0)),
        "false_negatives": m.false_negatives(by, tf.greater(x, 0)),
        "precision": m.precision(by, tf.greater(x, 0), w),
        "recall": m.recall(by, tf.greater(x, 0), w),
        "true_positives_at": m.true_positives_at_thresholds(by, px, [0.2, 0.5, 0.8]),
        "precision_at": m.precision_at_thresholds(by, px, [0.2, 0.5, 0.8], w),
        "recall_at": m.recall_at_thresholds(by, px, [0.2, 0.5, 0.8]),
        "auc": m.auc(by, px, w),
        "auc_pr": m.auc(by, px, num_thresholds=20, curve="PR"),
        "auc_careful": m.auc(by, px, num_thresholds=20, curve="PR", summation_method="careful_interpolation"),
        "auc_minoring": m.auc(by, px, num_thresholds=20, summation_method="minoring"),
        "auc_majoring": m.auc(by, px, thresholds=[0.3, 0.6], summation_method="majoring"),
        "sensitivity": m.sensitivity_at_specificity(by, px, 0.6),
        "specificity": m.specificity_at_sensitivity(by, px, 0.6, num_thresholds=20),
        "mean_iou": m.mean_iou(cy, cx, 3, w1),
        "mean_per_class_accuracy": m.mean_per_class_accuracy(cy, cx, 3, w1),
        "recall_at_k": m.recall_at_k(cy, x, 2),
        "precision_at_k": m.precision_at_k(cy, x, 2, weights=w[:, 0]),
        "average_precision": m.average_precision_at_k(tf.stack([cy, cy * 2 - 1], 1), x, 3, w1),
        "recall_at_k_of_class": m.recall_at_k(cy, x, 2, class_id=1),
    }


# ---- layers: the outputs, and the gradients of the sum of their squares with respect to inputs and variables


class Initial:
    """Assigns a different pattern to every variable."""

    def __init__(self):
        self.seed = 0

    def __call__(self, shape, dtype=None, partition_info=None):
        self.seed += 1
        return tf.constant(pattern([int(d) for d in shape], self.seed))


def layers():
    image, rows = [2, 6, 6, 3], [4, 5]
    k = tf.layers
    return {
        "dense": (rows, lambda x, i: k.dense(x, 3, tf.nn.relu, kernel_initializer=i, bias_initializer=i)),
        "dense_of_rank_3": ([2, 3, 5], lambda x, i: k.dense(x, 4, tf.nn.tanh, kernel_initializer=i)),
        "conv1d": ([2, 7, 3], lambda x, i: k.conv1d(x, 2, 3, 2, "same", kernel_initializer=i, bias_initializer=i)),
        "conv2d": (image, lambda x, i: k.conv2d(x, 2, (3, 2), (2, 1), kernel_initializer=i, bias_initializer=i)),
        "dilated_same": (image, lambda x, i: k.conv2d(x, 2, 3, padding="same", dilation_rate=2, kernel_initializer=i)),
        "dilated_valid": (image, lambda x, i: k.conv2d(x, 2, 2, dilation_rate=(2, 3), kernel_initializer=i)),
        "conv3d": ([1, 3, 4, 3, 2], lambda x, i: k.conv3d(x, 2, 2, kernel_initializer=i)),
        "transposed_same": ([2, 3, 3, 2], lambda x, i: k.conv2d_transpose(x, 3, 3, 2, "same", kernel_initializer=i)),
        "transposed_valid": ([2, 3, 3, 2], lambda x, i: k.conv2d_transpose(x, 3, 2, 3, kernel_initializer=i)),
        "separable": (image, lambda x, i: k.separable_conv2d(x, 4, 3, depth_multiplier=2, depthwise_initializer=i,
                                                             pointwise_initializer=i, bias_initializer=i)),
        "separable_dilated": (image, lambda x, i: k.separable_conv2d(x, 2, 3, padding="same", dilation_rate=2,
                                                                     depthwise_initializer=i, pointwise_initializer=i)),
        "batch_normalization": (rows, lambda x, i: k.batch_normalization(
            x, training=True, gamma_initializer=i, beta_initializer=i)),
        "batch_normalization_fused": (image, lambda x, i: k.batch_normalization(
            x, training=True, gamma_initializer=i, beta_initializer=i)),
        "batch_normalization_moving": (image, lambda x, i: k.batch_normalization(
            x, gamma_initializer=i, beta_initializer=i, moving_mean_initializer=i)),
        "batch_normalization_axis": ([2, 3, 4], lambda x, i: k.batch_normalization(
            x, 1, training=True, gamma_initializer=i, beta_initializer=i)),
        "max_pooling2d": (image, lambda x, i: k.max_pooling2d(x, (2, 3), 2, "same")),
        "average_pooling2d": (image, lambda x, i: k.average_pooling2d(x, 3, (1, 2))),
        "max_pooling1d": ([2, 7, 3], lambda x, i: k.max_pooling1d(x, 3, 2)),
        "average_pooling1d": ([2, 7, 3], lambda x, i: k.average_pooling1d(x, 2, 2, "same")),
        "flatten": ([2, 3, 4], lambda x, i: k.flatten(x)),
    }


# ---- training a small network: the total loss of each step, the moving averages, the outputs afterward


def training():
    images, labels = tf.placeholder(tf.float32, [8, 6, 6, 1]), tf.placeholder(tf.int64, [8])
    is_training = tf.placeholder(tf.bool, [])
    i = Initial()
    x = tf.layers.conv2d(images, 4, 3, kernel_initializer=i, kernel_regularizer=tf.keras.regularizers.l2(0.01))
    x = tf.nn.relu(tf.layers.batch_normalization(x, training=is_training, momentum=0.8))
    x = tf.layers.flatten(tf.layers.max_pooling2d(x, 2, 2))
    x = tf.layers.batch_normalization(tf.layers.dense(x, 6, kernel_initializer=i), training=is_training, momentum=0.8)
    logits = tf.layers.dense(tf.nn.tanh(x), 3, kernel_initializer=i)
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    total = tf.losses.get_total_loss()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.GradientDescentOptimizer(0.2).minimize(total)
    out = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(6):
            feeds = {images: pattern([8, 6, 6, 1], step), labels: (np.arange(8) * (step + 2)) % 3, is_training: True}
            out.append(session.run([total, train], feeds)[0])
        moving = [v for v in tf.global_variables() if "moving" in v.name]
        out += session.run(moving)
        out.append(session.run(logits, {images: pattern([8, 6, 6, 1], 9), is_training: False}))
        out += session.run(moving)  # unchanged
    return flat(out)


def main():
    with tf.Graph().as_default(), tf.Session() as session:
        for name, (x, loss) in losses().items():
            v = tf.constant(x)
            value = loss(v)
            VALUES["loss " + name] = flat(session.run([value, tf.gradients(value, v)[0]]))
    with tf.Graph().as_default(), tf.Session() as session:
        (x, y), all_metrics = metrics()
        session.run(tf.local_variables_initializer())
        updates = {name: update for name, (_, update) in all_metrics.items()}
        batches = [session.run(updates, {x: pattern([4, 3], b), y: pattern([4, 3], b + 5)}) for b in range(3)]
        for name, (value, _) in all_metrics.items():
            VALUES["metric " + name] = flat([b[name] for b in batches] + [session.run(value)])
    for name, (shape, layer) in layers().items():
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.constant(pattern(shape, 4))
            y = layer(x, Initial())
            grads = tf.gradients(tf.reduce_sum(tf.square(y)), [x] + tf.trainable_variables())
            session.run(tf.global_variables_initializer())
            VALUES["layer " + name] = flat(session.run([y] + grads))
    with tf.Graph().as_default():
        VALUES["training"] = training()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "layer_values.txt")
    with open(path, "w") as out:
        for name, values in VALUES.items():
            out.write(name + ": " + " ".join("%.6g" % v for v in values) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    tf.disable_eager_execution()
    tf.disable_control_flow_v2()
    tf.disable_resource_variables()
    main()
