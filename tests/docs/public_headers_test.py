#!/usr/bin/env python3
"""weir.h is the list of public headers: it includes each installed header, except those that need
other libraries (tools/install/BUILD lists them) and details of the public ones."""

import sys

import public_headers
from public_headers import DETAILS


def main():
    public = set(public_headers.includes("weir.h"))
    installed, listed = set(public_headers.installed()), set(public_headers.listed())
    faults = ["%s is installed, but weir.h does not include it" % h
              for h in sorted(installed - public - listed - DETAILS)]
    faults += ["%s is not installed only as a detail: DETAILS should not have it" % h
               for h in sorted(DETAILS & (public | listed) | DETAILS - installed)]
    faults += ["weir.h includes %s, and tools/install/BUILD lists it too" % h
               for h in sorted(public & listed)]
    print("\n".join(faults + ["%d public headers, %d faults" % (len(public), len(faults))]))
    return 1 if faults or not public else 0


if __name__ == "__main__":
    sys.exit(main())
