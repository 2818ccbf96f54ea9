"""Small programs with the idioms of public TensorFlow 1 programs.

A program is a function that builds its graph and returns a Run. The variable scope determines the kind of all
its variables. The fetched values are deterministic: control edges order the reads, and random ops
are seeded.
"""

import collections

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1

# init: ops that run first; steps: a list of (feeds by tensor, fetches).
Run = collections.namedtuple("Run", "init steps")
STEPS = 20
PROGRAMS = []


def program(build):
    PROGRAMS.append(build)
    return build


def numbers(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def variable(name, value, **options):
    return v1.get_variable(name, initializer=tf.constant(value), **options)


def after(ops, make):
    with tf.control_dependencies(ops):
        return make()


def same_each_step(*fetches, init=()):
    """Returns a Run with the same fetches in each step, without feeds."""
    return Run([v1.global_variables_initializer(), v1.tables_initializer(), *init], [({}, list(fetches))] * STEPS)


def dense(x, name, units, activation=None):
    shape = [int(x.shape[-1]), units]
    w = variable(name + "/w", numbers(len(name), *shape) * np.float32(shape[0] ** -0.5))
    b = variable(name + "/b", np.zeros(units, np.float32))
    y = tf.matmul(x, w) + b
    return activation(y) if activation else y


def regression(units=3):
    x, t = tf.constant(numbers(1, 8, 4)), tf.constant(numbers(2, 8, units))
    w = variable("w", numbers(3, 4, units))
    return w, tf.reduce_mean(tf.square(tf.matmul(x, w) - t))


@program
def clip_after_step():
    w, loss = regression()
    train = v1.train.GradientDescentOptimizer(0.5).minimize(loss)
    clip = after([train], lambda: v1.assign(w, tf.clip_by_value(w, -0.5, 0.5)))
    return same_each_step(after([clip], lambda: tf.reduce_sum(w * 2)), clip)


@program
def decay_after_step():
    w, loss = regression()
    train = v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    decay = after([train], lambda: v1.assign(w, w * 0.9))
    return same_each_step(after([decay], lambda: tf.norm(w)))


@program
def loss_after_step():
    w, loss = regression()
    train = v1.train.AdamOptimizer(0.1).minimize(loss)
    return same_each_step(after([train], lambda: tf.reduce_sum(tf.square(w + 0.0))),
                          after([train], lambda: tf.norm(w)))


@program
def average_after_step():
    w, loss = regression()
    step = v1.train.get_or_create_global_step()
    train = v1.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=step)
    ema = tf.train.ExponentialMovingAverage(0.9, step)
    apply = after([train], lambda: ema.apply([w]))
    return same_each_step(after([apply], lambda: ema.average(w) * 1.0), after([apply], lambda: w * 1.0))


@program
def average_without_bias():
    w, loss = regression()
    train = v1.train.GradientDescentOptimizer(0.3).minimize(loss)
    ema = tf.train.ExponentialMovingAverage(0.8, zero_debias=True)
    apply = after([train], lambda: ema.apply([w]))
    return same_each_step(after([apply], lambda: ema.average(w) * 1.0))


@program
def target_network_every_third_step():
    w, loss = regression()
    target = variable("target", numbers(9, 4, 3), trainable=False)
    step = v1.train.get_or_create_global_step()
    train = v1.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=step)

    def copy():
        due = tf.equal(step % 3, 0)
        return tf.cond(due, lambda: tf.identity(v1.assign(target, w)), lambda: tf.identity(target))

    copied = after([train], copy)
    return same_each_step(after([copied], lambda: target * 1.0), copied)


@program
def target_network_by_small_steps():
    w, loss = regression()
    target = variable("target", numbers(9, 4, 3), trainable=False)
    train = v1.train.RMSPropOptimizer(0.05).minimize(loss)
    follow = after([train], lambda: v1.assign(target, 0.9 * target + 0.1 * w))
    return same_each_step(after([follow], lambda: target * 1.0))


@program
def slow_weights():
    """Lookahead: every fifth step resets the fast weights to the slow weights."""
    w, loss = regression()
    slow = variable("slow", numbers(3, 4, 3), trainable=False)
    step = v1.train.get_or_create_global_step()
    train = v1.train.AdamOptimizer(0.2).minimize(loss, global_step=step)

    def look():
        def meet():
            moved = v1.assign_add(slow, 0.5 * (w - slow))
            return after([moved], lambda: tf.identity(v1.assign(w, slow + 0.0)))

        return tf.cond(tf.equal(step % 5, 0), meet, lambda: w * 1.0)

    return same_each_step(after([train], look))


