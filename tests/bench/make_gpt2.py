#!/usr/bin/env python3
"""Writes the graphs of W13, GPT-2 small, which samples tokens, and TensorFlow's results.

usage: make_gpt2.py FOLDER

The network and the sampling loop are those of OpenAI's model.py and sample.py, op by op: a first
step over the prompt, then a v1 while loop in which each iteration concatenates the keys and values
of one token to those before it, keeps the 40 best logits, and draws the next token with
tf.multinomial and a fixed seed. The weights are random and frozen. FOLDER gets

    w13_gpt2_bN.pb    frozen: `context`, [N, 8], to `tokens`, [N, 8 + 64]
    and TensorFlow's tokens as .npz

Needs 3 GB of memory, and 1 GB in FOLDER.
"""

import math
from typing import NamedTuple

from model_graphs import Model, frozen, main

PROMPT, TOP = 8, 40


class Sizes(NamedTuple):
    vocabulary: int = 50257
    positions: int = 1024
    width: int = 768
    heads: int = 12
    layers: int = 12
    length: int = 64


class Gpt2:
    def __init__(self, tf, sizes):
        self.tf, self.sizes = tf, sizes

    def variable(self, name, shape, stddev):
        initial = self.tf.random_normal_initializer(stddev=stddev, seed=len(self.tf.global_variables()))
        return self.tf.get_variable(name, shape, initializer=initial)

    def shape_list(self, x):
        """The known extents as numbers, the others as scalars of the graph."""
        shape = self.tf.shape(x)
        return [shape[i] if n is None else n for i, n in enumerate(x.shape.as_list())]

    def softmax(self, x):
        tf = self.tf
        exponentials = tf.exp(x - tf.reduce_max(x, axis=-1, keepdims=True))
        return exponentials / tf.reduce_sum(exponentials, axis=-1, keepdims=True)

    def gelu(self, x):
        tf = self.tf
        return 0.5 * x * (1 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * tf.pow(x, 3))))

    def norm(self, x, scope):
        tf = self.tf
        with tf.variable_scope(scope):
            g = tf.get_variable("g", [x.shape[-1]], initializer=tf.ones_initializer())
            b = tf.get_variable("b", [x.shape[-1]], initializer=tf.zeros_initializer())
            mean = tf.reduce_mean(x, axis=-1, keepdims=True)
            variance = tf.reduce_mean(tf.square(x - mean), axis=-1, keepdims=True)
            return (x - mean) * tf.rsqrt(variance + 1e-5) * g + b

    def conv1d(self, x, scope, width):
        tf = self.tf
        with tf.variable_scope(scope):
            *start, channels = self.shape_list(x)
            w = self.variable("w", [1, channels, width], 0.02)
            b = tf.get_variable("b", [width], initializer=tf.zeros_initializer())
            rows = tf.matmul(tf.reshape(x, [-1, channels]), tf.reshape(w, [-1, width])) + b
            return tf.reshape(rows, start + [width])

    def masked(self, w):
        tf = self.tf
        _, _, queries, keys = self.shape_list(w)
        i, j = tf.range(queries)[:, None], tf.range(keys)
        b = tf.cast(i >= j - keys + queries, w.dtype)
        b = tf.reshape(b, [1, 1, queries, keys])
        return w * b - tf.cast(1e10, w.dtype) * (1 - b)

    def attention(self, x, past):
        tf = self.tf
        width, heads = self.sizes.width, self.sizes.heads

        def split_heads(y):
            *start, _ = self.shape_list(y)
            return tf.transpose(tf.reshape(y, start + [heads, width // heads]), [0, 2, 1, 3])

        q, k, v = map(split_heads, tf.split(self.conv1d(x, "c_attn", 3 * width), 3, axis=2))
        present = tf.stack([k, v], axis=1)
        if past is not None:
            past_k, past_v = tf.unstack(past, axis=1)
            k, v = tf.concat([past_k, k], axis=-2), tf.concat([past_v, v], axis=-2)
        w = tf.matmul(q, k, transpose_b=True)
        w = w * tf.rsqrt(tf.cast(width // heads, w.dtype))
        y = tf.transpose(tf.matmul(self.softmax(self.masked(w)), v), [0, 2, 1, 3])
        *start, _, _ = self.shape_list(y)
        return self.conv1d(tf.reshape(y, start + [width]), "c_proj", width), present

    def block(self, x, scope, past):
        tf = self.tf
        with tf.variable_scope(scope):
            with tf.variable_scope("attn"):
                y, present = self.attention(self.norm(x, "ln_1"), past)
            x = x + y
            with tf.variable_scope("mlp"):
                y = self.gelu(self.conv1d(self.norm(x, "ln_2"), "c_fc", 4 * self.sizes.width))
                return x + self.conv1d(y, "c_proj", self.sizes.width), present

    def step(self, tokens, past=None):
        """Returns the logits of all tokens, and their keys and values."""
        tf, sizes = self.tf, self.sizes
        with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
            batch, length = self.shape_list(tokens)
            wpe = self.variable("wpe", [sizes.positions, sizes.width], 0.01)
            wte = self.variable("wte", [sizes.vocabulary, sizes.width], 0.02)
            before = 0 if past is None else tf.shape(past)[-2]
            positions = tf.tile(tf.expand_dims(before + tf.range(length), 0), [batch, 1])
            x = tf.gather(wte, tokens) + tf.gather(wpe, positions)
            presents = []
            pasts = [None] * sizes.layers if past is None else tf.unstack(past, axis=1)
            for i, layer_past in enumerate(pasts):
                x, present = self.block(x, "h%d" % i, layer_past)
                presents.append(present)
            rows = tf.reshape(self.norm(x, "ln_f"), [batch * length, sizes.width])
            logits = tf.reshape(tf.matmul(rows, wte, transpose_b=True), [batch, length, sizes.vocabulary])
            return logits, tf.stack(presents, axis=1)

    def sample(self, context, batch):
        tf, sizes = self.tf, self.sizes
        past_shape = [batch, sizes.layers, 2, sizes.heads, None, sizes.width // sizes.heads]

        def body(past, previous, output):
            logits, presents = self.step(previous[:, tf.newaxis], past)
            logits = logits[:, -1, :] / tf.cast(1.0, tf.float32)
            values, _ = tf.nn.top_k(logits, k=TOP)
            logits = tf.where(logits < values[:, -1, tf.newaxis], tf.ones_like(logits) * -1e10, logits)
            drawn = tf.multinomial(logits, num_samples=1, output_dtype=tf.int32, seed=11)
            past = tf.concat([past, presents], axis=-2)
            return [past, tf.squeeze(drawn, axis=[1]), tf.concat([output, drawn], axis=1)]

        _, past = self.step(context[:, :-1])
        shapes = [tf.TensorShape(past_shape), tf.TensorShape([batch]), tf.TensorShape([batch, None])]
        _, _, tokens = tf.while_loop(
            lambda *_: True, body, [past, context[:, -1], context], shape_invariants=shapes,
            maximum_iterations=sizes.length, back_prop=False,
        )  # fmt: skip
        return tokens


def models(small=False):
    sizes = Sizes(500, 64, 48, 3, 2, 20) if small else Sizes()

    def model(batch):
        def build(tf, folder):
            tf.set_random_seed(1)
            context = tf.placeholder(tf.int32, [batch, PROMPT], name="context")
            tf.identity(Gpt2(tf, sizes).sample(context, batch), name="tokens")
            return frozen(tf, ["tokens"])

        feeds = {"context": ((batch, PROMPT), sizes.vocabulary)}
        return Model("w13_gpt2_b%d" % batch, build, ["tokens"], feeds, steps=2)

    return [model(batch) for batch in (1, 4)]


if __name__ == "__main__":
    main("W13", __doc__)
