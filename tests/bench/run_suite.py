#!/usr/bin/env python3
"""Runs Weir and other runtimes on the suite's workloads, alternating, and reports the ratios.

usage: run_suite.py SUITE [--workloads W1,W4] [--peers tf,ort,capi] [--passes 2] [--write]
                    [--python torch=PATH --python jax=PATH]

SUITE is the folder with run_peers.py, whose peers need certain Python packages (see its
requirements.txt), each in the Python that runs this script or in the one that --python names.
Weir's programs are those in bazel-bin:

    bazel build //tests/bench:all //tests/interop:run_steps //tools:weir
    python3 tests/bench/run_suite.py ../shared/bench --write

Every pass runs each program once, one after the other. A line of the table is one measurement:
Weir's best value and the median of its medians, the same for the best peer, and the ratio of Weir's
speed to the peer's. --write writes the table to docs/benchmarks.md and all measurements to
docs/benchmarks.json, which keeps measurements of other workloads from the same machine.
"""

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import textwrap

import compare

HERE = os.path.dirname(os.path.abspath(__file__))
DOCS = os.path.join(HERE, "..", "..", "docs")
BEGIN, END = "<!-- written by tests/bench/run_suite.py -->", "<!-- end of what it writes -->"
MORE_IS_BETTER = {"steps/s", "img/s", "GB/s", "GFLOP/s", "GOP/s", "nodes/s"}
LESS_IS_BETTER = {"us/run", "us/step", "ns/node", "ns/iter", "s", "MB", "B/node"}


