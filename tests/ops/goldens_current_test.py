#!/usr/bin/env python3
"""Checks that the golden graphs are up to date: runs the scripts in this directory again and compares their output.

Skipped, with a message, if Python has no TensorFlow. The layers also need tf_keras.
"""
import filecmp
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

SCRIPTS = {"make_goldens.py": [], "make_flow_goldens.py": [], "make_partitioned_goldens.py": [], "make_training_goldens.py": [],
           "make_sparse_goldens.py": [], "make_dataset_goldens.py": [], "make_sync_replicas_goldens.py": [],
           "make_layer_goldens.py": ["tf_keras"]}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    if importlib.util.find_spec("tensorflow") is None:
        print("SKIP: this Python has no TensorFlow")
        return 0
    wrong, compared = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for script in SCRIPTS:
            shutil.copy(os.path.join(here, script), folder)
        for script, modules in SCRIPTS.items():
            missing = [m for m in modules if importlib.util.find_spec(m) is None]
            if missing:
                print("SKIP: %s: this Python has no %s" % (script, ", ".join(missing)))
                continue
            done = subprocess.run([sys.executable, script], cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit("%s\n%s" % (script, done.stderr))
        made = os.path.join(folder, "golden")
        for name in sorted(os.listdir(made)):
            compared += 1
            committed = os.path.join(here, "golden", name)
            if not os.path.exists(committed) or not filecmp.cmp(os.path.join(made, name), committed, shallow=False):
                wrong.append(name)
    for name in wrong:
        print("FAIL: golden/%s is out of date: run the script that generates it" % name)
    print("%d golden graphs regenerated, %d differ" % (compared, len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