@program
def gradient_accumulation():
    w, _ = regression()
    x, t = v1.placeholder(tf.float32, [None, 4]), v1.placeholder(tf.float32, [None, 3])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - t))
    optimizer = v1.train.AdamOptimizer(0.1)
    (gradient, _), = optimizer.compute_gradients(loss, [w])
    total = variable("total", np.zeros((4, 3), np.float32), trainable=False)
    add, clear = v1.assign_add(total, gradient), v1.assign(total, tf.zeros_like(total))
    train = optimizer.apply_gradients([(total / 4.0, w)])
    steps = []
    for i in range(STEPS):
        steps.append(({x: numbers(i, 2, 4), t: numbers(i + 99, 2, 3)}, [add]))
        if i % 4 == 3:
            steps += [({}, [train]), ({}, [w]), ({}, [clear])]
    return Run([v1.global_variables_initializer()], steps)


@program
def two_optimizers():
    x = tf.constant(numbers(1, 8, 4))
    with v1.variable_scope("body"):
        h = dense(x, "h", 5, tf.tanh)
    with v1.variable_scope("head"):
        y = dense(h, "y", 1)
    loss = tf.reduce_mean(tf.square(y - 0.5))
    body, head = (v1.trainable_variables(s) for s in ("body", "head"))
    slow = v1.train.GradientDescentOptimizer(0.05).minimize(loss, var_list=body)
    fast = after([slow], lambda: v1.train.AdagradOptimizer(0.5).minimize(loss, var_list=head))
    return same_each_step(after([fast], lambda: [tf.reduce_sum(v * 1.0) for v in body + head])[0],
                          after([fast], lambda: tf.reduce_sum(head[0] * 1.0)))


def generator(z):
    with v1.variable_scope("g", reuse=v1.AUTO_REUSE):
        return dense(dense(z, "one", 6, tf.nn.relu), "two", 2)


def critic(x):
    with v1.variable_scope("d", reuse=v1.AUTO_REUSE):
        return dense(dense(x, "one", 6, tf.nn.leaky_relu), "two", 1)


@program
def gan():
    z = v1.random_normal([8, 3], seed=5)
    fake, real = generator(z), tf.constant(numbers(4, 8, 2))
    cross = lambda x, t: tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=x, labels=tf.ones_like(x) * t))
    d_loss = cross(critic(real), 1.0) + cross(critic(fake), 0.0)
    g_loss = cross(critic(fake), 1.0)
    d = v1.train.AdamOptimizer(0.01, 0.5).minimize(d_loss, var_list=v1.trainable_variables("d/"))
    g = v1.train.AdamOptimizer(0.01, 0.5).minimize(g_loss, var_list=v1.trainable_variables("g/"))
    return Run([v1.global_variables_initializer()],
               [({}, [d, d_loss]), ({}, [g, g_loss, fake])] * (STEPS // 2))


@program
def wgan_with_clipped_weights():
    fake, real = generator(tf.constant(numbers(7, 8, 3))), tf.constant(numbers(4, 8, 2))
    loss = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real))
    d_vars = v1.trainable_variables("d/")
    train = v1.train.RMSPropOptimizer(0.05).minimize(loss, var_list=d_vars)
    clip = after([train], lambda: tf.group(*[v1.assign(v, tf.clip_by_value(v, -0.1, 0.1)) for v in d_vars]))
    g = v1.train.RMSPropOptimizer(0.05).minimize(-tf.reduce_mean(critic(fake)), var_list=v1.trainable_variables("g/"))
    return Run([v1.global_variables_initializer()], [({}, [clip]), ({}, [g]), ({}, d_vars)] * (STEPS // 2))


@program
def wgan_gradient_penalty():
    fake, real = generator(v1.random_normal([8, 3], seed=1)), tf.constant(numbers(4, 8, 2))
    share = v1.random_uniform([8, 1], seed=2)
    between = share * real + (1 - share) * fake
    slope, = tf.gradients(critic(between), between)
    penalty = tf.reduce_mean(tf.square(tf.norm(slope, axis=1) - 1))
    loss = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real)) + 10 * penalty
    train = v1.train.AdamOptimizer(0.01).minimize(loss, var_list=v1.trainable_variables("d/"))
    return same_each_step(loss, train)


