#!/usr/bin/env python3
"""Clusters of a parameter server and a worker, of which one is Weir's and one TensorFlow's, or both Weir's. The worker is
the master, and places parts of its graphs on the parameter server. The same graphs on TensorFlow alone, without devices,
give the expected values. Skipped without TensorFlow.
usage: cluster_test.py WEIR_SERVE
"""

import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from digits_test import np, tf, v1 as tf1  # prints SKIPPED and exits without TensorFlow

tf1.disable_eager_execution()
tf1.disable_control_flow_v2()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def on_ps(with_devices):
    return tf1.device("/job:ps/task:0" if with_devices else None)


def training(cluster):
    """Variables on the ps, gradients on the worker."""
    with on_ps(cluster):
        w = tf1.get_variable("w", [3, 1], initializer=tf1.ones_initializer(), use_resource=False)
        b = tf1.get_variable("b", [1], initializer=tf1.zeros_initializer(), use_resource=True)
    x = tf1.placeholder(tf.float32, [None, 3])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - 1.0))
    train = tf1.train.AdamOptimizer(0.1).minimize(loss)
    values = np.arange(12, dtype=np.float32).reshape(4, 3) / 10

    def run(session):
        session.run(tf1.global_variables_initializer())
        return [session.run([train, loss], {x: values})[1] for _ in range(5)] + session.run([w, b])

    return run


def branches_and_loops(cluster):
    """Values cross within branches and iterations, dead ones too."""
    n = tf1.placeholder(tf.int32, [])

    def body(i, total):
        with on_ps(cluster):
            doubled = total * 2.0
        return i + 1, doubled + tf.cast(i, tf.float32)

    _, total = tf1.while_loop(lambda i, _: i < n, body, [0, 1.0])

    def square():
        with on_ps(cluster):
            return total * total

    chosen = tf1.cond(n > 3, square, lambda: total + 0.5)
    return lambda session: [session.run([total, chosen], {n: k}) for k in (0, 1, 3, 5)]


def kinds_of_values(cluster):
    """Strings, integers, empty tensors; a queue of the session's own on the ps."""
    text = tf1.placeholder(tf.string, [None])
    with on_ps(cluster):
        joined = tf.strings.join([text, "-"])
        lengths = tf.strings.length(joined)
        queue = tf1.FIFOQueue(10, [tf.int64], shapes=[[]])
        put = queue.enqueue_many([tf.cast(lengths, tf.int64)])
        taken = queue.dequeue_many(2)
        empty = tf.zeros([0, 3], tf.complex64)
    halved = taken // 2

    def run(session):
        out = session.run([joined, lengths, empty], {text: ["a", "", "xyz"]})
        session.run(put, {text: ["four", "sixsix"]})
        return out + [session.run(halved)]

    return run


def variants(cluster):
    """A list, a map and an optional, to the ps and back."""
    x = tf1.placeholder(tf.float32, [2, 2])
    rows = tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=[2])
    with on_ps(cluster):
        more = tf.raw_ops.TensorListSetItem(input_handle=rows, index=3, item=[5.0, 6.0], resize_if_index_out_of_bounds=True)
        table = tf.raw_ops.TensorMapInsert(input_handle=tf.raw_ops.EmptyTensorMap(), key=3, value=x[0])
        some = tf.raw_ops.OptionalFromValue(components=[x[1], tf.strings.as_string(x)])
    stacked = tf.raw_ops.TensorListStack(input_handle=more, element_shape=[2], element_dtype=tf.float32)
    found = tf.raw_ops.TensorMapLookup(input_handle=table, key=3, value_dtype=tf.float32)
    values = tf.raw_ops.OptionalGetValue(optional=some, output_types=[tf.float32, tf.string], output_shapes=[[2], [2, 2]])

    def run(session):
        return session.run([stacked, found] + values, {x: [[1.0, 2.0], [3.0, 4.0]]})

    return run


