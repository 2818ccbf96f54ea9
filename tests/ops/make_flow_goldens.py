#!/usr/bin/env python3
"""Writes golden/flow_*_{ref,res}.pbtxt: the conditionals and while loops that TensorFlow builds.

flow_goldens_test.cc builds the same programs with Weir and compares node by node. Run with TensorFlow installed:
    python3 tests/ops/make_flow_goldens.py
"""
import make_goldens

tf = make_goldens.tf
PROGRAMS = {}


def written(result):
    """Returns the value after a write, read immediately."""
    return tf.identity(getattr(result, "_graph_element", result))


def program(fn):
    PROGRAMS["flow_" + fn.__name__] = fn
    return fn


@program
def cond_on_variables():
    v = tf.Variable([1.0, 2.0], name="v")
    p = tf.placeholder(tf.bool, [], "p")
    x = tf.placeholder(tf.float32, [2], "x")
    y = tf.cond(p, lambda: v + x, lambda: tf.multiply(x, 2.0))
    tf.identity(y, "y")
    tf.cond(p, lambda: written(v.assign([3.0, 4.0])), lambda: tf.identity(v.value()), name="write")


@program
def cond_in_cond():
    v = tf.Variable(1.0, name="v")
    p = tf.placeholder(tf.bool, [], "p")
    q = tf.placeholder(tf.bool, [], "q")
    x = tf.placeholder(tf.float32, [], "x")
    tf.cond(p, lambda: tf.cond(q, lambda: x + v, lambda: x), lambda: tf.constant(7.0), name="outer")


@program
def while_on_variables():
    v = tf.Variable([1.0, 2.0], name="v")
    n = tf.placeholder(tf.int32, [], "n")
    i, x = tf.while_loop(lambda i, x: tf.less(i, n), lambda i, x: (i + 1, x * v), [tf.constant(0), v.value()])
    tf.identity(x, "x")


@program
def while_writes():
    v = tf.Variable(1.0, name="v")
    i = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + written(v.assign_add(2.0))),
                      [tf.constant(0), tf.constant(0.0)], name="loop")
    tf.identity(i[1], "y")


@program
def while_most_iterations():
    x = tf.placeholder(tf.float32, [None, 2], "x")
    y = tf.placeholder(tf.float32, [], "y")
    tf.while_loop(lambda x, y: tf.constant(True), lambda x, y: (tf.concat([x, x], 0), y), (x, y), maximum_iterations=4,
                  shape_invariants=(tf.TensorShape([None, 2]), tf.TensorShape([])), parallel_iterations=3)


@program
def while_nested():
    v = tf.Variable(2.0, name="v")

    def body(i, x):
        j, y = tf.while_loop(lambda j, y: j < i, lambda j, y: (j + 1, y * v), [tf.constant(0), x])
        return i + 1, tf.cond(tf.less(y, 10.0), lambda: y + v, lambda: tf.negative(y))

    tf.while_loop(lambda i, x: i < 5, body, [tf.constant(0), tf.constant(1.0)], name="outer")


@program
def while_after():
    v = tf.Variable(2.0, name="v")
    set_v = v.assign(5.0, read_value=False)
    with tf.control_dependencies([set_v]):
        i = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)], name="after")
    tf.identity(i, "y")


@program
def variable_in_while():
    def body(i, x):
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
        return i + 1, x + w

    tf.while_loop(lambda i, x: i < 5, body, [tf.constant(0), tf.zeros([2])])


def counted(n, body, variables, **options):
    """Adds a loop with n iterations and these variables."""
    result = tf.while_loop(lambda i, *v: i < n, lambda i, *v: [i + 1] + list(body(*v)),
                           [tf.constant(0)] + list(variables), **options)
    return result[1:]


@program
def cond_gradient():
    v = tf.Variable([1.0, 2.0], name="v")
    p = tf.placeholder(tf.bool, [], "p")
    x = tf.placeholder(tf.float32, [2], "x")
    y = tf.cond(p, lambda: v * x, lambda: tf.exp(x))
    tf.gradients(y, [x, v])


@program
def while_gradient():
    v = tf.Variable([1.0, 2.0], name="v")
    x = tf.placeholder(tf.float32, [2], "x")
    y = counted(3, lambda a: [a * v], [x])[0]
    tf.gradients(y, [x, v])


@program
def while_gradient_of_unknown_shape():
    n = tf.placeholder(tf.int32, [], "n")
    x = tf.placeholder(tf.float32, [None, 2], "x")
    w = tf.placeholder(tf.float32, [None], "w")
    y, z = counted(n, lambda a, b: [tf.tanh(a) * w, b + a], [x, x])
    tf.gradients(z, [x, w])


