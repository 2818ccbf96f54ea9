#!/usr/bin/env python3
"""variable_rules.txt has every rule of variables, and the tests that it names exist.

    1.3  The shape is fixed; a given one may be less specific.        a rule: number, two spaces, words
        ops/framework/variables_test.cc Suite.Name Suite.Other                  a file in tests/, and tests in it
        ops/framework/variable_goldens_test.cc golden.unknown_shapes            a program compared with TensorFlow's graph
        - not built: reason                                           instead of tests
"""

import os
import re
import sys

# Sections whose rules are numbered: how many there are.
NUMBERED = {1: 9, 3: 11, 4: 7, 6: 5, 7: 7, 8: 8, 9: 10, 12: 6, 13: 4, 14: 6, 15: 5, 16: 4, 18: 5}
# Rules that have words instead: rows of tables, sentences.
WORDED = {
    1: "kind",
    2: "initial_value storage initializer read extra default_initializer colocation conversions",
    4: "name_scope",
    5: "zeros_and_ones constant random variance_scaling orthogonal_and_identity fans truncation seeds",
    10: "binary unary index scalars mixed_dtypes broadcasting named_functions",
    11: "trainable caching_device constraint synchronization aggregation expected_shape "
        "container_and_shared_name properties",
    17: "order once example name name_scope",
    19: "mirrored aggregation on_read parameter_server chief",
    20: "handles storage fetched_handles after_the_graph",
    21: "INVALID_ARGUMENT ALREADY_EXISTS NOT_FOUND FAILED_PRECONDITION OUT_OF_RANGE DATA_LOSS "
        "DEADLINE_EXCEEDED_and_CANCELLED ABORTED_and_UNAVAILABLE RESOURCE_EXHAUSTED UNIMPLEMENTED",
}

RULE = re.compile(r"(\d+\.\w+(?:\.\w+)?)  \S.*")  # a third part: what of a rule is not built
TESTS = re.compile(r"    (\S+\.cc)((?: \w+\.\w+)+)")
NOT_BUILT = re.compile(r"    - not built: \S.*")
TEST_MACRO = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)


def all_rules():
    for section, count in NUMBERED.items():
        yield from ("%d.%d" % (section, i + 1) for i in range(count))
    for section, words in WORDED.items():
        yield from ("%d.%s" % (section, word) for word in words.split())


class TestFiles:
    """What tests the files below `root` have."""

    def __init__(self, root):
        self.root, self.texts = root, {}

    def text(self, path):
        if path not in self.texts:
            full = os.path.join(self.root, path)
            self.texts[path] = open(full, encoding="utf-8").read() if os.path.isfile(full) else ""
        return self.texts[path]

    def has(self, path, suite, name):
        if suite == "golden":
            goldens = os.path.join(self.root, path.split("/")[0], "golden", name)
            return '{"%s",' % name in self.text(path) and all(
                os.path.isfile(goldens + kind) for kind in ("_ref.pbtxt", "_res.pbtxt"))
        return (suite, name) in TEST_MACRO.findall(self.text(path))


def read_table(path, files):
    """({rule: number of tests}, [what is wrong])."""
    found, faults, rule = {}, [], None
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f.read().split("\n"), 1):
            tests = TESTS.fullmatch(line)
            if not line or line.startswith("#"):
                continue
            if match := RULE.fullmatch(line):
                rule = match[1]
                if rule in found:
                    faults.append("%d: rule %s comes twice" % (number, rule))
                found[rule] = []
            elif rule and tests:
                for test in tests[2].split():
                    found[rule].append(test)
                    if not files.has(tests[1], *test.split(".")):
                        faults.append("%d: %s has no test %s" % (number, tests[1], test))
            elif rule and NOT_BUILT.fullmatch(line):
                found[rule].append(None)
            else:
                faults.append("%d: neither a rule nor its tests: %s" % (number, line))
    return found, faults


def check(found):
    """What is wrong with the table as a whole."""
    rules = set(all_rules())
    for rule in sorted(rules - set(found)):
        yield "rule %s is missing" % rule
    for rule, tests in found.items():
        if rule not in rules and rule.rsplit(".", 1)[0] not in rules:
            yield "there is no rule %s" % rule
        if not tests:
            yield "rule %s has no tests" % rule
        if None in tests and len(tests) > 1:
            yield "rule %s is not built, and has tests: make them two rules" % rule


def main():
    root = os.path.dirname(os.path.realpath(__file__))
    found, faults = read_table(os.path.join(root, "variable_rules.txt"), TestFiles(root))
    faults += check(found)
    missing = [rule for rule, tests in found.items() if tests == [None]]
    print("\n".join(faults + ["%d rules, %d tests named, %d faults; not built: %d (%s)" % (
        len(found), sum(len(t) for t in found.values()) - len(missing), len(faults), len(missing),
        ", ".join(missing))]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
