"""Runs Clang over the sources in some folders, with the flags in compile_commands.json.

    python3 tools/clang_checks.py threads FOLDER...     thread-safety analysis (core/tensor/mutex.h)
    python3 tools/clang_checks.py tidy FOLDER...        clang-tidy with the checks in .clang-tidy

Prints what it finds, and a line that counts the sources. Exits 1 if it finds anything.
"""

import concurrent.futures
import json
import os
import subprocess
import sys

ANALYZE_THREADS = ["-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror"]
TIDY = ["clang-tidy", "-p", ".", "--quiet", "--warnings-as-errors=*"]


def command_for(check, entry):
    if check == "tidy":
        return TIDY + [entry["file"]]
    return entry["arguments"] + ANALYZE_THREADS


def run(check, entry):
    """Returns the findings in one source, or an empty string."""
    result = subprocess.run(command_for(check, entry), cwd=entry["directory"], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if result.returncode == 0:
        return ""
    return result.stdout or "%s: exit status %d\n" % (entry["file"], result.returncode)


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("threads", "tidy"):
        sys.exit(__doc__)
    check, folders = sys.argv[1], tuple(folder + "/" for folder in sys.argv[2:])
    with open("compile_commands.json") as f:
        entries = [entry for entry in json.load(f) if entry["file"].startswith(folders)]
    if not entries:
        sys.exit("compile_commands.json has no sources in " + " ".join(sys.argv[2:]))
    faulty = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for findings in pool.map(lambda entry: run(check, entry), entries):
            if findings:
                faulty += 1
                print(findings, end="", flush=True)
    print("%d sources, %d with findings" % (len(entries), faulty))
    sys.exit(1 if faulty else 0)


if __name__ == "__main__":
    main()
