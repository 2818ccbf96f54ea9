#!/usr/bin/env python3
"""Runs random programs of variables on TensorFlow and on weir serve. The results must be equal.

Variables of both kinds are read, written, trained and averaged, in branches and v1 while loops.
Control edges order every use of a variable relative to every write of it, so that the result is
deterministic. Only direct reads are used: TensorFlow shares the memory of ref variables.
Skipped without TensorFlow.
usage: variables_search.py WEIR [--seconds 60] [--seed FIRST] [--programs MOST]
"""

import argparse
import os
import random
import sys
import time

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serve_test import Server  # prints SKIPPED and exits without TensorFlow
from digits_test import tf, v1
import numpy as np

v1.disable_eager_execution()
v1.disable_control_flow_v2()
v1.logging.set_verbosity(v1.logging.ERROR)

SIZE = 3
STEPS = 3
PROGRAMS_OF_A_SERVER = 200
OPTIMIZERS = (
    lambda: v1.train.GradientDescentOptimizer(0.1),
    lambda: v1.train.MomentumOptimizer(0.05, 0.9),
    lambda: v1.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    lambda: v1.train.AdamOptimizer(0.05),
    lambda: v1.train.AdagradOptimizer(0.1),
    lambda: v1.train.RMSPropOptimizer(0.02),
)


