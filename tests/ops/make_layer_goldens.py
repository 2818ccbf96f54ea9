#!/usr/bin/env python3
"""Writes golden/{loss,metric,layer}_*_{ref,res}.pbtxt: the graphs that TensorFlow builds for tf.losses, tf.metrics
and tf.layers, with their collections.

loss_goldens_test.cc, metric_goldens_test.cc and layer_goldens_test.cc build the same programs with Weir. Run with
TensorFlow and tf_keras (whose legacy layers are tf.layers) installed:
    python3 tests/ops/make_layer_goldens.py
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import warnings  # noqa: E402

import tensorflow.compat.v1 as tf  # noqa: E402

from make_goldens import write_goldens  # noqa: E402

LOSSES, METRICS, LAYERS = {}, {}, {}


def loss(fn):
    LOSSES["loss_" + fn.__name__] = fn
    return fn


def metric(fn):
    METRICS["metric_" + fn.__name__] = fn
    return fn


def layer(fn):
    LAYERS["layer_" + fn.__name__] = fn
    return fn


def placeholder(name, shape=None, dtype=tf.float32):
    return tf.placeholder(dtype, shape, name=name)


# ---- losses


@loss
def functions():
    x, y = placeholder("x", [4, 3]), placeholder("y", [4, 3])
    tf.losses.absolute_difference(y, x)
    tf.losses.cosine_distance(y, x, axis=1)
    tf.losses.hinge_loss(y, x)
    tf.losses.huber_loss(y, x, delta=0.5)
    tf.losses.log_loss(y, x)
    tf.losses.mean_pairwise_squared_error(y, x)
    tf.losses.mean_squared_error(y, x)
    tf.losses.sigmoid_cross_entropy(y, x)
    tf.losses.softmax_cross_entropy(y, x)
    tf.losses.sparse_softmax_cross_entropy(placeholder("labels", [4], tf.int64), x)


@loss
def open_batch():
    x, y = placeholder("x", [None, 3]), placeholder("y", [None, 3])
    tf.losses.mean_squared_error(y, x)
    tf.losses.softmax_cross_entropy(y, x)
    tf.losses.sparse_softmax_cross_entropy(placeholder("labels", [None], tf.int32), x)
    tf.losses.mean_pairwise_squared_error(y, x)


@loss
def reductions():
    x, y, w = placeholder("x", [4, 3]), placeholder("y", [4, 3]), placeholder("w", [4, 1])
    for reduction in ("none", "weighted_sum", "weighted_sum_over_batch_size", "weighted_mean",
                      "weighted_sum_by_nonzero_weights"):
        tf.losses.mean_squared_error(y, x, w, reduction=reduction)


@loss
def weights():
    x, y = placeholder("x", [4, 3]), placeholder("y", [4, 3])
    tf.losses.absolute_difference(y, x, 2.0)
    tf.losses.absolute_difference(y, x, 2)
    tf.losses.absolute_difference(y, x, [[1.0], [2.0], [3.0], [4.0]])
    tf.losses.absolute_difference(y, x, placeholder("s", []))
    tf.losses.absolute_difference(y, x, placeholder("full", [4, 3], tf.float64))
    tf.losses.mean_pairwise_squared_error(y, x, placeholder("rows", [4, 1]))


@loss
def types():
    tf.losses.mean_squared_error(placeholder("y", [4], tf.int32), placeholder("x", [4], tf.float64))
    tf.losses.sigmoid_cross_entropy(placeholder("labels", [4], tf.int32), placeholder("logits", [4], tf.float64))
    tf.losses.compute_weighted_loss(placeholder("losses", [4], tf.float64))


@loss
def scopes_and_collections():
    x, y = placeholder("x", [4, 3]), placeholder("y", [4, 3])
    with tf.name_scope("tower"):
        tf.losses.mean_squared_error(y, x, scope="mse")
        tf.losses.mean_squared_error(y, x, scope="mse")
    tf.losses.mean_squared_error(y, x, loss_collection="mine")
    tf.losses.mean_squared_error(y, x, loss_collection=None)
    tf.losses.compute_weighted_loss(x, 3.0)
    tf.losses.add_loss(tf.constant(1.0, name="own"))


@loss
def dynamic_weights():
    x, y = placeholder("x", [None, 3]), placeholder("y", [None, 3])
    tf.losses.mean_squared_error(y, x, placeholder("w", [None, 1]))
    tf.losses.absolute_difference(placeholder("b"), placeholder("a"), placeholder("any"))


@loss
def dynamic_labels():
    tf.losses.sparse_softmax_cross_entropy(placeholder("labels", None, tf.int32), placeholder("x", [None, 3]),
                                           placeholder("w"))


@loss
def label_smoothing():
    x, y = placeholder("x", [4, 3]), placeholder("y", [4, 3])
    tf.losses.sigmoid_cross_entropy(y, x, label_smoothing=0.1)
    tf.losses.softmax_cross_entropy(y, x, label_smoothing=0.1)


@loss
def squeezed():
    x = placeholder("x", [4, 3])
    tf.losses.sparse_softmax_cross_entropy(placeholder("labels", [4, 1], tf.int32), x)
    tf.losses.sparse_softmax_cross_entropy(placeholder("more", [4], tf.int32), x, placeholder("w", [4, 1]))


@loss
def totals():
    x, y = placeholder("x", [4, 3]), placeholder("y", [4, 3])
    tf.losses.get_regularization_loss()
    tf.losses.mean_squared_error(y, x)
    with tf.name_scope("more"):
        tf.losses.absolute_difference(y, x)
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(3.0, name="penalty"))
    tf.losses.get_regularization_loss()
    tf.losses.get_total_loss()
    tf.losses.get_total_loss(add_regularization_losses=False, name="plain")
    tf.losses.get_total_loss(scope="more", add_regularization_losses=False)


# ---- metrics


@metric
def mean():
    x = placeholder("x", [4, 3])
    tf.metrics.mean(x)
    tf.metrics.mean(x, placeholder("w", [4, 1]))
    tf.metrics.mean(x, placeholder("s", []))
    tf.metrics.mean(x, 2.0)
    tf.metrics.mean(x, placeholder("full", [4, 3], tf.float64))
    tf.metrics.mean(placeholder("i", [5], tf.int32), placeholder("narrow", [5, 1]), name="named",
                    metrics_collections=["m", "all"], updates_collections=["u"])
    with tf.name_scope("outer"):
        tf.metrics.mean(x)
    with tf.variable_scope("vs"):
        tf.metrics.mean(placeholder("open", [None, 3]))


@metric
def mean_of_unknown_rank():
    tf.metrics.mean(placeholder("x"), placeholder("w"))
    tf.metrics.accuracy(placeholder("labels", None, tf.int32), placeholder("predictions", None, tf.int32))


@metric
def mean_tensor():
    x = placeholder("x", [4, 3])
    tf.metrics.mean_tensor(x)
    tf.metrics.mean_tensor(x, placeholder("w", [4, 1]), updates_collections="u")


@metric
def accuracy():
    y = placeholder("y", [4], tf.int64)
    tf.metrics.accuracy(y, placeholder("same", [4], tf.int64))
    tf.metrics.accuracy(y, placeholder("other", [4, 1], tf.int32), placeholder("w", [4]))
    tf.metrics.accuracy(placeholder("ys", [None], tf.int64), placeholder("xs", [None], tf.int64), name="acc",
                        metrics_collections=["m"], updates_collections=["u"])


@metric
def errors():
    x, y, w = placeholder("x", [4, 3]), placeholder("y", [4, 3]), placeholder("w", [4, 3])
    tf.metrics.mean_absolute_error(y, x)
    tf.metrics.mean_squared_error(y, x, w)
    tf.metrics.root_mean_squared_error(y, x, metrics_collections=["m"], updates_collections=["u"])
    tf.metrics.mean_cosine_distance(y, x, 1, updates_collections=["u"], metrics_collections=["m"])
    tf.metrics.mean_relative_error(y, x, placeholder("n", [4, 3]))
    tf.metrics.percentage_below(x, 0.5)
    tf.metrics.percentage_below(x, 0.5, w)


@metric
def counts():
    x, y = placeholder("x", [4], tf.bool), placeholder("y", [4], tf.bool)
    tf.metrics.true_positives(y, x, metrics_collections=["m"], updates_collections=["u"])
    tf.metrics.false_positives(y, x)
    tf.metrics.true_negatives(y, x)
    tf.metrics.false_negatives(y, x)
    tf.metrics.true_positives(y, placeholder("f", [4, 1]), placeholder("w", [4]))
    tf.metrics.false_negatives(y, x, 0.5, name="named")


@metric
def precision_and_recall():
    x, y = placeholder("x", [4], tf.bool), placeholder("y", [4], tf.int32)
    tf.metrics.precision(y, x)
    tf.metrics.recall(y, x, metrics_collections=["m"], updates_collections=["u"])
    tf.metrics.precision(y, x, placeholder("w", [4]))
    tf.metrics.recall(y, x, placeholder("v", [4]))


@metric
def thresholds():
    x, y = placeholder("x", [4]), placeholder("y", [4], tf.bool)
    limits = [0.25, 0.75]
    tf.metrics.true_positives_at_thresholds(y, x, limits)
    tf.metrics.false_positives_at_thresholds(y, x, limits)
    tf.metrics.true_negatives_at_thresholds(y, x, limits)
    tf.metrics.false_negatives_at_thresholds(y, x, limits, updates_collections=["u"], metrics_collections=["m"])
    tf.metrics.precision_at_thresholds(y, x, limits, placeholder("w", [4]))
    tf.metrics.recall_at_thresholds(y, x, limits)


@metric
def auc():
    x, y = placeholder("x", [4]), placeholder("y", [4], tf.bool)
    tf.metrics.auc(y, x, metrics_collections=["m"], updates_collections=["u"])
    tf.metrics.auc(y, x, placeholder("w", [4]), num_thresholds=5, curve="PR")
    tf.metrics.auc(y, x, num_thresholds=5, curve="PR", summation_method="careful_interpolation")
    tf.metrics.auc(y, x, num_thresholds=5, summation_method="minoring")
    tf.metrics.auc(y, x, thresholds=[0.7, 0.3], summation_method="majoring")
    tf.metrics.auc(placeholder("ys", [None, 1]), placeholder("xs", [None, 1]), num_thresholds=5)


@metric
def operating_points():
    x, y = placeholder("x", [4]), placeholder("y", [4], tf.bool)
    tf.metrics.sensitivity_at_specificity(y, x, 0.7, num_thresholds=5)
    tf.metrics.specificity_at_sensitivity(y, x, 0.7, placeholder("w", [4]), num_thresholds=5)


@metric
def classes():
    x, y = placeholder("x", [4], tf.int64), placeholder("y", [4], tf.int64)
    tf.metrics.mean_iou(y, x, 3)
    tf.metrics.mean_iou(placeholder("y2", [2, 2], tf.int32), placeholder("x2", [2, 2], tf.int32), 3,
                        placeholder("w2", [2, 2]), metrics_collections=["m"], updates_collections=["u"])
    tf.metrics.mean_per_class_accuracy(y, x, 3)
    tf.metrics.mean_per_class_accuracy(y, placeholder("xi", [4], tf.int32), 3, placeholder("w", [4]))


@metric
def at_k():
    x = placeholder("x", [4, 5])
    y = placeholder("y", [4, 2], tf.int64)
    tf.metrics.recall_at_k(y, x, 2)
    tf.metrics.precision_at_k(y, x, 2, updates_collections=["u"], metrics_collections=["m"])
    tf.metrics.recall_at_k(placeholder("y1", [4], tf.int64), x, 2, class_id=1)
    tf.metrics.precision_at_k(y, x, 2, weights=placeholder("w", [4]))
    tf.metrics.average_precision_at_k(y, x, 2)
    tf.metrics.average_precision_at_k(y, x, 2, placeholder("v", [4]))


# ---- layers. The legacy layers of tf_keras initialize kernels with stateless random ops; TensorFlow 1's used
# random_uniform, which an initializer of the scope uses.


def glorot():
    return tf.variable_scope(tf.get_variable_scope(), initializer=tf.glorot_uniform_initializer(seed=1))


@layer
def dense():
    x = placeholder("x", [None, 4])
    with glorot():
        y = tf.layers.dense(x, 3, tf.nn.relu)
        y = tf.layers.dense(y, 2, use_bias=False)
        y = tf.layers.dense(y, 5, name="named", trainable=False)
        with tf.variable_scope("outer"):
            y = tf.layers.dense(y, 5)
            tf.layers.dense(y, 5, name="shared")
            tf.layers.dense(y, 5, name="shared", reuse=True)
        with tf.name_scope("tower"):
            tf.layers.dense(y, 2)


@layer
def dense_of_rank_3():
    with glorot():
        tf.layers.dense(placeholder("x", [2, 3, 4]), 5)
        tf.layers.dense(placeholder("open", [None, 3, 4]), 5)


@layer
def regularized():
    x = placeholder("x", [4, 4])
    l1, l2 = tf.keras.regularizers.l1(0.1), tf.keras.regularizers.l2(0.2)
    with glorot():
        tf.layers.dense(x, 3, kernel_regularizer=l2, bias_regularizer=l1, name="a")
        tf.layers.dense(x, 3, kernel_regularizer=l2, bias_regularizer=l1, name="a", reuse=True)
        tf.layers.dense(x, 3, kernel_regularizer=tf.keras.regularizers.l1_l2(0.1, 0.2))
        tf.layers.dense(x, 3, activity_regularizer=l2)
        tf.layers.dense(placeholder("open", [None, 4]), 3, activity_regularizer=l2)


@layer
def partitioned():
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2),
                           initializer=tf.glorot_uniform_initializer(seed=1)):
        x = tf.layers.dense(placeholder("x", [None, 4]), 3, kernel_regularizer=tf.keras.regularizers.l2(0.2))
        tf.layers.batch_normalization(x, training=True)


@layer
def initializers():
    x = placeholder("x", [4, 4], tf.float64)
    tf.layers.dense(x, 3, kernel_initializer=tf.ones_initializer(), bias_initializer=tf.constant_initializer(0.5))


@layer
def conv():
    with glorot():
        tf.layers.conv1d(placeholder("line", [None, 9, 2]), 4, 3, strides=2, activation=tf.nn.relu)
        tf.layers.conv1d(placeholder("line_first", [2, 2, 9]), 4, 3, data_format="channels_first")
        x = placeholder("x", [None, 8, 8, 3])
        tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu)
        tf.layers.conv2d(x, 4, (3, 2), strides=(2, 1), use_bias=False)
        tf.layers.conv2d(placeholder("first", [None, 3, 8, 8]), 4, 3, data_format="channels_first")
        tf.layers.conv3d(placeholder("cube", [2, 5, 5, 5, 2]), 3, 2)


@layer
def dilated():
    with glorot():
        tf.layers.conv2d(placeholder("x", [2, 8, 8, 3]), 4, 3, dilation_rate=2, padding="same")
        tf.layers.conv2d(placeholder("open", [None, 8, 8, 3]), 4, 3, dilation_rate=(1, 2))
        tf.layers.conv1d(placeholder("line", [2, 9, 2]), 4, 3, dilation_rate=2)


@layer
def transposed():
    with glorot():
        tf.layers.conv2d_transpose(placeholder("x", [2, 4, 4, 3]), 5, 3, strides=2, padding="same")
        tf.layers.conv2d_transpose(placeholder("open", [None, 4, None, 3]), 5, 3, strides=(2, 1))


@layer
def separable():
    with glorot():
        x = placeholder("x", [None, 8, 8, 3])
        tf.layers.separable_conv2d(x, 4, 3, depth_multiplier=2, activation=tf.nn.relu)
        tf.layers.separable_conv2d(x, 4, 3, strides=2, padding="same", use_bias=False)
        tf.layers.separable_conv2d(placeholder("fixed", [2, 8, 8, 3]), 4, 3, dilation_rate=2)


@layer
def batch_normalization():
    x = placeholder("x", [None, 4])
    tf.layers.batch_normalization(x, training=True)
    tf.layers.batch_normalization(x)
    image = placeholder("image", [None, 5, 5, 4])
    tf.layers.batch_normalization(image, training=True, momentum=0.9, epsilon=1e-4)
    tf.layers.batch_normalization(image)
    tf.layers.batch_normalization(image, center=False, scale=False, training=True)
    tf.layers.batch_normalization(image, fused=False, training=True, trainable=False)
    tf.layers.batch_normalization(placeholder("first", [None, 4, 5, 5]), axis=1, training=True)
    tf.layers.batch_normalization(placeholder("rank3", [2, 4, 5]), axis=1, training=True)


@layer
def batch_normalization_by_tensor():
    training = placeholder("training", [], tf.bool)
    tf.layers.batch_normalization(placeholder("x", [None, 4]), training=training)
    tf.layers.batch_normalization(placeholder("image", [None, 5, 5, 4]), training=training)


@layer
def dropout():
    x = placeholder("x", [None, 4])
    tf.layers.dropout(x)
    tf.layers.dropout(x, 0.3, training=True, seed=1)
    tf.layers.dropout(x, 0.3, training=True, noise_shape=[None, 1], seed=1)
    tf.layers.dropout(x, 0.3, training=True, name="drop", seed=1)
    tf.layers.dropout(x, placeholder("rate", []), training=True, seed=1)


@layer
def dropout_by_tensor():
    tf.layers.dropout(placeholder("x", [None, 4]), training=placeholder("training", [], tf.bool), seed=1)


@layer
def flatten():
    tf.layers.flatten(placeholder("x", [None, 4, 3]))
    tf.layers.flatten(placeholder("y", [2, None, 3]))
    tf.layers.flatten(placeholder("z", [None, None, 3]))
    tf.layers.flatten(placeholder("v", [None]))
    tf.layers.flatten(placeholder("first", [None, 4, 3, 2]), data_format="channels_first", name="named")


@layer
def pooling():
    x = placeholder("x", [None, 8, 8, 3])
    tf.layers.max_pooling2d(x, 2, 2)
    tf.layers.average_pooling2d(x, (3, 2), (2, 1), padding="same")
    tf.layers.max_pooling2d(placeholder("first", [None, 3, 8, 8]), 2, 2, data_format="channels_first")
    line = placeholder("line", [None, 8, 3])
    tf.layers.max_pooling1d(line, 2, 2)
    tf.layers.average_pooling1d(line, 3, 1, padding="same", name="named")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    tf.disable_eager_execution()
    tf.disable_control_flow_v2()
    wanted = sys.argv[1:]

    def chosen(programs):
        return {name: fn for name, fn in programs.items() if not wanted or name in wanted}

    write_goldens(chosen(LOSSES), kinds=("ref",), with_collections=True)
    write_goldens(chosen(METRICS), with_collections=True)
    write_goldens(chosen(LAYERS), with_collections=True)
