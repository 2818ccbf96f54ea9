"""Bazel's own rule sets, from Debian's packages, and the CUDA toolkit where there is one."""

def _link_all(ctx, folder, leave_out = []):
    for entry in ctx.path(folder).readdir():
        if entry.basename not in leave_out:
            ctx.symlink(entry, entry.basename)

def _rules_cc_impl(ctx):
    """rules_cc 0.0.4, with two loads mended that Bazel 4 cannot follow."""
    root = "/usr/share/bazel/rules/cc"
    _link_all(ctx, root, ["cc", "WORKSPACE"])
    found = ctx.execute(["find", "cc", "-type", "f"], working_directory = root).stdout
    for path in found.strip().split("\n"):
        text = ctx.read(root + "/" + path)
        text = text.replace('"find_cpp_toolchain", "use_cpp_toolchain"', '"find_cpp_toolchain"')
        text = text.replace("use_cpp_toolchain()", '["@bazel_tools//tools/cpp:toolchain_type"]')
        ctx.file(path, text, executable = False)
    ctx.file("WORKSPACE", 'workspace(name = "rules_cc")\n')

_rules_cc = repository_rule(implementation = _rules_cc_impl, local = True)

def _debian_tools_impl(ctx):
    """Programs that run during a build."""
    ctx.symlink("/usr/bin/protoc", "protoc")
    ctx.file("BUILD", 'exports_files(["protoc"], visibility = ["//visibility:public"])\n')

_debian_tools = repository_rule(implementation = _debian_tools_impl, local = True)

def _no_coverage_impl(ctx):
    """cc_test names this repository even when no coverage is asked for."""
    ctx.file("BUILD", 'filegroup(name = "coverage_report_generator", ' +
                      'visibility = ["//visibility:public"])\n')

_no_coverage = repository_rule(implementation = _no_coverage_impl)

def _cuda_toolkit_impl(ctx):
    """Where the toolkit is (empty: nowhere), and its headers for sources that g++ compiles.

    cuDNN is in CUDNN_HOME, or in the toolkit's folder, or where the compiler looks by itself."""
    home = ctx.os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    if ctx.path(home + "/bin/nvcc").exists:
        ctx.symlink(home + "/include", "include")
    else:
        home = ""
    dnn = ctx.os.environ.get("CUDNN_HOME") or home
    if dnn != home:
        ctx.symlink(dnn + "/include", "cudnn/include")
    dnn_lib = dnn + ("/lib64" if ctx.path(dnn + "/lib64").exists else "/lib") if dnn else ""
    ctx.file("defs.bzl", "CUDA_HOME = %r\nCUDNN_LIB = %r\n" % (home, dnn_lib))
    ctx.file("BUILD", """
cc_library(
    name = "headers",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/*"], allow_empty = True),
    includes = ["include"],
    visibility = ["//visibility:public"],
)

cc_library(
    name = "cudnn_headers",
    hdrs = glob(["cudnn/include/*.h"], allow_empty = True),
    includes = ["cudnn/include"],
    visibility = ["//visibility:public"],
)
""")

_cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    environ = [
        "CUDA_HOME",
        "CUDNN_HOME",
    ],
    local = True,
)

def _source_folder(ctx, package):
    """Returns the unpacked source of an installed Debian package."""
    query = ["dpkg-query", "-W", "-f=${source:Package}=${source:Version}", package]
    source = ctx.execute(query).stdout.strip()
    folder = ctx.os.environ["HOME"] + "/.cache/weir-sources/" + source
    if not source or not ctx.path(folder).exists:
        fail("The source of %s is not in %s: run tools/fetch_sources.sh" % (package, folder))
    return folder

def _files_in_cmake(ctx, list, prefix):
    """Returns the sources that one of protobuf's CMake files lists."""
    words = ctx.read(list).replace("\n", " ").split(" ")
    return [w[len(prefix):] for w in words if w.startswith(prefix) and w.endswith(".cc")]

def _found(ctx, folder, *conditions):
    found = ctx.execute(["find", "-L"] + list(conditions), working_directory = folder)
    return sorted(found.stdout.strip().split("\n"))

def _debian_sources_impl(ctx):
    """Abseil, Highway, protobuf and RE2 as they are in Debian, for shared libraries.

    They see the installed headers, which are the same, and are compiled with the flags of this
    build: position-independent and hidden."""
    absl = _source_folder(ctx, "libabsl-dev")
    protobuf = _source_folder(ctx, "libprotobuf-dev")
    re2 = _source_folder(ctx, "libre2-dev")
    highway = _source_folder(ctx, "libhwy-dev")
    folders = [
        absl + "/absl",
        protobuf + "/src/google",
        re2 + "/re2",
        re2 + "/util",
        highway + "/hwy",
    ]
    ctx.execute(["cp", "-r"] + folders + ["."])
    ctx.execute(["find", ".", "-name", "BUILD*", "-delete"])  # of packages of its own

    # Of Highway what kernels need: not the benchmark, which measures a timer when it is loaded.
    files = {
        "absl": [],
        "highway": ["hwy/%s.cc" % f for f in ["aligned_allocator", "per_target", "targets"]],
        "protobuf": [],
    }
    for path in _found(ctx, absl, "absl", "-name", "*.cc", "-not", "-path", "*/flags/*"):
        name = path.split("/")[-1]
        if not [w for w in ["test", "benchmark", "mock", "print_hash_of", "gaussian"] if w in name]:
            files["absl"].append(path)
    for part in ["libprotobuf-lite", "libprotobuf"]:
        files["protobuf"] += _files_in_cmake(
            ctx,
            protobuf + "/cmake/" + part + ".cmake",
            "${protobuf_SOURCE_DIR}/src/",
        )
    files["re2"] = _found(ctx, re2, "re2", "-maxdepth", "1", "-name", "*.cc") + \
                   ["util/rune.cc", "util/strutil.cc"]
    ctx.file("BUILD", "".join(["""
cc_library(
    name = "%s",
    srcs = %r,
    copts = ["-w", "-iquote", "external/debian_sources", "-idirafter", "external/debian_sources",
             "-DHAVE_PTHREAD", "-DHAVE_ZLIB"],
    linkstatic = True,
    textual_hdrs = glob(["%s/**/*.h", "%s/**/*.inc", "util/*.h"]),
    visibility = ["//visibility:public"],
)
""" % (name, files[name], folder, folder) for name, folder in {
        "absl": "absl",
        "highway": "hwy",
        "protobuf": "google",
        "re2": "re2",
    }.items()]))

_debian_sources = repository_rule(
    implementation = _debian_sources_impl,
    environ = ["HOME"],
    local = True,
)

def weir_repositories():
    """Declares every outside repository that a build of Weir loads, unless the project has it."""
    repositories = {
        "cuda_toolkit": _cuda_toolkit,
        "debian_sources": _debian_sources,
        "debian_tools": _debian_tools,
        "remote_coverage_tools": _no_coverage,
        "rules_cc": _rules_cc,
    }
    folders = {
        "bazel_skylib": "/usr/share/bazel/tools/skylib",
        "rules_java": "/usr/share/bazel/rules/java",
        "rules_proto": "/usr/share/bazel/rules/proto",
    }
    for name, rule in repositories.items():
        if not native.existing_rule(name):
            rule(name = name)
    for name, path in folders.items():
        if not native.existing_rule(name):
            native.local_repository(name = name, path = path)
