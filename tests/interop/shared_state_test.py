#!/usr/bin/env python3
"""Tests op by op which state other sessions of a server see: shared_state.txt, on weir serve and TensorFlow's server.

Skipped without TensorFlow.
usage: shared_state_test.py WEIR TABLE [--tensorflow]   (--tensorflow: also TensorFlow's column)
"""

import os
import sys
import tempfile
import threading
import time

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
from shared_state_cases import AT_ONCE, CASES

v1 = tf.compat.v1


def value(session, what, seconds=4):
    """Returns the value of a fetch, or the name of the error. `what` may have feeds."""
    fetch, feeds = what if isinstance(what, tuple) else (what, {})
    try:
        options = v1.RunOptions(timeout_in_ms=1000 * seconds)
        return np.asarray(session.run(fetch, feeds, options=options)).tolist()
    except tf.errors.OpError as e:
        return type(e).__name__


def built(case):
    with tf.Graph().as_default() as graph:
        return (graph, *case())


def after(op, first, change, second, shown):
    """Returns the state that `second` sees after `first` has changed it, or while `first` changes it."""
    if op not in AT_ONCE:
        value(first, change)
        return value(second, shown)
    thread = threading.Thread(target=lambda: value(first, change))
    thread.start()
    time.sleep(0.5)
    result = value(second, shown, seconds=2)
    thread.join()
    return result


def seen(target, op):
    """"own" if a second session sees the initial state after a first one has changed it, else "shared"."""
    # Steps of isolated sessions in TensorFlow's server do not interact; concurrent ones leave no state behind.
    alone = v1.ConfigProto(isolate_session_state=op not in AT_ONCE)
    graph, change, shown = built(CASES[op])
    with v1.Session(target, graph=graph, config=alone) as session:
        fresh = value(session, shown)
    with v1.Session(target, graph=graph, config=alone) as session:
        if after(op, session, change, session, shown) == fresh:
            return "nothing to see"
    other, _, shown_there = built(CASES[op])
    with v1.Session(target, graph=graph) as first, v1.Session(target, graph=other) as second:
        return "own" if after(op, first, change, second, shown_there) == fresh else "shared"


def read_table(path):
    """{op: (TensorFlow's column, Weir's)} of the requested ops."""
    rows = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                op, theirs, ours = [part.strip() for part in line.split("|")]
                if theirs != "-":
                    rows[op] = (theirs, ours)
    return rows


def faults(who, target, column, rows):
    """Returns the number of rows that disagree with the server."""
    count = 0
    for op in CASES:
        got = seen(target, op)
        bad = got != rows.get(op, ("", ""))[column]
        count += bad
        print("BAD " if bad else "ok  ", who, op, got, flush=True)
    return count


def main(weir, table, *flags):
    rows = read_table(table)
    count = sum(op not in CASES for op in rows)
    with Server(weir, "--allow-path", tempfile.gettempdir()) as server:
        count += faults("Weir:", server.target, 1, rows)
    if flags:
        count += faults("TensorFlow:", tf.distribute.Server.create_local_server().target, 0, rows)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