def functional_control_flow(cluster):
    """While and If, whose functions have nodes on both tasks and use variables of both."""
    tf1.enable_control_flow_v2()
    try:
        with on_ps(cluster):
            v = tf1.get_variable("v", [], initializer=tf1.constant_initializer(1.5), use_resource=True)
        w = tf1.get_variable("w", [], initializer=tf1.constant_initializer(0.5), use_resource=True)
        n = tf1.placeholder(tf.int32, [])

        def add_to_v():
            with tf.control_dependencies([v.assign_add(1.0)]):
                return tf.constant(1.0)

        def body(i, total):
            with on_ps(cluster):
                doubled = total * 2.0
            odd = tf1.cond(tf.equal(i % 2, 1), add_to_v, lambda: w + 0.0)
            with tf.control_dependencies([odd]):  # TensorFlow orders reads on another task only if told to
                read = v.read_value()
            return i + 1, doubled + read + odd

        _, total = tf1.while_loop(lambda i, t: tf.logical_and(i < n, t < 1e6), body, [0, w + 0.0])
        power = tf1.while_loop(lambda i, _: i < n, lambda i, x: (i + 1, x * v * w), [0, 1.0])[1]
        slopes = tf1.gradients(power, [v, w])
        chosen = tf1.cond(n > 2, lambda: (v * 3.0, w), lambda: (w, v - 1.0))
        later = tf1.cond(n > 0, lambda: chosen[0] + 1.0, lambda: chosen[1])
    finally:
        tf1.disable_control_flow_v2()

    def run(session):
        out = []
        for k in (0, 1, 3, 4):
            session.run([v.initializer, w.initializer])
            out += session.run([power, later] + list(chosen) + slopes, {n: k})
            out += [session.run(total, {n: k}), session.run(v)]
        session.run([v.initializer, w.initializer])
        return out + [session.run(later, {n: 4, total: 0.0, chosen[0]: 8.0})]

    return run


def failures(cluster):
    """The client sees the failed node."""
    x = tf1.placeholder(tf.float32, [])
    with on_ps(cluster):
        checked = tf.debugging.check_numerics(tf1.log(x), "not a number", name="checked")

    def run(session):
        try:
            session.run(checked * 2.0, {x: -1.0})
        except tf.errors.InvalidArgumentError as e:
            return [e.op.name, "not a number" in str(e)]
        return ["no error"]

    return run


def propagated(target):
    """The client gives the cluster, in which tasks have other names; its session has variables of its own."""
    config = tf1.ConfigProto()
    job = config.cluster_def.job.add(name="other")
    for i, address in enumerate(target):
        job.tasks[i] = address
    with tf.Graph().as_default():
        with tf1.device("/job:other/task:0"):
            v = tf1.get_variable("propagated", [], initializer=tf1.constant_initializer(2.0), use_resource=True)
        with tf1.device("/job:other/task:1"):
            y = v * 3.0
        with tf1.Session("grpc://" + target[1], config=config) as session:
            session.run(v.initializer)
            values = [float(session.run(y)), sorted(d.name for d in session.list_devices())]
        with tf1.Session("grpc://" + target[1], config=config) as session:
            try:
                session.run(y)
                values.append("the second session sees the variable")
            except tf.errors.FailedPreconditionError:
                pass
    devices = ["/job:other/replica:0/task:%d/device:CPU:0" % i for i in range(2)]
    return [] if values == [6.0, devices] else values


def equal(a, b):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "fc" and a.shape == b.shape:
        return np.allclose(a, b, rtol=1e-6, atol=0)
    return a.dtype == b.dtype and a.shape == b.shape and bool(np.all(a == b))


def run_in(make, target):
    with tf.Graph().as_default():
        run = make(bool(target))
        with tf1.Session(target) as session:
            return run(session)


def start_weir(serve, tasks, job):
    cluster = ",".join("%s|%s" % (name, ";".join(addresses)) for name, addresses in tasks.items())
    task = subprocess.Popen([serve, "serve", "--cluster=" + cluster, "--job=" + job, "--task=0"],
                            stdout=subprocess.PIPE, text=True)
    assert "Serving on" in task.stdout.readline()
    return task


def stop(task):
    task.terminate()
    deadline = time.time() + 30
    while task.poll() is None and time.time() < deadline:
        time.sleep(0.1)
    return task.returncode


def faults_of(serve, weir_jobs):
    """Runs all graphs on a cluster in which these jobs are Weir's."""
    tasks = {"ps": ["127.0.0.1:%d" % free_port()], "worker": ["127.0.0.1:%d" % free_port()]}
    weir = [start_weir(serve, tasks, job) for job in weir_jobs]
    # TensorFlow's servers do not end.
    others = [tf.distribute.Server(tasks, job_name=job, task_index=0) for job in tasks if job not in weir_jobs]
    faults = 0
    try:
        for make in (training, branches_and_loops, kinds_of_values, variants, functional_control_flow, failures):
            expected, got = run_in(make, None), run_in(make, "grpc://" + tasks["worker"][0])
            if not equal(expected, got):
                faults += 1
                print("%s: TensorFlow alone %s, with Weir's %s %s" % (make.__name__, expected, weir_jobs, got))
        got = propagated([tasks["ps"][0], tasks["worker"][0]])
        if got:
            faults += 1
            print("propagated, with Weir's %s: %s" % (weir_jobs, got))
    finally:
        faults += sum(stop(task) != 0 for task in weir)
    del others
    return faults


def main():
    mixes = (["ps"], ["worker"], ["ps", "worker"])
    faults = sum(faults_of(sys.argv[1], mix) for mix in mixes)
    print("7 graphs on %d clusters, %d faults" % (len(mixes), faults))
    os._exit(1 if faults else 0)


if __name__ == "__main__":
    main()
