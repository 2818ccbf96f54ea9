#!/usr/bin/env python3
"""Runs commands on terminals and compares what they show with the screens in screens/: in 80 and
120 columns, with colors, without (NO_COLOR), and in the C locale. Escape characters are written as
\\e. To update the screens after a change, and to look at them with `printf '%b'`:

    bazel build //tools:weir && tests/tools/screens_test.py --update bazel-bin/tools/weir
"""

import difflib
import fcntl
import math
import os
import pty
import shutil
import struct
import sys
import tempfile
import termios

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "events"))
import write_events  # noqa: E402

COMMANDS = [
    "weir grph show model.pbtxt",
    "weir ckpt vrify model",
    "weir graph show model.pbtxt --jsn",
    "weir help events plot",
    "weir graph ops model.pbtxt",
    "weir graph diff model.pbtxt line.pbtxt",
    "weir ckpt ls model",
    "weir ckpt ls model --wide",
    "COLUMNS=60 weir ckpt ls model",
    "NO_COLOR= weir ckpt ls model",
    "weir ckpt ls model --color=never",
    "weir ckpt ls model --color=always | cat",
    "weir events ls runs",
    "weir events values runs --tag loss",
    "weir events plot runs --tag loss --height 12",
    "weir passes",
]
SCREENS = {
    "80_columns": (80, {"LC_ALL": "C.UTF-8"}),
    "120_columns": (120, {"LC_ALL": "C.UTF-8"}),
    "80_columns_no_color": (80, {"LC_ALL": "C.UTF-8", "NO_COLOR": "1"}),
    "80_columns_c_locale": (80, {"LC_ALL": "C"}),
}

# A variable with a name that is wider than a terminal, and one whose name is not ASCII.
VARIABLES = ["encoder/layer_" + "with_a_long_name_" * 5 + "11/attention/kernel", "エンコーダ/重み"]


def write_model(path):
    with open(path, "w", encoding="utf-8") as file:
        for i, name in enumerate(VARIABLES):
            file.write(f'''
node {{ name: "v{i}" op: "VarHandleOp"
  attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
  attr {{ key: "shape" value {{ shape {{ dim {{ size: 3 }} }} }} }}
  attr {{ key: "shared_name" value {{ s: "v{i}" }} }} }}
node {{ name: "c{i}" op: "Const"
  attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
  attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{ dim {{ size: 3 }} }}
    float_val: {i + 1} }} }} }} }}
node {{ name: "a{i}" op: "AssignVariableOp" input: "v{i}" input: "c{i}"
  attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
node {{ name: "r{i}" op: "ReadVariableOp" input: "v{i}"
  attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
''')
        names = " ".join(f'string_val: "{name}"' for name in sorted(VARIABLES))
        reads = " ".join(f'input: "r{VARIABLES.index(name)}"' for name in sorted(VARIABLES))
        slices = " ".join(['string_val: ""'] * len(VARIABLES))
        for name, text in [("prefix", 'string_val: "model"'), ("names", names), ("slices", slices)]:
            shape = "" if name == "prefix" else f"dim {{ size: {len(VARIABLES)} }}"
            file.write(f'''
node {{ name: "{name}" op: "Const" attr {{ key: "dtype" value {{ type: DT_STRING }} }}
  attr {{ key: "value" value {{ tensor {{ dtype: DT_STRING tensor_shape {{ {shape} }} {text} }} }} }}
}}''')
        file.write(f'''
node {{ name: "save" op: "SaveV2" input: "prefix" input: "names" input: "slices" {reads}
  attr {{ key: "dtypes" value {{ list {{ type: [DT_FLOAT, DT_FLOAT] }} }} }} }}
node {{ name: "init" op: "NoOp" input: "^a0" input: "^a1" }}
''')


def write_runs(path):
    for run, rate in [("baseline", 0.9), ("wider/第2", 0.8)]:
        os.makedirs(f"{path}/{run}")
        with open(f"{path}/{run}/events.out.tfevents.1.host", "wb") as file:
            for step in range(0, 50, 5):
                time = 1700000000 + step
                file.write(write_events.scalar("loss", step, time, rate**step))
                file.write(write_events.scalar("accuracy/top_1", step, time, 1 - rate**step / 2))
                file.write(write_events.scalar("spiral", step, time, math.sin(step)))


def on_terminal(command, columns, variables, folder):
    """Returns what the command shows on a terminal, and its exit status."""
    environment = {k: os.environ[k] for k in ["PATH", "HOME", "TEST_TMPDIR"] if k in os.environ}
    environment |= {"TERM": "xterm-256color", "PATH": f"{folder}/bin:{environment['PATH']}"}
    environment |= variables
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        os.chdir(folder)
        os.execvpe("bash", ["bash", "-c", command], environment)
    shown = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:  # the terminal is closed
            break
        if not part:
            break
        shown += part
    os.close(fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return shown.decode().replace("\r\n", "\n").replace("\x1b", "\\e"), status


def screen(columns, variables, folder):
    text = ""
    for command in COMMANDS:
        shown, status = on_terminal(command, columns, variables, folder)
        text += f"$ {command}\n{shown}" + (f"[{status}]\n" if status else "") + "\n"
    return text


def main():
    update = "--update" in sys.argv
    weir = os.path.realpath([a for a in sys.argv[1:] if a != "--update"][0])
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/bin")
        os.symlink(weir, f"{folder}/bin/weir")
        shutil.copy(f"{HERE}/golden/line.pbtxt", folder)
        write_model(f"{folder}/model.pbtxt")
        write_runs(f"{folder}/runs")
        shown, status = on_terminal("weir run model.pbtxt --init init --target save", 80, {}, folder)
        assert status == 0, shown
        for name, (columns, variables) in SCREENS.items():
            path = f"{HERE}/screens/{name}.txt"
            actual = screen(columns, variables, folder)
            if update:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(actual)
                continue
            with open(path, encoding="utf-8") as file:
                expected = file.read()
            faults += actual != expected
            sys.stdout.writelines(difflib.unified_diff(
                expected.splitlines(True), actual.splitlines(True), path, "now"))
    sys.exit("A screen has changed; if this is intended, run this test with --update."
             if faults else 0)


if __name__ == "__main__":
    main()
