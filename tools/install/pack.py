#!/usr/bin/env python3
"""Packs the installed files into a tar file: the requested headers, the headers of Weir that they
include, and other files at given paths. See install.bzl."""

import argparse
import re
import sys
import tarfile

INCLUDE = re.compile(r'^\s*#\s*include\s*"(weir/[^"]+)"', re.MULTILINE)


def reached(roots, by_name):
    """Returns the headers that `roots` include, directly or not, by the names used to include them."""
    found, queue = {}, list(roots)
    while queue:
        name = queue.pop()
        if name in found:
            continue
        if name not in by_name:
            sys.exit(f"{name} is not a header of the installed libraries")
        found[name] = by_name[name]
        with open(by_name[name], encoding="utf-8") as header:
            queue += INCLUDE.findall(header.read())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, fromfile_prefix_chars="@")
    parser.add_argument("--out", required=True)
    parser.add_argument("--header", action="append", default=[], help="as in #include")
    parser.add_argument("--candidate", action="append", default=[], help="file of a header")
    parser.add_argument("--file", nargs=2, action="append", default=[], help="path, file")
    args = parser.parse_args()

    # Bazel places a header in .../_virtual_includes/NAME/weir/..., a generated one in
    # .../_virtual_imports/NAME/weir/...
    own_folder = re.compile(r".*/_virtual_(includes|imports)/[^/]+/")
    by_name = {
        own_folder.sub("", path): path for path in args.candidate if own_folder.match(path)
    }
    members = {f"include/{n}": path for n, path in reached(args.header, by_name).items()}
    members.update(args.file)

    def plain(info):  # the same bytes for every user and time of the build
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = "root"
        info.mode = 0o755 if info.name.startswith("bin/") else 0o644
        return info

    with tarfile.open(args.out, "w", dereference=True) as tar:
        for name, path in sorted(members.items()):
            tar.add(path, name, filter=plain)


if __name__ == "__main__":
    main()
