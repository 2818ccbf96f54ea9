#!/usr/bin/env python3
"""Builds the digits network in C++ and in Python, and exchanges checkpoints in both directions.

Skipped without TensorFlow.
usage: digits_test.py DIGITS WEIR DATA   (the two programs, and digits.csv.gz)
"""

import glob
import gzip
import os
import re
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

try:
    import numpy as np
    import tensorflow as tf
except ImportError as error:
    print("SKIPPED: no TensorFlow to compare with (%s)" % error)
    sys.exit(0)

v1 = tf.compat.v1
BATCH = 64


def shuffled(n, seed):
    """Shuffles like the example: std::mt19937, from the last element to the first."""
    draw = np.random.RandomState(seed)
    order = np.arange(n)
    for i in range(n, 1, -1):
        k = int(draw.randint(0, 2**32, dtype=np.uint32)) % i
        order[i - 1], order[k] = order[k], order[i - 1]
    return order


class Digits:
    def __init__(self, path):
        rows = np.loadtxt(gzip.open(path, "rt"), delimiter=",", dtype=np.int64)
        images = (rows[:, :64] / 16).astype(np.float32).reshape(-1, 8, 8, 1)
        order = shuffled(len(rows), 17)
        cut = len(rows) * 4 // 5
        self.train = images[order[:cut]], rows[order[:cut], 64]
        self.test = images[order[cut:]], rows[order[cut:], 64]

    def epoch(self, number):
        """The batches of an epoch, counted from 0, in the order of the example."""
        images, labels = self.train
        order = shuffled(len(images), number + 1)
        for b in range(len(images) // BATCH):
            picked = order[b * BATCH : (b + 1) * BATCH]
            yield images[picked], labels[picked]


class Network:
    """The network of examples/digits/network.cc, built with TensorFlow."""

    def __init__(self, steps):
        self.graph = tf.Graph()
        with self.graph.as_default():
            # Some initial weights lead to pooling windows whose largest values differ by a rounding error;
            # the two runtimes may then propagate the gradient to different elements.
            v1.set_random_seed(1)
            self.image = v1.placeholder(tf.float32, [None, 8, 8, 1], "image")
            self.label = v1.placeholder(tf.int64, [None], "label")
            self.dropout = v1.placeholder_with_default(0.0, [], "dropout")
            x = self.conv(self.conv(self.image, 32, "conv1"), 64, "conv2")
            x = tf.reshape(tf.nn.max_pool2d(x, 2, 2, "VALID"), [-1, 4 * 4 * 64])
            x = tf.nn.relu(self.dense(tf.nn.dropout(x, self.dropout), 128, "hidden"))
            self.logits = self.dense(tf.nn.dropout(x, self.dropout), 10, "logits")
            self.loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(self.label, self.logits)
            )
            right = tf.equal(tf.argmax(self.logits, 1), self.label)
            self.accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
            step = v1.train.get_or_create_global_step()
            rate = v1.train.cosine_decay(2e-3, step, steps)
            self.train = v1.train.AdamOptimizer(rate).minimize(self.loss, global_step=step)
            self.init = v1.global_variables_initializer()
            self.saver = v1.train.Saver()

    @staticmethod
    def conv(x, filters, name):
        with v1.variable_scope(name):
            w = v1.get_variable(
                "weights", [3, 3, x.shape[3], filters], initializer=v1.initializers.he_normal()
            )
            b = v1.get_variable("biases", [filters], initializer=v1.zeros_initializer())
            return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b))

    @staticmethod
    def dense(x, units, name):
        with v1.variable_scope(name):
            w = v1.get_variable("weights", [x.shape[1], units])
            b = v1.get_variable("biases", [units], initializer=v1.zeros_initializer())
            return tf.nn.bias_add(tf.matmul(x, w), b)

    def feeds(self, batch, dropout=0.0):
        return {self.image: batch[0], self.label: batch[1], self.dropout: dropout}


