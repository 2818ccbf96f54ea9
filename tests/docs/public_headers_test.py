#!/usr/bin/env python3
"""weir.h is the list of public headers: it includes each installed header, except those that need
other libraries (tools/install/BUILD lists them) and details of the public ones. What libweir.so has
of them, and nothing else, is exported (core/tensor/api.h)."""

import glob
import os
import re
import sys

import public_headers
from public_headers import DETAILS

FOLDERS = ["capi", "core", "kernels", "onnx", "ops", "rpc", "serving", "session", "tools"]
# Of libraries that are only static.
STATIC = ("rpc/", "proto/", "core/tensor/memory_quota.h")
OPENS = re.compile(r"^namespace (WEIR_API )?weir \{", re.MULTILINE)


def wrong_exports(installed):
    """Yields headers that export and should not, or the other way round."""
    paths = [path for folder in FOLDERS
             for path in glob.glob(os.path.join(public_headers.ROOT, folder, "**/*.h"), recursive=True)]
    for path in paths:
        name = os.path.relpath(path, public_headers.ROOT)
        with open(path, encoding="utf-8") as header:
            opened = OPENS.findall(header.read())
        exported = name in installed and not name.startswith(STATIC)
        if any(bool(api) != exported for api in opened):
            yield "%s: write namespace %sweir" % (name, "WEIR_API " if exported else "")


def main():
    public = set(public_headers.includes("weir.h"))
    installed, listed = set(public_headers.installed()), set(public_headers.listed())
    faults = ["%s is installed, but weir.h does not include it" % h
              for h in sorted(installed - public - listed - DETAILS)]
    faults += ["%s is not installed only as a detail: DETAILS should not have it" % h
               for h in sorted(DETAILS & (public | listed) | DETAILS - installed)]
    faults += ["weir.h includes %s, and tools/install/BUILD lists it too" % h
               for h in sorted(public & listed)]
    faults += sorted(wrong_exports(installed))
    print("\n".join(faults + ["%d public headers, %d faults" % (len(public), len(faults))]))
    return 1 if faults or not public else 0


if __name__ == "__main__":
    sys.exit(main())
