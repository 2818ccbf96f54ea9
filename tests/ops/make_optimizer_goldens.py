"""Writes tests/ops/golden/optimizers.txt: the graphs that TensorFlow's optimizers build.

Needs TensorFlow (pip install tensorflow-cpu). Run from the repository root:
    python3 tests/ops/make_optimizer_goldens.py

One section for each case, one line for each node: name = Op(inputs; control inputs) attributes. Redundant control edges
are omitted, because TensorFlow prunes some of them.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_eager_execution()
train = tf1.train

# Attributes that Weir compares; all others have default values.
ATTRS = ["T", "dtype", "shape", "use_locking", "use_nesterov", "validate_shape", "shared_name", "_class"]


def attr_text(name, value):
    kind = value.WhichOneof("value")
    if kind == "type":
        return tf.as_dtype(value.type).name.replace("float32", "float").replace("float64", "double")
    if kind == "shape":
        return "[%s]" % ",".join(str(d.size) for d in value.shape.dim)
    if kind == "b":
        return str(value.b).lower()
    if kind == "list":
        return "[%s]" % ",".join(s.decode() for s in value.list.s)
    return value.s.decode()


def implied(nodes, node, control):
    """Returns whether `node` runs after `control` because of its other inputs."""
    seen = set()
    stack = [i.lstrip("^").split(":")[0] for i in node.input if i != "^" + control]
    while stack:
        name = stack.pop()
        if name == control:
            return True
        if name not in seen:
            seen.add(name)
            stack += [i.lstrip("^").split(":")[0] for i in nodes[name].input]
    return False


def lines(graph):
    nodes = {n.name: n for n in graph.as_graph_def().node}
    for node in nodes.values():
        data = [i for i in node.input if i[0] != "^"]
        control = sorted(i for i in node.input if i[0] == "^" and not implied(nodes, node, i[1:]))
        attrs = [(a, attr_text(a, node.attr[a])) for a in ATTRS if a in node.attr]
        # The placement of reads does not matter: they follow their variable.
        attrs = ["%s=%s" % (a, t) for a, t in attrs if t and not (a == "_class" and node.op == "ReadVariableOp")]
        value = ""
        if node.op == "Const":
            numbers = tf.make_ndarray(node.attr["value"].tensor).flatten()
            value = " value=" + ",".join("%g" % float(v) for v in numbers[:1])
        yield "%s = %s(%s) %s%s" % (node.name, node.op, ", ".join(data + control), " ".join(attrs), value)


def optimizers(step):
    return {
        "GradientDescent": lambda: train.GradientDescentOptimizer(0.1),
        "Momentum": lambda: train.MomentumOptimizer(0.1, 0.9),
        "Nesterov": lambda: train.MomentumOptimizer(0.1, 0.9, use_nesterov=True, use_locking=True),
        "Adam": lambda: train.AdamOptimizer(0.01),
        "Adagrad": lambda: train.AdagradOptimizer(0.1),
        "AdagradDA": lambda: train.AdagradDAOptimizer(0.1, step(), l1_regularization_strength=0.01),
        "Adadelta": lambda: train.AdadeltaOptimizer(0.1),
        "RMSProp": lambda: train.RMSPropOptimizer(0.1, momentum=0.5),
        "CenteredRMSProp": lambda: train.RMSPropOptimizer(0.1, centered=True),
        "Ftrl": lambda: train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
        "FtrlShrinkage": lambda: train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.01),
        "ProximalGradientDescent": lambda: train.ProximalGradientDescentOptimizer(0.1, 0.01),
        "ProximalAdagrad": lambda: train.ProximalAdagradOptimizer(0.1),
    }


def variable(name, shape, resource, dtype=tf.float32):
    return tf1.get_variable(name, shape, dtype, initializer=tf1.zeros_initializer(), use_resource=resource)


def apply_case(make, resource, dtype, with_step):
    graph = tf1.Graph()
    with graph.as_default():
        w = variable("w", [3, 2], resource, dtype)
        e = variable("e", [5, 3], resource, dtype)
        gw = tf1.placeholder(dtype, [3, 2], "gw")
        rows = tf1.placeholder(dtype, [4, 3], "rows")
        ids = tf1.placeholder(tf.int32, [4], "ids")
        step = lambda: tf1.Variable(0, name="step", dtype=tf.int64, trainable=False, use_resource=resource)
        global_step = step() if with_step else None
        optimizer = optimizers(step)[make]()
        optimizer.apply_gradients(
            [(gw, w), (tf1.IndexedSlices(rows, ids, tf1.constant([5, 3], name="e_shape")), e)], global_step=global_step)
    return graph


def minimize_case(resource):
    graph = tf1.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [4, 3], "x")
        w = variable("w", [3, 2], resource)
        b = variable("b", [2], resource)
        y = tf1.nn.bias_add(tf1.matmul(x, w), b)
        loss = tf1.reduce_sum(tf1.tanh(y) * y)
        train.GradientDescentOptimizer(0.1).minimize(loss)
    return graph


def main():
    with open("tests/ops/golden/optimizers.txt", "w") as out:
        for resource in (False, True):
            kind = "resource" if resource else "ref"
            for name in optimizers(None):
                for dtype in (tf.float32, tf.float64):
                    if dtype == tf.float64 and name not in ("GradientDescent", "Adam", "RMSProp"):
                        continue
                    with_step = name in ("Adam", "Momentum") and dtype == tf.float32
                    out.write("# %s %s %s%s\n" % (name, kind, "float" if dtype == tf.float32 else "double",
                                                  " step" if with_step else ""))
                    out.write("\n".join(lines(apply_case(name, resource, dtype, with_step))) + "\n")
            out.write("# minimize %s\n" % kind)
            out.write("\n".join(lines(minimize_case(resource))) + "\n")


if __name__ == "__main__":
    main()
