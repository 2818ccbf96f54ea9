"""Reads `bazel aquery --output=jsonproto` of C++ compilations from stdin, and prints
compile_commands.json for clangd and clang-tidy: one entry per source file of the workspace.

    python3 tools/compile_commands.py WORKSPACE < actions.json > compile_commands.json

Generated sources are left out. So are flags that Clang does not have, precompiled headers, which only
GCC can read, and dependency files. Headers of Weir are found in .cache/include, through a symbolic
link, before Bazel's copies of them: an editor then opens the file of the workspace.
"""

import json
import sys

# Flags that are dropped: with the number of arguments that follow.
DROPPED = {"-MD": 0, "-MF": 1, "-include": 1, "-fpch-deps": 0, "-o": 1, "-freorder-functions": 0,
           "-fno-canonical-system-headers": 0, "-Wno-free-nonheap-object": 0,
           "-Wno-maybe-uninitialized": 0, "-Wunused-but-set-parameter": 0}
DROPPED_PREFIXES = ("-frandom-seed=", "--param=")


def source_of(arguments):
    return arguments[arguments.index("-c") + 1]


def for_clang(arguments):
    """Returns the command without what Clang cannot use."""
    kept = ["clang++", "-I.cache/include"]
    rest = iter(arguments[1:])
    for argument in rest:
        if argument in DROPPED:
            for _ in range(DROPPED[argument]):
                next(rest)
        elif not argument.startswith(DROPPED_PREFIXES):
            kept.append(argument)
    return kept


def entries(actions, workspace):
    """Returns one entry per source; of a source in several targets, the first one's."""
    found = {}
    for action in actions:
        arguments = action["arguments"]
        if "-c" not in arguments:
            continue
        source = source_of(arguments)
        if source.startswith(("bazel-out/", "external/")):
            continue
        found.setdefault(source, {
            "directory": workspace,
            "file": source,
            "arguments": for_clang(arguments),
        })
    return [found[source] for source in sorted(found)]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    json.dump(entries(json.load(sys.stdin)["actions"], sys.argv[1]), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
