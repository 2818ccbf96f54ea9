#!/usr/bin/env python3
"""Writes the graphs of W14, SSD with MobileNet-v1 and its post-processing, and TensorFlow's results.

usage: make_ssd.py FOLDER

The graph is one that the object detection API exports for ssd_mobilenet_v1_coco: a map_fn that
resizes each image, the network with its six feature maps, decoded boxes, and a second map_fn that
for each class keeps the boxes above a score and suppresses those that overlap better ones, then
sorts and pads the detections of all classes. The weights are random and frozen. FOLDER gets

    w14_ssd_bN.pb    frozen: `image_tensor`, [N, 480, 640, 3] in [0, 1), to `detection_boxes`,
                     `detection_scores`, `detection_classes`, `num_detections`
    and TensorFlow's values as .npz
"""

from typing import NamedTuple

import numpy as np
from model_graphs import Model, frozen, main

MOBILENET = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
EXTRA = [512, 256, 256, 128]
DETECTIONS, SCORE, OVERLAP = 100, 1e-8, 0.6
FETCHES = ["detection_boxes", "detection_scores", "detection_classes", "num_detections"]


class Sizes(NamedTuple):
    height: int = 480
    width: int = 640
    side: int = 300  # of the resized images
    classes: int = 90
    multiplier: float = 1.0  # of the channels


