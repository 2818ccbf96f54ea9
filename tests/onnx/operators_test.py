#!/usr/bin/env python3
"""docs/onnx.md lists every operator of ONNX: imported, or why not.

The operators are in operators.txt, the importers in the tables of onnx/*.cc, and the reasons in
left_out.txt. If onnx (PyPI) can be imported, operators.txt must be what it says.

  operators_test.py              compares
  operators_test.py --update     writes docs/onnx.md
  operators_test.py --from-onnx  writes operators.txt, with a Python that has onnx
"""

import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DOCUMENT = os.path.join(ROOT, "docs/onnx.md")
ROW = re.compile(r'\{"(\w+)", (\d+), \w+, \w+, [\w<>:, ]+?(?:, (\d+))?\}')
MAX_OPSET = re.compile(r"kMaxOpset = (\d+);")
BEGIN = "<!-- The table is written by tests/onnx/operators_test.py --update. -->\n"


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def operators():
    """The versions of each operator, by name with the domain."""
    lines = [line.split() for line in read(HERE, "operators.txt").splitlines()
             if not line.startswith("#")]
    return {words[0]: [int(v) for v in words[1:]] for words in lines}


def importers():
    """The first and the last version of each operator that is imported."""
    newest = MAX_OPSET.search(read(ROOT, "onnx/importers.h"))[1]
    rows = {}
    for path in glob.glob(os.path.join(ROOT, "onnx/*.cc")):
        for name, since, until in ROW.findall(read(path)):
            rows[name] = (int(since), int(until or newest))
    return rows


def reasons():
    """Why an operator, or all of a domain ("ai.onnx.ml.*"), is not imported."""
    lines = [line for line in read(HERE, "left_out.txt").splitlines()
             if line and not line.startswith("#")]
    return {name: reason for name, _, reason in (line.partition(": ") for line in lines)}


def table():
    imported, left_out = importers(), reasons()
    unknown = set(imported) - set(operators())
    if unknown:
        sys.exit("importers of operators that ONNX does not have: %s" % sorted(unknown))
    lines, used = ["| operator | versions | imported | remarks |\n", "|---|---|---|---|\n"], set()
    for name, versions in operators().items():
        key = name if name in left_out else name.rpartition(".")[0] + ".*"
        reason = left_out.get(key, "")
        used.add(key)
        if name not in imported and not reason:
            sys.exit("%s is neither imported nor in left_out.txt" % name)
        what = "%d to %d" % imported[name] if name in imported else "no"
        lines.append("| %s | %s | %s | %s |\n" % (
            name, ", ".join(map(str, versions)), what, reason))
    if set(left_out) - used:
        sys.exit("left_out.txt: no such operators: %s" % sorted(set(left_out) - used))
    count = "%d of %d operators of ONNX's own domain are imported.\n\n" % (
        len(imported), sum("." not in name for name in operators()))
    return count + "".join(lines)


def from_onnx():
    """What operators.txt should be; None without onnx."""
    try:
        import onnx
    except ImportError:
        return None
    versions = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        versions.setdefault((schema.domain, schema.name), []).append(schema.since_version)
    lines = ["# Every operator of onnx %s, with the versions of its domain's operator set that "
             "changed it.\n" % onnx.__version__,
             "# operators_test.py --from-onnx writes this file.\n"]
    for (domain, name), list_of in sorted(versions.items()):
        lines.append(" ".join([(domain + "." if domain else "") + name] +
                              [str(v) for v in sorted(list_of)]) + "\n")
    return "".join(lines)


def main():
    known = from_onnx()
    if "--from-onnx" in sys.argv:
        with open(os.path.join(HERE, "operators.txt"), "w", encoding="utf-8") as file:
            file.write(known)
        return
    if known is None:
        print("SKIP: no onnx to compare operators.txt with")
    elif known != read(HERE, "operators.txt"):
        sys.exit("operators.txt is not what onnx says: run operators_test.py --from-onnx")
    text = read(DOCUMENT)
    wanted = text.partition(BEGIN)[0] + BEGIN + "\n" + table()
    if "--update" in sys.argv:
        with open(DOCUMENT, "w", encoding="utf-8") as file:
            file.write(wanted)
    elif text != wanted:
        sys.exit("docs/onnx.md is out of date: run tests/onnx/operators_test.py --update")


if __name__ == "__main__":
    main()