@program
def attention_seq2seq():
    """An encoder and a decoder with attention, as while loops with TensorArrays."""
    source, batch, units = tf.constant(numbers(1, 5, 3, 4)), 3, 4
    we, wd, wa = (variable(n, numbers(i, 8, 4) * 0.5) for i, n in enumerate(("enc", "dec", "att")))

    def encode(i, h, out):
        h = tf.tanh(tf.matmul(tf.concat([source[i], h], 1), we))
        return i + 1, h, out.write(i, h)

    zero = tf.zeros([batch, units])
    empty = tf.TensorArray(tf.float32, 5)
    _, state, memory = v1.while_loop(lambda i, *_: i < 5, encode, (0, zero, empty))
    memory = tf.transpose(memory.stack(), [1, 0, 2])

    def decode(i, h, out):
        score = tf.reduce_sum(memory * tf.expand_dims(h, 1), 2)
        context = tf.reduce_sum(memory * tf.expand_dims(tf.nn.softmax(score), 2), 1)
        h = tf.tanh(tf.matmul(tf.concat([context, h], 1), wd))
        return i + 1, h, out.write(i, tf.matmul(tf.concat([context, h], 1), wa))

    _, _, out = v1.while_loop(lambda i, *_: i < 4, decode, (0, state, tf.TensorArray(tf.float32, 4)))
    labels = tf.constant(np.random.RandomState(3).randint(0, 4, (4, 3)))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=out.stack()))
    optimizer = v1.train.AdamOptimizer(0.02)
    grads = optimizer.compute_gradients(loss)
    clipped, norm = tf.clip_by_global_norm([g for g, _ in grads], 0.5)
    train = optimizer.apply_gradients(zip(clipped, [v for _, v in grads]))
    return same_each_step(loss, norm, train)


@program
def dqn():
    """A replay buffer in variables, a target network, and greedy actions."""
    state = variable("states", np.zeros((16, 4), np.float32), trainable=False)
    reward = variable("rewards", np.zeros(16, np.float32), trainable=False)
    s, r, at = v1.placeholder(tf.float32, [4]), v1.placeholder(tf.float32, []), v1.placeholder(tf.int32, [])
    store = tf.group(v1.scatter_update(state, [at], [s]), v1.scatter_update(reward, [at], [r]))

    def net(x, scope, trainable=True):
        with v1.variable_scope(scope):
            w = variable("w", numbers(1, 4, 3), trainable=trainable)
            return tf.matmul(x, w), w

    picked = tf.constant([0, 3, 5, 1])
    x, y = tf.gather(state, picked), tf.gather(state, picked + 1)
    q, w = net(x, "online")
    later, w_target = net(y, "target", False)
    wanted = tf.gather(reward, picked) + 0.9 * tf.reduce_max(later, 1)
    action = tf.argmax(q, 1, output_type=tf.int32)
    chosen = tf.reduce_sum(q * tf.one_hot(action, 3), 1)
    loss = tf.reduce_mean(v1.losses.huber_loss(tf.stop_gradient(wanted), chosen))
    train = v1.train.AdamOptimizer(0.05).minimize(loss)
    copy = v1.assign(w_target, w)
    steps = []
    for i in range(STEPS):
        steps.append(({s: numbers(i, 4), r: np.float32(i % 3), at: np.int32(i % 16)}, [store]))
        if i >= 8:
            steps.append(({}, [loss, action, train]))
        if i % 5 == 4:
            steps.append(({}, [copy]))
    return Run([v1.global_variables_initializer()], steps)


@program
def maml():
    x, t = tf.constant(numbers(1, 6, 3)), tf.constant(numbers(2, 6, 1))
    w, rate = variable("w", numbers(3, 3, 1)), variable("rate", np.float32(0.1))
    loss = lambda v: tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, v)) - t))
    fast = w + 0.0
    for _ in range(2):
        fast -= rate * tf.gradients(loss(fast), fast)[0]
    train = v1.train.GradientDescentOptimizer(0.2).minimize(loss(fast))
    return same_each_step(loss(fast), train)


