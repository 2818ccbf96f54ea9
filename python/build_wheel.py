#!/usr/bin/env python3
"""Builds the wheel of the Python package: this folder's package with the library inside.

    build_wheel.py LIBRARY [--out FOLDER]

LIBRARY is libtensorflow.so.2.*, the target //tools/install:libtensorflow. The libraries that it
needs and that the policy of manylinux does not expect on every system are put beside it, with their
licenses. Prints the path of the wheel, whose platform tag says the oldest C
library that it runs with. Equal inputs give equal bytes. Uses readelf, and nothing from PyPI.
"""

import argparse
import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(HERE)
LIBRARY = "libtensorflow.so.2"
# What PEP 600 lets a wheel expect from the system.
SYSTEM = re.compile(
    r"(ld-linux[\w-]*|libc|libm|libdl|libpthread|librt|libutil|libnsl|libresolv|libgcc_s|libstdc\+\+)"
    r"\.so\.\d+$"
)
# The oldest tags by the newest symbol version of libstdc++ that they may need: (2, 17) of manylinux
# lets a wheel need GLIBCXX_3.4.19, and so on.
GLIBCXX = ((17, 19), (24, 22), (27, 24), (28, 24), (31, 28), (34, 29), (35, 30), (38, 32), (39, 33))
EARLIEST = (1980, 1, 1, 0, 0, 0)  # of files in a zip archive


def readelf(option, path):
    return subprocess.run(
        ["readelf", "-W", option, path], check=True, stdout=subprocess.PIPE, universal_newlines=True
    ).stdout


def needed(path):
    """Returns the SONAMEs of the libraries that a library needs."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path))


def system_paths():
    """Returns the libraries that the system's loader finds, by SONAME."""
    listing = subprocess.run(
        ["/sbin/ldconfig", "-p"], check=True, stdout=subprocess.PIPE, universal_newlines=True
    ).stdout
    machine = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(platform.machine(), "")
    found = {}
    for name, kind, path in re.findall(r"^\s+(\S+) \(([^)]*)\) => (\S+)$", listing, re.M):
        if machine not in kind:
            continue
        found.setdefault(name, path)
    return found


def bundle(library):
    """Returns (SONAME, path) of the libraries to put beside."""
    paths, order, seen = system_paths(), [], set()

    def visit(path):
        for name in needed(path):
            if name in seen or SYSTEM.match(name):
                continue
            seen.add(name)
            if name not in paths:
                sys.exit("%s needs %s, which this system does not have" % (path, name))
            visit(paths[name])
            order.append((name, os.path.realpath(paths[name])))

    visit(library)
    return order


def platform_tag(libraries):
    """Returns "manylinux_2_NN_ARCH" for the symbol versions that libraries need."""
    glibc, glibcxx = 17, 0
    for path in libraries:
        versions = readelf("-V", path).partition("Version needs section")[2]
        glibc = max([glibc] + [int(v) for v in re.findall(r"GLIBC_2\.(\d+)", versions)])
        glibcxx = max([glibcxx] + [int(v) for v in re.findall(r"GLIBCXX_3\.4\.(\d+)", versions)])
    for release, newest in GLIBCXX:
        if glibcxx <= newest:
            return "manylinux_2_%d_%s" % (max(glibc, release), platform.machine())
    sys.exit("no manylinux has GLIBCXX_3.4.%d" % glibcxx)


def license_of(path):
    """Returns Debian's copyright file of the package that a library is from."""
    for name in (path, path[len("/usr") :]):  # packages may have /lib where it is a link
        found = subprocess.run(
            ["dpkg", "-S", name],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            universal_newlines=True,
        )
        if found.returncode == 0:
            return "/usr/share/doc/%s/copyright" % found.stdout.partition(":")[0]
    sys.exit("no package has %s: whose license is it?" % path)


class Wheel:
    """A wheel that is written, with the record of its files."""

    def __init__(self, path, info):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.info, self.records = info, []

    def add(self, name, data):
        entry = zipfile.ZipInfo(name, EARLIEST)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
        self.archive.writestr(entry, data, compresslevel=9)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.records.append("%s,sha256=%s,%d\n" % (name, digest, len(data)))

    def add_file(self, name, path):
        with open(path, "rb") as file:
            self.add(name, file.read())

    def close(self):
        record = self.info + "/RECORD"
        self.add(record, ("".join(self.records) + record + ",,\n").encode())
        self.archive.close()


def metadata(version):
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
        description = file.read()
    return (
        "Metadata-Version: 2.1\nName: weir\nVersion: %s\n"
        "Summary: TensorFlow's graphs, trained and run, without TensorFlow\n"
        "License: Apache-2.0\nRequires-Python: >=3.8\nRequires-Dist: numpy\n"
        "Classifier: Operating System :: POSIX :: Linux\n"
        "Description-Content-Type: text/markdown\n\n%s" % (version, description)
    ).encode()


def build(library, folder):
    """Writes the wheel and returns its path."""
    with open(os.path.join(ROOT, "VERSION"), encoding="utf-8") as file:
        version = file.read().strip()
    if "[$ORIGIN]" not in readelf("-d", library):
        sys.exit(
            "%s does not search for libraries beside itself: link it with -rpath,$ORIGIN" % library
        )
    beside = bundle(library)
    tag = platform_tag([library] + [path for _, path in beside])
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "weir-%s-py3-none-%s.whl" % (version, tag))
    info = "weir-%s.dist-info" % version
    wheel = Wheel(path, info)
    package = os.path.join(HERE, "weir")
    for name in sorted(os.listdir(package)):
        if name.endswith((".py", ".typed")):
            wheel.add_file("weir/" + name, os.path.join(package, name))
    wheel.add_file("weir/" + LIBRARY, library)
    for name, source in beside:
        wheel.add_file("weir/" + name, source)
        wheel.add_file("%s/licenses/%s.copyright" % (info, name), license_of(source))
    wheel.add_file(info + "/licenses/LICENSE", os.path.join(ROOT, "LICENSE"))
    wheel.add(info + "/METADATA", metadata(version))
    wheel.add(
        info + "/WHEEL",
        (
            "Wheel-Version: 1.0\nGenerator: build_wheel.py\nRoot-Is-Purelib: false\n"
            "Tag: py3-none-%s\n" % tag
        ).encode(),
    )
    wheel.close()
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("library", metavar="LIBRARY")
    parser.add_argument("--out", default="dist", metavar="FOLDER")
    arguments = parser.parse_args()
    print(build(arguments.library, arguments.out))


if __name__ == "__main__":
    main()
