#!/usr/bin/env python3
"""Runs programs with the idioms of public TensorFlow 1 programs (idioms.py) on TensorFlow and on Weir.

Each runs with both kinds of variables: on TensorFlow, on weir serve with TensorFlow's client, and in a
separate Weir process. Floating-point results agree within 1e-5, integers and random numbers exactly.

Skipped without TensorFlow.
usage: idioms_test.py WEIR RUN_STEPS [PROGRAM...]
"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serve_test import Server  # prints SKIPPED and exits without TensorFlow
from digits_test import np, tf, v1
from idioms import PROGRAMS

v1.disable_eager_execution()
v1.disable_control_flow_v2()


def flat(values):
    """The tensors of a step's results; ops return none."""
    return [np.asarray(v) for v in values if v is not None]


def on_session(target, graph, run):
    with v1.Session(target, graph=graph) as session:
        session.run(run.init)
        return [flat(session.run(fetches, feeds)) for feeds, fetches in run.steps]


def in_process(runner, graph, run):
    """Writes the graph and its steps to files: see run_steps.cc."""
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        with open(path("graph.pb"), "wb") as f:
            f.write(graph.as_graph_def().SerializeToString())
        with open(path("steps"), "w") as f:
            for op in run.init:
                f.write("target %s\nrun\n" % op.name)
            for i, (feeds, fetches) in enumerate(run.steps):
                for j, (tensor, value) in enumerate(feeds.items()):
                    np.save(path("feed_%d_%d.npy" % (i, j)), value)
                    f.write("feed %s feed_%d_%d.npy\n" % (tensor.name, i, j))
                for j, fetch in enumerate(fetches):
                    if isinstance(fetch, tf.Operation):
                        f.write("target %s\n" % fetch.name)
                    else:
                        f.write("fetch %s %d_%d.npy\n" % (graph.as_graph_element(fetch).name, i, j))
                f.write("run\n")
        subprocess.run([runner, folder], check=True)
        return [[np.load(path("%d_%d.npy" % (i, j)), allow_pickle=False) for j, fetch in enumerate(fetches)
                 if not isinstance(fetch, tf.Operation)] for i, (_, fetches) in enumerate(run.steps)]


def difference(wanted, got):
    """Describes the first difference of two runs; None if they are equal."""
    for i, (a, b) in enumerate(zip(wanted, got)):
        for j, (x, y) in enumerate(zip(a, b)):
            if x.dtype.kind == "f":
                scale = max(1e-3, float(np.max(np.abs(x), initial=0)))
                same = x.shape == y.shape and np.allclose(x, y, rtol=0, atol=1e-5 * scale, equal_nan=True)
            else:
                same = np.array_equal(x, y)
            if not same:
                return "step %d, fetch %d:\n  TensorFlow %s\n  Weir       %s" % (i, j, x.ravel()[:6], y.ravel()[:6])
    return None


def check(build, resource, target, runner):
    graph = tf.Graph()
    with graph.as_default(), v1.variable_scope("", use_resource=resource):
        v1.set_random_seed(42)
        run = build()
    wanted = on_session("", graph, run)
    faults = []
    for where, got in (("on weir serve", lambda: on_session(target, graph, run)),
                       ("in process", lambda: in_process(runner, graph, run))):
        try:
            fault = difference(wanted, got())
        except (tf.errors.OpError, subprocess.CalledProcessError) as error:
            fault = str(error)
        if fault:
            faults.append("%s, %s: %s" % (where, "resources" if resource else "references", fault))
    return faults


def main(weir, runner, *names):
    failed = 0
    with Server(weir) as server:
        for build in PROGRAMS:
            if names and build.__name__ not in names:
                continue
            faults = []
            for resource in (False, True):
                v1.Session.reset(server.target)
                faults += check(build, resource, server.target, runner)
            print("%s %s" % ("FAILED" if faults else "ok    ", build.__name__), *faults, sep="\n  ", flush=True)
            failed += bool(faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