@program
def while_gradient_of_one_variable():
    x = tf.placeholder(tf.float32, [2], "x")
    y = tf.placeholder(tf.float32, [2], "y")
    a, b, c = counted(4, lambda a, b, c: [a * b, tf.exp(c), c], [x, y, tf.constant([1.0, 2.0])])
    tf.gradients(a, [x, y])


@program
def while_nested_gradient():
    v = tf.Variable(2.0, name="v")
    x = tf.placeholder(tf.float32, [], "x")

    def body(a):
        b = counted(2, lambda b: [b * a * v], [tf.exp(a)])[0]
        return [b + a]

    y = counted(3, body, [x], name="outer")[0]
    tf.gradients(y, [x, v])


@program
def cond_in_while_gradient():
    v = tf.Variable(2.0, name="v")
    x = tf.placeholder(tf.float32, [], "x")
    y = counted(3, lambda a: [tf.cond(tf.less(a, 4.0), lambda: a * v, lambda: tf.exp(a))], [x])[0]
    tf.gradients(y, [x, v])


@program
def while_in_cond_gradient():
    p = tf.placeholder(tf.bool, [], "p")
    x = tf.placeholder(tf.float32, [3], "x")
    y = tf.cond(p, lambda: counted(3, lambda a: [a * x], [x])[0], lambda: x)
    tf.gradients(y, x)


@program
def while_gathers_gradient():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="v")
    y = counted(3, lambda a: [a * tf.gather(v.value(), [1, 0])], [tf.ones([2, 2])])[0]
    tf.gradients(y, v)


@program
def tensor_array():
    x = tf.placeholder(tf.float32, [None, 2], "x")
    rows = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
    out = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[2], name="out")
    out = out.write(0, rows.read(2)).write(1, rows.read(tf.constant(0)))
    tf.identity(out.stack(), "stacked")
    tf.identity(out.size(), "size")
    out.gather([1, 0])
    out.close()
    parts = tf.TensorArray(tf.float32, size=2, infer_shape=False).split(x, [1, 2])
    tf.gradients(tf.exp(parts.concat()), x)


@program
def tensor_array_in_while():
    x = tf.placeholder(tf.float32, [4, 2], "x")
    v = tf.Variable([1.0, 2.0], name="v")
    rows = tf.TensorArray(tf.float32, size=4).unstack(x)
    out = tf.TensorArray(tf.float32, size=4)

    def body(i, a, out):
        b = a * rows.read(i) + v
        return i + 1, b, out.write(i, b)

    i, a, out = tf.while_loop(lambda i, a, out: i < 4, body, [tf.constant(0), tf.ones([2]), out])
    y = out.stack()
    tf.gradients(y, [x, v])


class TanhCell:
    """A custom cell, because Keras 3 does not have TensorFlow's cells."""

    state_size = output_size = 3

    def zero_state(self, batch_size, dtype):
        return tf.zeros([batch_size, 3], dtype)

    def __call__(self, inputs, state, scope=None):
        with tf.variable_scope("cell"):
            w = tf.get_variable("w", [2, 3])
            y = tf.tanh(tf.matmul(inputs, w.value()) + state)
        return y, y


@program
def rnn():
    x = tf.placeholder(tf.float32, [4, 5, 2], "x")
    z = tf.placeholder(tf.float32, [4, 3], "z")
    y, state = tf.nn.dynamic_rnn(TanhCell(), x, initial_state=z)
    tf.identity(y, "y")
    tf.gradients(state, [x])


@program
def rnn_of_unknown_lengths():
    x = tf.placeholder(tf.float32, [None, None, 2], "x")
    z = tf.placeholder(tf.float32, [None, 3], "z")
    n = tf.placeholder(tf.int64, [None], "n")
    y, state = tf.nn.dynamic_rnn(TanhCell(), x, sequence_length=n, initial_state=z)
    tf.identity(y, "y")


@program
def rnn_time_major():
    x = tf.placeholder(tf.float32, [5, 4, 2], "x")
    z = tf.placeholder(tf.float32, [4, 3], "z")
    n = tf.placeholder(tf.int32, [4], "n")
    y, state = tf.nn.dynamic_rnn(TanhCell(), x, sequence_length=n, initial_state=z, time_major=True, scope="net")
    tf.identity(y, "y")


if __name__ == "__main__":
    tf.disable_eager_execution()
    tf.disable_control_flow_v2()
    make_goldens.write_goldens(PROGRAMS)