@program
def capsules():
    u = tf.constant(numbers(1, 2, 6, 1, 4))
    w = variable("w", numbers(2, 6, 4, 15))
    votes = tf.reshape(tf.einsum("bnic,ncd->bnid", u, w), [2, 6, 3, 5])

    def squash(s):
        n = tf.reduce_sum(tf.square(s), -1, keepdims=True)
        return n / (1 + n) * s / tf.sqrt(n + 1e-7)

    def route(i, b, _):
        c = tf.nn.softmax(b, axis=2)
        v = squash(tf.reduce_sum(tf.expand_dims(c, -1) * votes, 1))
        return i + 1, b + tf.reduce_sum(votes * tf.expand_dims(v, 1), -1), v

    _, _, v = v1.while_loop(lambda i, *_: i < 3, route, (0, tf.zeros([2, 6, 3]), tf.zeros([2, 3, 5])))
    length = tf.sqrt(tf.reduce_sum(tf.square(v), -1) + 1e-7)
    loss = tf.reduce_mean(tf.square(tf.nn.relu(0.9 - length[:, 0]))) + tf.reduce_mean(tf.square(length[:, 1:]))
    train = v1.train.AdamOptimizer(0.01).minimize(loss)
    return same_each_step(loss, length, train)


@program
def batch_norm_averages():
    x = v1.random_normal([8, 2, 2, 3], seed=4)
    gamma, beta = variable("gamma", np.ones(3, np.float32)), variable("beta", np.zeros(3, np.float32))
    mean = variable("moving_mean", np.zeros(3, np.float32), trainable=False)
    var = variable("moving_variance", np.ones(3, np.float32), trainable=False)
    y, m, v = v1.nn.fused_batch_norm(x, gamma, beta, epsilon=1e-3)
    for moving, new in ((mean, m), (var, v)):
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign_sub(moving, (moving - new) * 0.1))
    loss = tf.reduce_mean(tf.square(tf.nn.relu(y) - 1))
    updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS)
    train = after(updates, lambda: v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss))
    return same_each_step(loss, after([train], lambda: mean * 1.0), after([train], lambda: var * 1.0))


@program
def dropout_with_seeds():
    v1.set_random_seed(7)
    h = v1.nn.dropout(dense(tf.constant(numbers(1, 8, 4)), "h", 6, tf.nn.relu), rate=0.4, seed=11)
    h = v1.nn.dropout(h, rate=0.2)
    loss = tf.reduce_mean(tf.square(dense(h, "y", 1) - 1))
    return same_each_step(loss, h, v1.train.GradientDescentOptimizer(0.1).minimize(loss))


@program
def lookup_tables():
    words = tf.constant(["the", "cat", "sat", "on", "the", "hat"])
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(["the", "cat", "sat"], np.arange(3, dtype=np.int64)), 4)
    back = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(np.arange(3, dtype=np.int64), ["THE", "CAT", "SAT"]), "UNK")
    ids = table.lookup(words)
    w = variable("embedding", numbers(1, 7, 3))
    loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(w, ids) - 0.25))
    train = v1.train.AdagradOptimizer(0.3).minimize(loss)
    return same_each_step(ids, tf.strings.to_hash_bucket_fast(back.lookup(ids), 1000), loss, train)


@program
def partitioned_embeddings():
    w = v1.get_variable("w", [7, 3], initializer=v1.constant_initializer(numbers(1, 7, 3)),
                        partitioner=v1.fixed_size_partitioner(1))
    with v1.variable_scope("split", partitioner=v1.fixed_size_partitioner(3)):
        parts = v1.get_variable("e", [7, 3], initializer=v1.constant_initializer(0.25))
    ids = tf.constant([0, 6, 3, 3, 1])
    found = tf.nn.embedding_lookup(parts, ids) + v1.nn.embedding_lookup(w, ids)
    loss = tf.reduce_mean(tf.square(found - tf.constant(numbers(2, 5, 3))))
    train = v1.train.AdagradOptimizer(0.3).minimize(loss)
    return same_each_step(loss, after([train], lambda: tf.nn.embedding_lookup(parts, tf.range(7))))