def processor():
    """Identifies the machine: virtual machines have the same name with and without AVX-512."""
    with open("/proc/cpuinfo") as lines:
        fields = [[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]
    names = [value for key, value in fields if key == "model name"]
    flags = {flag for key, value in fields if key == "flags" for flag in value.split()}
    vectors = [name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in flags]
    name = names[0] if names else platform.machine()
    return " with ".join(["%d x %s" % (len(names), name)] + vectors[:1])


def measure(flags, peer, graphs, out):
    suite = os.path.abspath(flags.suite)
    weir = "%s %s --graphs %s" % (sys.executable, os.path.join(HERE, "weir_peer.py"), graphs)
    callers = "%s %s --suite %s --work %s" % (
        sys.executable, os.path.join(HERE, "peer_callers.py"), suite, os.path.abspath(flags.work)
    )  # fmt: skip
    bert = "%s %s --graphs %s" % (sys.executable, os.path.join(HERE, "peer_bert.py"), graphs)
    models = "%s %s --graphs %s" % (sys.executable, os.path.join(HERE, "peer_models.py"), graphs)
    command = [
        sys.executable, os.path.join(suite, "run_peers.py"), "--workloads", flags.workloads,
        "--peers", flags.peers, "--passes", str(flags.passes), "--capi", peer, "--graphs", graphs,
        "--dir", flags.dir, "--extra", "bert=" + bert, "--extra", "models=" + models,
        "--extra", "weir=" + weir,
        "--extra", "callers=" + callers, "--out", out,
    ]  # fmt: skip
    for python in flags.python:
        command += ["--python", python]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(out) as file:
        rows = with_starts(json.load(file)["measurements"])
    return [dict(row, date=str(datetime.date.today())) for row in rows]


def with_starts(rows):
    """Returns the rows, and for large graphs, whose import is a rate, the total time of import and run."""
    found = {}
    for row in rows:
        if (row["metric"], row["unit"]) in {("import", "nodes/s"), ("first_run", "s")}:
            start = found.setdefault((row["workload"], row["peer"], row["pass"]), {})
            start[row["metric"]] = row["value"]
    starts = []
    for (workload, peer, number), start in found.items():
        if len(start) == 2:
            nodes = int(re.search(r"\d+$", workload).group())
            seconds = nodes / start["import"] + start["first_run"]
            starts.append({"workload": workload, "peer": peer, "metric": "import_and_first_run",
                           "value": seconds, "unit": "s", "pass": number})  # fmt: skip
    return rows + starts


def key(row):
    return row["workload"], row["metric"], row["unit"].replace("us/step", "us/run")


def table(rows):
    """Yields lines for the measurements that exist for Weir and for at least one peer."""
    groups = {}
    for row in rows:
        if row["unit"] in MORE_IS_BETTER | LESS_IS_BETTER and row["value"] > 0:
            groups.setdefault(key(row), {}).setdefault(row["peer"], []).append(row)
    yield "| workload | figure | Weir best, median | best peer | its best, median | Weir's speed |"
    yield "|---|---|---|---|---|---|"
    order = sorted(groups, key=lambda k: (int(re.match(r"W(\d+)", k[0]).group(1)), k))
    for workload, metric, unit in order:
        peers = dict(groups[workload, metric, unit])
        weir = peers.pop("weir", None)
        if weir is None or not peers:
            continue
        more = unit in MORE_IS_BETTER
        best = lambda runs: (max if more else min)(r["value"] for r in runs)  # noqa: E731
        middle = lambda runs: statistics.median(  # noqa: E731
            r.get("median") or r["value"] for r in runs
        )
        name = (max if more else min)(peers, key=lambda peer: best(peers[peer]))
        ratio = best(weir) / best(peers[name])
        yield "| %s | %s (%s) | %.4g, %.4g | %s | %.4g, %.4g | **%.2f** |" % (
            workload, "time" if metric == workload else metric, unit, best(weir), middle(weir),
            name, best(peers[name]), middle(peers[name]), ratio if more else 1 / ratio,
        )  # fmt: skip


def family(row):
    return row["workload"].split(".")[0]


def previous_measurements(workloads):
    """Returns the measurements of other workloads on this machine in docs/benchmarks.json."""
    with open(os.path.join(DOCS, "benchmarks.json")) as file:
        old = json.load(file)
    if old["machine"] != processor():
        return []
    return [row for row in old["measurements"] if family(row) not in workloads]


def write(lines, rows, flags):
    workloads = sorted({family(row) for row in rows}, key=lambda name: int(name[1:]))
    peers = sorted({row["peer"] for row in rows} - {"weir"})
    days = " to ".join(sorted({min(r["date"] for r in rows), max(r["date"] for r in rows)}))
    heading = "%s, %s; `run_suite.py --workloads %s --passes %d`; beside Weir ran %s:" % (
        days, processor(), ",".join(workloads), flags.passes, ", ".join(peers)
    )  # fmt: skip
    heading = textwrap.fill(heading, 100, break_long_words=False, break_on_hyphens=False)
    path = os.path.join(DOCS, "benchmarks.md")
    with open(path) as file:
        text = file.read()
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    if not after:
        sys.exit("run_suite.py: %s lacks the markers of the table: %s ... %s" % (path, BEGIN, END))
    with open(path, "w") as file:
        file.write("\n".join([before + BEGIN, "", heading, ""] + lines + ["", END]) + after)
    keep = ("workload", "peer", "metric", "value", "unit", "median", "pass", "date")
    with open(os.path.join(DOCS, "benchmarks.json"), "w") as file:
        measured = [json.dumps({k: row[k] for k in keep if k in row}) for row in rows]
        head = '{"machine": %s,\n "measurements": [\n  ' % json.dumps(processor())
        file.write(head + ",\n  ".join(measured) + "]}\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", metavar="SUITE")
    parser.add_argument("--workloads", default=",".join("W%d" % i for i in range(1, 18)))
    parser.add_argument("--peers", default="tf,ort,capi", help="also torch and jax")
    parser.add_argument("--python", action="append", default=[], metavar="PEER=INTERPRETER")
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--dir", default=tempfile.gettempdir(), help="folder for the checkpoints of W7")
    parser.add_argument("--write", action="store_true", help="write the results to docs/")
    parser.add_argument("--work", default=os.path.expanduser("~/.cache/weir-bench"))
    flags = parser.parse_args()
    peer, graphs = compare.build_peer(flags.suite, flags.work)
    with tempfile.TemporaryDirectory() as folder:
        before = previous_measurements(flags.workloads.split(",")) if flags.write else []
        rows = measure(flags, peer, graphs, os.path.join(folder, "out.json")) + before
    lines = list(table(rows))
    print("\n".join(lines))
    if flags.write:
        write(lines, rows, flags)


if __name__ == "__main__":
    main()
