#!/usr/bin/env python3
"""Packs the installed files into a tar file: the requested headers, the headers of Weir that they
include, headers at old paths that include the moved ones, and other files at given paths. See
install.bzl."""

import argparse
import io
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


def forwarding(path):
    """Yields the old path of each moved header, and a header that includes the new one."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                old, new = line.split()
                yield old, new, (
                    f'// Moved in release 0.2: include "weir/weir.h", or "{new}".\n'
                    f"// Release 0.3 will not have this file.\n"
                    f'#include "{new}"\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, fromfile_prefix_chars="@")
    parser.add_argument("--out", required=True)
    parser.add_argument("--header", action="append", default=[], help="as in #include")
    parser.add_argument("--candidate", action="append", default=[], help="file of a header")
    parser.add_argument("--file", nargs=2, action="append", default=[], help="path, file")
    parser.add_argument("--link", nargs=2, action="append", default=[], help="path, its target")
    parser.add_argument("--forwarding", help="list of moved headers: old, new")
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
        for name, target in args.link:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(plain(info))
        for old, new, text in forwarding(args.forwarding) if args.forwarding else []:
            if f"include/{new}" not in members:
                sys.exit(f"forwarding_headers.txt: {new} is not an installed header")
            info = tarfile.TarInfo(f"include/{old}")
            info.size = len(text.encode())
            tar.addfile(plain(info), io.BytesIO(text.encode()))


if __name__ == "__main__":
    main()