@program
def two_writers_of_a_queue():
    """A3C's workers in sequence: each contributes its gradients, and the learner applies both."""
    w, loss = regression()
    queue = v1.FIFOQueue(4, [tf.float32], [[4, 3]])
    scale = v1.placeholder(tf.float32, [])
    gradient, = tf.gradients(loss, [w])
    put = queue.enqueue([gradient * scale])
    got = queue.dequeue_many(2)
    train = v1.train.GradientDescentOptimizer(0.3).apply_gradients([(tf.reduce_mean(got, 0), w)])
    size = queue.size()
    steps = []
    for _ in range(STEPS // 2):
        steps += [({scale: np.float32(1)}, [put]), ({scale: np.float32(0.5)}, [put]), ({}, [size]), ({}, [train]),
                  ({}, [w])]
    return Run([v1.global_variables_initializer()], steps)


@program
def gated_recurrence():
    x, units = tf.constant(numbers(1, 6, 2, 3)), 4
    w, b = variable("kernel", numbers(2, 7, 16) * 0.5), variable("bias", np.zeros(16, np.float32))

    def cell(t, c, h):
        i, j, f, o = tf.split(tf.matmul(tf.concat([x[t], h], 1), w) + b, 4, 1)
        c = c * tf.sigmoid(f + 1) + tf.sigmoid(i) * tf.tanh(j)
        return t + 1, c, tf.tanh(c) * tf.sigmoid(o)

    zero = tf.zeros([2, units])
    _, _, h = v1.while_loop(lambda t, *_: t < 6, cell, (0, zero, zero), swap_memory=True)
    loss = tf.reduce_mean(tf.square(h - 0.3))
    return same_each_step(loss, v1.train.AdamOptimizer(0.05).minimize(loss))


@program
def variational_autoencoder():
    x = tf.constant(numbers(1, 8, 5))
    mean, spread = dense(x, "mean", 2), dense(x, "spread", 2)
    z = mean + tf.exp(spread) * v1.random_normal([8, 2], seed=3)
    kl = 0.5 * tf.reduce_mean(tf.exp(2 * spread) + tf.square(mean) - 1 - 2 * spread)
    loss = tf.reduce_mean(tf.square(dense(z, "out", 5) - x)) + kl
    return same_each_step(loss, z, v1.train.AdamOptimizer(0.02).minimize(loss))


@program
def sampled_softmax():
    w, b = variable("w", numbers(1, 20, 3)), variable("b", np.zeros(20, np.float32))
    labels = tf.constant([[3], [1], [7], [3]], tf.int64)
    inputs = dense(tf.constant(numbers(2, 4, 2)), "h", 3)
    loss = tf.reduce_mean(v1.nn.sampled_softmax_loss(w, b, labels, inputs, 5, 20, seed=9))
    return same_each_step(loss, v1.train.GradientDescentOptimizer(0.2).minimize(loss))


@program
def noise_contrastive():
    w, b = variable("w", numbers(1, 20, 3)), variable("b", np.zeros(20, np.float32))
    e = variable("e", numbers(4, 20, 3))
    sampler = v1.nn.log_uniform_candidate_sampler(tf.constant([[3], [1]], tf.int64), 1, 6, True, 20, seed=2)
    inputs = tf.nn.embedding_lookup(e, [4, 5])
    loss = tf.reduce_mean(v1.nn.nce_loss(w, b, tf.constant([[3], [1]], tf.int64), inputs, 6, 20,
                                         sampled_values=sampler))
    return same_each_step(loss, sampler[0], v1.train.GradientDescentOptimizer(0.2).minimize(loss))


@program
def decaying_rate():
    w, loss = regression()
    step = v1.train.get_or_create_global_step()
    rate = v1.train.exponential_decay(0.5, step, 3, 0.7, staircase=True)
    warm = tf.cond(step < 4, lambda: rate * tf.cast(step + 1, tf.float32) / 5.0, lambda: rate)
    train = v1.train.MomentumOptimizer(warm, 0.9, use_nesterov=True).minimize(loss, global_step=step)
    return same_each_step(after([train], lambda: step + 0), loss, train)


@program
def policy_gradient():
    logits = dense(tf.constant(numbers(1, 6, 4)), "policy", 3)
    action = v1.multinomial(logits, 1, seed=8)[:, 0]
    chance = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=action, logits=logits)
    reward = tf.cast(action, tf.float32) + 1
    loss = tf.reduce_mean(chance * tf.stop_gradient(reward))
    return same_each_step(action, loss, v1.train.RMSPropOptimizer(0.05).minimize(loss))


@program
def sparse_optimizers():
    e = variable("e", numbers(1, 10, 3))
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(e, [1, 1, 7, 2]) - 0.5))
    adam = v1.train.AdamOptimizer(0.05).minimize(loss)
    ftrl = after([adam], lambda: v1.train.FtrlOptimizer(0.05, l1_regularization_strength=0.01).minimize(
        tf.reduce_sum(tf.gather(e, [3, 3, 4]))))
    return same_each_step(after([ftrl], lambda: e * 1.0))