class Program:
    """A graph in which control edges run each statement after the previous ones."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.fetches = []
        self.graph = tf.Graph()
        with self.graph.as_default(), v1.variable_scope("program%d" % seed):
            self.flag = v1.placeholder(tf.bool, [], "flag")
            self.variables = [self.variable(i) for i in range(self.random.randint(1, 4))]
            self.last = [tf.constant(0.0)]
            self.statements(self.random.randint(2, 8), depth=0, keep=True)
            self.state = v1.global_variables()
            self.init = v1.global_variables_initializer()

    def variable(self, i):
        value = np.float32([self.random.uniform(-1, 1) for _ in range(SIZE)])
        return v1.get_variable(
            "v%d" % i, initializer=value, use_resource=self.random.random() < 0.3
        )

    def statements(self, count, depth, keep):
        """Runs them in sequence. Returns the sum of their results."""
        total = None
        for _ in range(count):
            with tf.control_dependencies(self.last):
                value, done = self.statement(depth)
                self.last = [done]
            if value is not None:
                if keep:
                    self.fetches.append(value)
                total = value if total is None else total + value
        if total is None:
            with tf.control_dependencies(self.last):
                total = tf.zeros([SIZE])
        return total

    def statement(self, depth):
        """Returns a value that does not alias a variable, or None, and the op that completes the statement."""
        kinds = ["use"] * 5 + ["write"] * 4 + ["rows", "apply"]
        if depth < 2:
            kinds += ["branch", "loop"]
        if depth == 0:
            kinds += ["train", "train", "average", "side by side"]
        return getattr(self, self.random.choice(kinds).replace(" ", "_"))(depth)

    def pick(self):
        return self.random.choice(self.variables)

    def expression(self):
        """An expression of direct reads whose values remain small."""
        v, w, c = self.pick(), self.pick(), self.random.uniform(-1, 1)
        make = self.random.choice(
            (
                lambda: v * c,
                lambda: v + w,
                lambda: v - w,
                lambda: v * w,
                lambda: v * v,
                lambda: tf.maximum(v, c),
                lambda: tf.square(v) * c,
                lambda: tf.gather(v, [2, 0, 1]) + c,
                lambda: tf.reduce_sum(v) * tf.constant([c, 1.0, -c]),
                lambda: tf.concat([v[:1] * c, w[1:]], 0) + c,
                lambda: tf.where(tf.greater(v, w), v * c, w + c),
                lambda: tf.add_n([v * c, w * 0.5, v * 0.25]),
            )
        )
        return tf.clip_by_value(make(), -2.0, 2.0)

    def use(self, _):
        y = self.expression()
        return y, y.op

    def write(self, _):
        v, x = self.pick(), self.expression()
        if self.random.random() < 0.3:
            x = tf.clip_by_value(v * self.random.uniform(0.5, 1.0), -0.5, 0.5)
        done = self.random.choice(
            (
                lambda: v.assign(x),
                lambda: v.assign_add(x * 0.5),
                lambda: v.assign_sub(x * 0.25),
                lambda: v1.assign(v, v * 0.5),
            )
        )()
        return None, done.op

    def rows(self, _):
        v, c = self.pick(), self.random.uniform(-1, 1)
        name = self.random.choice(("scatter_add", "scatter_update", "scatter_sub"))
        return None, getattr(v1, name)(v, [self.random.randrange(SIZE)], [c]).op

    def apply(self, _):
        """Runs an update op of an optimizer directly."""
        v, x = self.pick(), self.expression()
        if isinstance(v, v1.Variable) and v.dtype._is_ref_dtype:
            return None, tf.raw_ops.ApplyGradientDescent(var=v._ref(), alpha=0.1, delta=x).op
        return None, tf.raw_ops.ResourceApplyGradientDescent(var=v.handle, alpha=0.1, delta=x)

    def train(self, _):
        loss = sum(tf.reduce_sum(tf.square(v * (1.0 + 0.1 * i) - 0.5)) for i, v in enumerate(self.variables))
        if self.random.random() < 0.5:
            loss += tf.reduce_sum(self.pick() * self.pick())
        optimizer = self.random.choice(OPTIMIZERS)()
        trained = self.random.sample(self.variables, self.random.randint(1, len(self.variables)))
        # The loss and all gradients precede all updates, because they read the variables that the updates write.
        with tf.control_dependencies([loss]):
            done = optimizer.minimize(
                loss, var_list=trained, gate_gradients=v1.train.Optimizer.GATE_GRAPH
            )
        return loss + tf.zeros([SIZE]), done

    def average(self, _):
        average = v1.train.ExponentialMovingAverage(self.random.uniform(0.3, 0.9))
        v = self.pick()
        done = average.apply([v])
        with tf.control_dependencies([done]):
            y = average.average(v) * 1.0
        return y, y.op

    def side_by_side(self, _):
        """Two unordered statements on different variables."""
        everything, before = self.variables, self.last
        cut = self.random.randint(0, len(everything))
        values, ends = [], []
        for part in (everything[:cut], everything[cut:]):
            if not part:
                continue
            self.variables, self.last = part, before
            with tf.control_dependencies(before):
                value = self.statements(self.random.randint(1, 3), depth=1, keep=False)
            values.append(value)
            ends += self.last
        self.variables, self.last = everything, before
        y = tf.add_n(values)
        with tf.control_dependencies(ends + [y]):
            return y, tf.no_op()

    def inside(self, depth):
        y = self.statements(self.random.randint(1, 4), depth + 1, keep=False)
        with tf.control_dependencies(self.last):
            return tf.identity(y)

    def branch(self, depth):
        outside = self.last
        pred = self.random.choice(
            (
                lambda: tf.identity(self.flag),
                lambda: tf.logical_not(self.flag),
                lambda: tf.reduce_sum(self.pick() * 1.0) > 0.0,
            )
        )()

        def side():
            self.last = [pred]
            return self.inside(depth)

        y = v1.cond(pred, side, side) + 0.0
        self.last = outside
        return y, y.op

    def loop(self, depth):
        outside, count = self.last, self.random.randint(0, 4)

        def body(i, total):
            self.last = [i]
            y = self.inside(depth)
            with tf.control_dependencies([y]):
                return i + 1, tf.clip_by_value(total + y, -4.0, 4.0)

        first = tf.identity(0), tf.zeros([SIZE])
        result = v1.while_loop(lambda i, _: i < count, body, first)
        self.last = outside
        with tf.control_dependencies([result[0]]):
            y = result[1] + 0.0
        return y, y.op

    def run(self, target):
        """Returns all values of all steps."""
        config = v1.ConfigProto(inter_op_parallelism_threads=2, intra_op_parallelism_threads=1)
        seen = []
        with v1.Session(target, graph=self.graph, config=config) as session:
            session.run(self.init)
            for step in range(STEPS):
                feeds = {self.flag: step % 2 == 0}
                seen += session.run([self.fetches, self.last], feeds)[0]
                seen += session.run(self.state)
        return seen


def same(a, b):
    return len(a) == len(b) and all(
        np.allclose(x, y, rtol=1e-5, atol=1e-5, equal_nan=True) for x, y in zip(a, b)
    )


def settled(seed, times=5):
    """Checks that TensorFlow returns the same values each time."""
    first = Program(seed).run("")
    return all(same(first, Program(seed).run("")) for _ in range(times))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=10**9)
    options = parser.parse_args()
    end, seed, faults = time.time() + options.seconds, options.seed, 0
    last = seed + options.programs
    while time.time() < end and seed < last:
        with Server(options.weir) as server:
            for _ in range(PROGRAMS_OF_A_SERVER):
                if time.time() > end or seed >= last:
                    break
                try:
                    theirs = Program(seed).run("")
                except tf.errors.OpError as e:
                    print("seed %d: TensorFlow fails: %s" % (seed, e.message[:100]))
                    seed += 1
                    continue
                try:
                    ours, error = Program(seed).run(server.target), None
                except tf.errors.OpError as e:
                    ours, error = [], e.message[:300]
                if not same(theirs, ours):
                    if error is None and not settled(seed):
                        print("seed %d: TensorFlow itself gives several results" % seed)
                    else:
                        faults += 1
                        print("seed %d: DIFFERENT %s" % (seed, error or ""), flush=True)
                seed += 1
    print("%d programs, seeds %d to %d, %d different" % (seed - options.seed, options.seed, seed - 1, faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
