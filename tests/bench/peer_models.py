#!/usr/bin/env python3
"""W13 to W17 of the suite for TensorFlow's session; does nothing for other workloads.

usage: peer_models.py W16 [--graphs DIR]

run_peers.py of the suite runs it with `--extra models='.../peer_models.py'`. Prints JSON lines. Writes
the graphs that do not exist yet, and TensorFlow's results, with which weir_peer.py compares Weir's.
"""

import argparse
import importlib.util
import os

import model_graphs
from peer_bert import GRAPHS, emit, seconds_per_call


def measure(tf, model, folder):
    with model_graphs.imported(tf, os.path.join(folder, model.name + ".pb")) as session:
        if model.init:
            session.run(model.init)
        feeds = model_graphs.fed(model)
        fetches = [model.fetches[0] + ":0"] + ([model.target] if model.target else [])
        run = session.make_callable(fetches, [name + ":0" for name in feeds])
        emit(model.workload(), "tf", seconds_per_call(lambda: run(*feeds.values())))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workload", metavar="W16")
    parser.add_argument("--graphs", default=GRAPHS)
    flags = parser.parse_args()
    if flags.workload not in model_graphs.SCRIPTS or not importlib.util.find_spec("tensorflow"):
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # required by the suite's rules
    model_graphs.write_in_child(flags.workload, flags.graphs)
    for model in model_graphs.models(flags.workload):
        measure(model_graphs.tensorflow(), model, flags.graphs)


if __name__ == "__main__":
    main()
