#!/usr/bin/env python3
"""Which state other sessions of a server see, op by op: shared_state.txt, on weir serve and TensorFlow's.

Skipped where there is no TensorFlow.
usage: shared_state_test.py WEIR TABLE [--tensorflow]   (the last: TensorFlow's column too)
"""

import os
import sys

for name in ("http_proxy", "https_proxy", "grpc_proxy"):
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import numpy as np
    import tensorflow as tf
except ImportError:
    print("SKIPPED: Python has no TensorFlow")
    sys.exit(0)

from hostile_clients_test import Server
from shared_state_cases import CASES

v1 = tf.compat.v1
OPTIONS = v1.RunOptions(timeout_in_ms=4000)


def value(session, what):
    try:
        return np.asarray(session.run(what, options=OPTIONS)).tolist()
    except tf.errors.OpError as e:
        return type(e).__name__


def built(case):
    with tf.Graph().as_default() as graph:
        return (graph, *case())


def seen(target, case):
    """"own" if a second session is as a fresh one after a first one has changed the state, or "shared"."""
    alone = v1.ConfigProto(isolate_session_state=True)
    graph, change, shown = built(case)
    with v1.Session(target, graph=graph, config=alone) as session:
        fresh = value(session, shown)
    with v1.Session(target, graph=graph, config=alone) as session:
        value(session, change)
        if value(session, shown) == fresh:
            return "nothing to see"
    other, _, shown_there = built(case)
    with v1.Session(target, graph=graph) as first, v1.Session(target, graph=other) as second:
        value(first, change)
        return "own" if value(second, shown_there) == fresh else "shared"


def main(weir, table, *flags):
    faults = 0
    rows = {}
    with open(table, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                op, theirs, ours = [part.strip() for part in line.split("|")]
                rows[op] = (theirs, ours)
    with Server(weir) as server:
        for op, case in CASES.items():
            got = seen(server.target, case)
            bad = got != rows[op][1]
            faults += bad
            print("BAD " if bad else "ok  ", op, got, flush=True)
    if flags:
        server = tf.distribute.Server.create_local_server()
        for op, case in CASES.items():
            got = seen(server.target, case)
            bad = got != rows[op][0]
            faults += bad
            print("BAD " if bad else "ok  ", "TensorFlow:", op, got, flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