@program
def streaming_metrics():
    x = v1.random_uniform([6], seed=1)
    labels = tf.constant([1, 0, 1, 1, 0, 0])
    mean, mean_op = v1.metrics.mean(x)
    right, right_op = v1.metrics.accuracy(labels, tf.cast(x > 0.5, tf.int32))
    auc, auc_op = v1.metrics.auc(labels, x, num_thresholds=20)
    return Run([v1.local_variables_initializer()],
               [({}, [mean_op, right_op, auc_op]), ({}, [mean, right, auc])] * (STEPS // 2))


@program
def normalized_weights_and_norm_limits():
    v, g = variable("v", numbers(1, 4, 3)), variable("g", np.ones(3, np.float32))
    w = g * tf.nn.l2_normalize(v, 0)
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(numbers(2, 8, 4)), w) - 1))
    train = v1.train.GradientDescentOptimizer(0.3).minimize(loss)
    limit = after([train], lambda: v1.assign(v, tf.clip_by_norm(v, 1.5, axes=[0])))
    return same_each_step(after([limit], lambda: v * 1.0), after([limit], lambda: g * 1.0))


@program
def training_inside_a_loop():
    """Five training steps in one step: a loop that assigns variables and reads the assigned values."""
    w = variable("w", np.float32(2))

    def step(i):
        new = v1.assign_sub(w, 0.1 * after([i], lambda: w * 2.0))
        return after([new], lambda: i + 1)

    done = v1.while_loop(lambda i: i < 5, step, [0], parallel_iterations=1)
    return same_each_step(after([done], lambda: w * 1.0))


@program
def adversarial_examples():
    x = variable("x", numbers(1, 4, 3), trainable=False)
    w, b = variable("w", numbers(2, 3, 2)), variable("b", np.zeros(2, np.float32))
    labels = tf.constant([0, 1, 1, 0])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(x, w) + b)
    slope, = tf.gradients(losses, x)
    worse = v1.assign(x, tf.clip_by_value(x + 0.01 * tf.sign(slope), -1, 1))
    train = after([worse], lambda: v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(losses)))
    return Run([v1.global_variables_initializer()], [({}, [worse]), ({}, [train]), ({}, [x, w])] * (STEPS // 2))


@v1.RegisterGradient("IdiomTenTimes")
def _ten_times(op, dy):
    return 10.0 * dy


@program
def straight_through():
    w = variable("w", numbers(1, 4, 3))
    with v1.get_default_graph().gradient_override_map({"Sign": "IdiomTenTimes", "Round": "Identity"}):
        y = tf.sign(w) + tf.round(w * 4)
    loss = tf.reduce_mean(tf.square(y - 0.5))
    return same_each_step(loss, v1.train.GradientDescentOptimizer(0.01).minimize(loss))


@program
def data_set_of_a_session():
    data = tf.data.Dataset.range(7).map(lambda i: tf.cast(i, tf.float32)).shuffle(4, seed=3).repeat().batch(3)
    x = v1.data.make_one_shot_iterator(data).get_next()
    w = variable("w", np.float32(0.5))
    loss = tf.reduce_mean(tf.square(w * x - 2 * x))
    return same_each_step(x, loss, v1.train.GradientDescentOptimizer(0.01).minimize(loss))


@program
def data_sets_of_groups():
    data, more = tf.data.Dataset, tf.data.experimental
    lengths = data.range(1, 30).map(lambda n: tf.ones([n % 7]))
    sets = [
        data.range(20).repeat().apply(more.group_by_window(lambda v: v % 3, lambda k, d: d.batch(2), 2)),
        lengths.repeat().apply(more.bucket_by_sequence_length(tf.size, [3, 5], [2, 3, 2])),
        data.range(9).shuffle(4, seed=5).repeat().window(3, 2).flat_map(lambda w: w.batch(3)),
        data.range(5).apply(more.shuffle_and_repeat(3, seed=7)),
        more.sample_from_datasets([data.range(5).repeat(), data.range(10, 15).repeat()], [0.3, 0.7], seed=1),
        data.from_tensor_slices(np.float32([1, 0, 2])).repeat().map(
            lambda v: tf.debugging.check_numerics(1 / v, "division")).apply(more.ignore_errors()),
        data.range(40).repeat().batch(4).rebatch(3),
    ]
    return same_each_step(*[v1.data.make_one_shot_iterator(d).get_next() for d in sets])