class Ssd:
    def __init__(self, tf, sizes):
        self.tf, self.sizes, self.seed = tf, sizes, 0

    def variable(self, name, shape, stddev):
        self.seed += 1
        initial = self.tf.random_normal_initializer(stddev=stddev, seed=self.seed)
        return self.tf.get_variable(name, shape, initializer=initial)

    def channels(self, n):
        return max(8, int(n * self.sizes.multiplier))

    def activated(self, x):
        tf, width = self.tf, x.shape.as_list()[-1]
        get = lambda name, initial: tf.get_variable(name, [width], initializer=initial)  # noqa: E731
        gamma, beta = get("gamma", tf.ones_initializer()), get("beta", tf.zeros_initializer())
        mean, variance = get("mean", tf.zeros_initializer()), get("variance", tf.ones_initializer())
        x, _, _ = tf.nn.fused_batch_norm(x, gamma, beta, mean, variance, epsilon=1e-3, is_training=False)
        return tf.nn.relu6(x)

    def convolution(self, x, scope, width, size, stride=1):
        tf, inputs = self.tf, x.shape.as_list()[-1]
        with tf.variable_scope(scope):
            kernel = self.variable("weights", [size, size, inputs, width], (2 / (size * size * inputs)) ** 0.5)
            return self.activated(tf.nn.conv2d(x, kernel, strides=[1, stride, stride, 1], padding="SAME"))

    def depthwise(self, x, scope, stride):
        tf, inputs = self.tf, x.shape.as_list()[-1]
        with tf.variable_scope(scope):
            kernel = self.variable("depthwise_weights", [3, 3, inputs, 1], (2 / 9) ** 0.5)
            return self.activated(tf.nn.depthwise_conv2d(x, kernel, [1, stride, stride, 1], "SAME"))

    def feature_maps(self, x):
        x = self.convolution(x, "Conv2d_0", self.channels(32), 3, 2)
        maps = []
        for i, (width, stride) in enumerate(MOBILENET, 1):
            x = self.depthwise(x, "Conv2d_%d_depthwise" % i, stride)
            x = self.convolution(x, "Conv2d_%d_pointwise" % i, self.channels(width), 1)
            maps += [x] if i in (11, 13) else []
        for i, width in enumerate(EXTRA, 2):
            x = self.convolution(x, "Conv2d_13_pointwise_1_Conv2d_%d" % i, self.channels(width // 2), 1)
            x = self.convolution(x, "Conv2d_13_pointwise_2_Conv2d_%d" % i, self.channels(width), 3, 2)
            maps.append(x)
        return maps

    def predictor(self, x, scope, outputs):
        tf, inputs = self.tf, x.shape.as_list()[-1]
        with tf.variable_scope(scope):
            kernel = self.variable("weights", [1, 1, inputs, outputs], 0.5 * inputs**-0.5)
            bias = tf.get_variable("biases", [outputs], initializer=tf.zeros_initializer())
            return tf.nn.bias_add(tf.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding="SAME"), bias)

    def predictions(self, maps):
        """Returns the encoded boxes and the logits of the classes, of all anchors."""
        tf, classes, boxes, scores = self.tf, self.sizes.classes + 1, [], []
        for i, x in enumerate(maps):
            anchors, batch = (3 if i == 0 else 6), tf.shape(x)[0]
            with tf.variable_scope("BoxPredictor_%d" % i):
                encoded = self.predictor(x, "BoxEncodingPredictor", anchors * 4)
                logits = self.predictor(x, "ClassPredictor", anchors * classes)
            boxes.append(tf.reshape(encoded, tf.stack([batch, -1, 1, 4])))
            scores.append(tf.reshape(logits, tf.stack([batch, -1, classes])))
        return tf.concat(boxes, 1), tf.concat(scores, 1)

    def anchors(self, maps):
        """Returns centers and sizes: y, x, height, width."""
        scales = [0.2 + 0.15 * i for i in range(len(maps))] + [1.0]
        rows = []
        for i, x in enumerate(maps):
            side = x.shape.as_list()[1]
            shapes = [(scales[i], ratio) for ratio in (1.0, 2.0, 0.5, 3.0, 1 / 3)]
            shapes.append(((scales[i] * scales[i + 1]) ** 0.5, 1.0))
            shapes = [(0.1, 1.0), (scales[0], 2.0), (scales[0], 0.5)] if i == 0 else shapes
            for y, x, (scale, ratio) in ((y, x, s) for y in range(side) for x in range(side) for s in shapes):
                rows.append([(y + 0.5) / side, (x + 0.5) / side, scale / ratio**0.5, scale * ratio**0.5])
        return np.array(rows, np.float32)

    def decoded(self, encoded, anchors):
        tf = self.tf
        ya, xa, ha, wa = tf.unstack(tf.transpose(tf.constant(anchors)))
        batch, count = tf.shape(encoded)[0], len(anchors)
        tiled = [tf.tile(tf.expand_dims(a, 0), tf.stack([batch, 1])) for a in (ya, xa, ha, wa)]
        ya, xa, ha, wa = (tf.reshape(a, [-1]) for a in tiled)
        ty, tx, th, tw = tf.unstack(tf.transpose(tf.reshape(encoded, [-1, 4])))
        ty, tx, th, tw = ty / 10.0, tx / 10.0, th / 5.0, tw / 5.0
        h, w, y, x = tf.exp(th) * ha, tf.exp(tw) * wa, ty * ha + ya, tx * wa + xa
        corners = tf.transpose(tf.stack([y - h / 2.0, x - w / 2.0, y + h / 2.0, x + w / 2.0]))
        return tf.reshape(corners, tf.stack([batch, count, 4]))

    def suppressed(self, boxes, scores, label):
        """Returns the boxes, scores and class that remain of one class."""
        tf = self.tf
        above = tf.reshape(tf.cast(tf.where(tf.greater(scores, SCORE)), tf.int32), [-1])
        boxes, scores = tf.gather(boxes, above), tf.gather(scores, above)
        most = tf.minimum(DETECTIONS, tf.shape(boxes)[0])
        selected = tf.image.non_max_suppression(boxes, scores, most, iou_threshold=OVERLAP)
        boxes, scores = tf.gather(boxes, selected), tf.gather(scores, selected)
        return boxes, scores, tf.zeros_like(scores) + float(label)

    def detections(self, boxes, scores):
        """multiclass_non_max_suppression for one image, clipped to it and padded."""
        tf = self.tf
        found = []
        for label, column in enumerate(tf.unstack(scores, axis=1)):
            with tf.name_scope("class_%d" % label):
                found.append(self.suppressed(boxes, column, label))
        boxes, scores, classes = (tf.concat(parts, 0) for parts in zip(*found))
        with tf.control_dependencies([tf.Assert(tf.equal(tf.shape(boxes)[0], tf.shape(scores)[0]), [boxes])]):
            _, order = tf.nn.top_k(scores, tf.shape(scores)[0], sorted=True)
        boxes, scores, classes = (tf.gather(part, order) for part in (boxes, scores, classes))
        boxes = tf.minimum(tf.maximum(boxes, 0.0), 1.0)
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        inside = tf.reshape(tf.cast(tf.where(tf.greater(areas, 0)), tf.int32), [-1])
        boxes, scores, classes = (tf.gather(part, inside) for part in (boxes, scores, classes))
        count = tf.minimum(DETECTIONS, tf.shape(scores)[0])
        return [self.padded(part, count) for part in (boxes, scores, classes)] + [count]

    def padded(self, part, count):
        tf = self.tf
        rest = [[0, DETECTIONS - count]] + [[0, 0]] * (part.shape.rank - 1)
        part = tf.cond(
            tf.greater(tf.shape(part)[0], DETECTIONS), lambda: part[:DETECTIONS], lambda: tf.identity(part)
        )
        part = tf.pad(part, rest)
        part.set_shape([DETECTIONS] + part.shape.as_list()[1:])
        return part

    def build(self):
        tf, side = self.tf, self.sizes.side
        images = tf.placeholder(tf.float32, [None, None, None, 3], name="image_tensor")
        images = tf.cast(tf.cast(images * 255.0, tf.uint8), tf.float32)
        resize = lambda image: tf.image.resize_images(image, [side, side])  # noqa: E731
        images = tf.map_fn(resize, images)
        maps = self.feature_maps((2.0 / 255.0) * images - 1.0)
        encoded, logits = self.predictions(maps)
        boxes = self.decoded(encoded, self.anchors(maps))
        scores = tf.sigmoid(logits)[:, :, 1:]
        types = [tf.float32, tf.float32, tf.float32, tf.int32]
        found = tf.map_fn(
            lambda image: self.detections(*image), (boxes, scores), types, parallel_iterations=32
        )
        found[2] += 1.0
        found[3] = tf.cast(found[3], tf.float32)
        for value, name in zip(found, FETCHES):
            tf.identity(value, name=name)
        return frozen(tf, FETCHES)


def models(small=False):
    sizes = Sizes(90, 120, 96, 6, 0.125) if small else Sizes()

    def model(batch):
        feeds = {"image_tensor": ((batch, sizes.height, sizes.width, 3), 0)}
        build = lambda tf, folder: Ssd(tf, sizes).build()  # noqa: E731
        return Model("w14_ssd_b%d" % batch, build, FETCHES, feeds, steps=1, tolerance=1e-4)

    return [model(batch) for batch in (1, 4)]


if __name__ == "__main__":
    main("W14", __doc__)
