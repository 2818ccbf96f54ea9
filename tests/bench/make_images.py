#!/usr/bin/env python3
"""Writes the graphs and data of W16, images from JPEG files into a training step, and TensorFlow's results.

usage: make_images.py FOLDER

A data set reads JPEG images from TFRecord files, shuffles, decodes and resizes them, and augments them
as TensorFlow's CIFAR-10 tutorial does: a random crop, flip, brightness and contrast, then
standardization. ResNet-20 with batch normalization is trained on the batches by momentum. The random
numbers are those of stateless ops with a counter for a seed, as TensorFlow's tutorial of augmentation
has them, so that calls at the same time give the same elements. FOLDER gets

    w16_images.tfrecord     the images, 500 x 375, and their labels
    w16_pipeline_bN.pb      the data set alone: `init_all`, `images`, `labels`
    w16_step_bN.pb          the training step alone, on fed images: `init_all`, `loss`, `train`
    w16_images_bN.pb        both: `init_all`, `loss`, `train`
    and TensorFlow's values of the first steps as .npz
"""

import os

import numpy as np
from model_graphs import Model, main

CROP, RESIZED, CLASSES = 32, 40, 10


def write_records(tf, path, count, height, width):
    """Writes smooth random images with some noise, which compress as photographs do."""
    if os.path.exists(path):
        return
    random = np.random.RandomState(0)
    with tf.Graph().as_default(), tf.Session() as session:
        image = tf.placeholder(tf.float32, [None, None, 3])
        noise = tf.placeholder(tf.float32, [height, width, 3])
        smooth = tf.image.resize_images(image, [height, width], tf.image.ResizeMethod.BICUBIC)
        encoded = tf.image.encode_jpeg(tf.saturate_cast(smooth + noise, tf.uint8), quality=90)
        with tf.io.TFRecordWriter(path) as writer:
            for i in range(count):
                fed = {image: random.uniform(0, 255, (24, 32, 3)),
                       noise: random.uniform(-20, 20, (height, width, 3))}  # fmt: skip
                example = tf.train.Example()
                example.features.feature["image"].bytes_list.value.append(session.run(encoded, fed))
                example.features.feature["label"].int64_list.value.append(i % CLASSES)
                writer.write(example.SerializeToString())


def augment(image, seed):
    from tensorflow import image as ops  # the stateless functions are not in compat.v1

    image = ops.resize(image, [RESIZED, RESIZED])
    image = ops.stateless_random_crop(image, [CROP, CROP, 3], seed)
    image = ops.stateless_random_flip_left_right(image, seed)
    image = ops.stateless_random_brightness(image, max_delta=63, seed=seed)
    image = ops.stateless_random_contrast(image, lower=0.2, upper=1.8, seed=seed)
    return ops.per_image_standardization(image)


def batches(tf, path, batch):
    """Returns the images and labels of an iterator, and its initializer."""

    def parse(record, number):
        features = tf.io.parse_single_example(
            record,
            {"image": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)},
        )
        image = tf.image.decode_jpeg(features["image"], channels=3)
        return augment(image, tf.stack([7, number])), features["label"]

    numbers = tf.data.Dataset.range(1 << 40)
    data = tf.data.TFRecordDataset(path).repeat().shuffle(64, seed=1)
    data = tf.data.Dataset.zip((data, numbers)).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    data = data.batch(batch, drop_remainder=True).prefetch(2)
    iterator = tf.data.make_initializable_iterator(data)
    images, labels = iterator.get_next()
    return images, labels, iterator.initializer


class ResNet20:
    def __init__(self, tf):
        self.tf, self.count = tf, 0

    def variable(self, shape, initializer, trainable=True):
        self.count += 1
        return self.tf.get_variable(
            "v%d" % self.count, shape, initializer=initializer, trainable=trainable
        )

    def convolution(self, x, width, size, stride):
        tf, channels = self.tf, x.shape.as_list()[-1]
        spread = (2.0 / (size * size * channels)) ** 0.5
        initial = tf.random_normal_initializer(stddev=spread, seed=self.count)
        kernel = self.variable([size, size, channels, width], initial)
        x = tf.nn.conv2d(x, kernel, strides=[1, stride, stride, 1], padding="SAME")
        return self.batch_norm(x, width)

    def batch_norm(self, x, width):
        tf = self.tf
        gamma = self.variable([width], tf.ones_initializer())
        beta = self.variable([width], tf.zeros_initializer())
        mean = self.variable([width], tf.zeros_initializer(), trainable=False)
        variance = self.variable([width], tf.ones_initializer(), trainable=False)
        x, batch_mean, batch_variance = tf.nn.fused_batch_norm(x, gamma, beta, epsilon=1e-5)
        for moving, value in ((mean, batch_mean), (variance, batch_variance)):
            update = tf.assign_sub(moving, (moving - value) * (1 - 0.9))
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
        return x

    def logits(self, x):
        tf = self.tf
        x = tf.nn.relu(self.convolution(x, 16, 3, 1))
        for width in (16, 32, 64):
            for block in range(3):
                stride = 2 if width > 16 and block == 0 else 1
                y = tf.nn.relu(self.convolution(x, width, 3, stride))
                y = self.convolution(y, width, 3, 1)
                shortcut = self.convolution(x, width, 1, stride) if stride == 2 else x
                x = tf.nn.relu(y + shortcut)
        x = tf.reduce_mean(x, [1, 2])
        kernel = self.variable([64, CLASSES], tf.glorot_uniform_initializer(seed=self.count))
        return tf.nn.bias_add(tf.matmul(x, kernel), self.variable([CLASSES], tf.zeros_initializer()))


def train(tf, images, labels, initializer=None):
    logits = ResNet20(tf).logits(images)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(entropy, name="loss")
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        update = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
    tf.group(update, name="train")
    inits = [tf.global_variables_initializer()] + ([initializer] if initializer is not None else [])
    tf.group(*inits, name="init_all")


def models(small=False):
    batch, count, height, width = (8, 24, 60, 80) if small else (32, 512, 375, 500)

    def data(tf, folder):
        path = os.path.join(os.path.abspath(folder), "w16_images.tfrecord")
        write_records(tf, path, count, height, width)
        return batches(tf, path, batch)

    def pipeline(tf, folder):
        images, labels, initializer = data(tf, folder)
        tf.identity(images, name="images")
        tf.identity(labels, name="labels")
        tf.group(initializer, name="init_all")

    def step(tf, folder):
        images = tf.placeholder(tf.float32, [batch, CROP, CROP, 3], name="x")
        train(tf, images, tf.placeholder(tf.int32, [batch], name="y"))

    feeds = {"x": ((batch, CROP, CROP, 3), 0), "y": ((batch,), CLASSES)}
    # Each step of this network multiplies rounding errors by ten, so later losses say little.
    trained = {"init": "init_all", "target": "train", "steps": 3, "tolerance": 1e-3}
    return [
        Model("w16_pipeline_b%d" % batch, pipeline, ["images", "labels"], init="init_all", tolerance=1e-5),
        Model("w16_step_b%d" % batch, step, ["loss"], feeds, **trained),
        Model("w16_images_b%d" % batch, lambda tf, folder: train(tf, *data(tf, folder)), ["loss"], **trained),
    ]  # fmt: skip


if __name__ == "__main__":
    main("W16", __doc__)