class Test:
    def __init__(self, root, digits, weir, data):
        self.root, self.digits, self.weir, self.data_path = root, digits, weir, data
        self.data = Digits(data)
        self.faults = 0

    def expect(self, holds, text):
        print("%s  %s" % ("ok  " if holds else "FAIL", text), flush=True)
        self.faults += not holds

    def expect_equal(self, theirs, ours, text):
        text = "%s: TensorFlow classifies %.4f%% of the held-out images correctly" % (text, 100 * theirs)
        self.expect(abs(100 * theirs - ours) < 1e-3, text + ", Weir %.4f%%" % ours)

    def run(self, *command):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError("%s\n%s%s" % (" ".join(command), done.stdout, done.stderr))
        return done.stdout

    def run_digits(self, directory, *flags):
        """Its accuracy on the test images, in percent."""
        out = self.run(self.digits, "--data", self.data_path, "--dir", directory, *flags)
        return float(re.search(r"held-out images: ([0-9.]+)%", out).group(1))

    def folder(self, name):
        path = os.path.join(self.root, name)
        os.makedirs(path)
        return path

    def test_tensorflow_restores_what_weir_trained(self):
        self.trained = self.folder("trained")
        self.run_digits(self.trained, "--epochs", "3")
        accuracy = self.run_digits(self.trained, "--evaluate")
        checkpoint = tf.train.latest_checkpoint(self.trained)
        image, logits = os.path.join(self.root, "image.npy"), os.path.join(self.root, "logits.npy")
        np.save(image, self.data.test[0])
        step = ["--feed", "image:0=" + image, "--fetch", "logits/BiasAdd:0=" + logits]
        self.run(self.weir, "run", checkpoint + ".meta", "--checkpoint", checkpoint, *step)
        net = Network(66)
        with v1.Session(graph=net.graph) as session:
            net.saver.restore(session, checkpoint)
            theirs, right = session.run([net.logits, net.accuracy], net.feeds(self.data.test))
        self.expect_equal(right, accuracy, "saved by Weir")
        difference = np.abs(np.load(logits) - theirs).max() / np.abs(theirs).max()
        self.expect(difference < 1e-5, "logits differ by %.1e of the largest" % difference)

    def test_weir_trains_on_from_tensorflows_checkpoint(self):
        net, directory = Network(132), self.folder("tensorflow")
        with v1.Session(graph=net.graph) as session:
            net.saver.restore(session, tf.train.latest_checkpoint(self.trained))
            for batch in self.data.epoch(3):
                session.run(net.train, net.feeds(batch, 0.3))
            right = session.run(net.accuracy, net.feeds(self.data.test))
            prefix = net.saver.save(session, os.path.join(directory, "model"), global_step=88)
        self.run(self.weir, "ckpt", "verify", prefix)
        accuracy = self.run_digits(directory, "--evaluate")
        self.expect_equal(right, accuracy, "saved by TensorFlow")
        after = self.run_digits(directory, "--resume", "--epochs", "6")
        last = tf.train.latest_checkpoint(directory)
        self.expect(
            last.endswith("model-132") and after > 95,
            "trained on by Weir, to %s: %.4f%%" % (os.path.basename(last), after),
        )

    def expect_close(self, ours, theirs, text):
        same = len(ours) == len(theirs) > 0
        worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs)) if same else float("inf")
        text += ": after each of %d Adam steps, losses at most %.1e apart" % (len(ours), worst)
        self.expect(same and worst < 1e-4, text)

    def test_losses_agree_step_by_step(self):
        net, self.steps = Network(22), self.folder("steps")
        self.losses, theirs = [], []
        with v1.Session(graph=net.graph) as session:
            session.run(net.init)
            net.saver.save(session, os.path.join(self.steps, "model"), global_step=0)
            for batch in self.data.epoch(0):
                session.run(net.train, net.feeds(batch))
                theirs.append(session.run(net.loss, net.feeds(batch)))
        self.run_digits(
            self.steps, "--resume", "--epochs", "1", "--dropout", "0", "--summary-every", "1"
        )
        events = glob.glob(os.path.join(self.steps, "events.*"))[0]
        for event in v1.train.summary_iterator(events):
            self.losses += [v.simple_value for v in event.summary.value if v.tag == "loss"]
        self.expect_close(self.losses, theirs, "Weir and TensorFlow from equal weights")

    def test_tensorflow_trains_weirs_graph(self):
        prefix, directory = os.path.join(self.steps, "model-"), self.folder("imported")
        losses = []
        with tf.Graph().as_default() as graph, v1.Session() as session:
            saver = v1.train.import_meta_graph(prefix + "22.meta")
            saver.restore(session, prefix + "0")
            image, label = (graph.get_tensor_by_name(name + ":0") for name in ("image", "label"))
            # The summary ops have their tags first, followed by the values.
            curves = [graph.get_operation_by_name(name) for name in ("loss", "accuracy")]
            loss, accuracy = (op.inputs[1] for op in curves)
            (train,) = graph.get_collection("train_op")
            for batch in self.data.epoch(0):
                feeds = {image: batch[0], label: batch[1]}
                session.run(train, feeds)
                losses.append(session.run(loss, feeds))
            right = session.run(accuracy, {image: self.data.test[0], label: self.data.test[1]})
            step = v1.train.get_global_step()
            saver.save(session, os.path.join(directory, "model"), global_step=step)
        self.expect_close(self.losses, losses, "Weir, and TensorFlow running Weir's MetaGraph")
        self.expect_equal(right, self.run_digits(directory, "--evaluate"), "saved by that graph")

    def test_all(self):
        self.test_tensorflow_restores_what_weir_trained()
        self.test_weir_trains_on_from_tensorflows_checkpoint()
        self.test_losses_agree_step_by_step()
        self.test_tensorflow_trains_weirs_graph()
        print("TensorFlow %s: %d faults" % (tf.__version__, self.faults))
        return 1 if self.faults else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        status = Test(folder, *sys.argv[1:4]).test_all()
    sys.exit(status)
