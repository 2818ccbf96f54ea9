"""Rules for Weir's C++ targets.

    load("//tools:weir.bzl", "weir_cc_library", "weir_cc_test")

    weir_cc_library(
        name = "tensor",
        srcs = ["tensor/tensor.cc"],
        hdrs = ["tensor/tensor.h"],           # included as "weir/core/tensor/tensor.h"
        deps = [":shape", "//third_party:absl"],
    )

    weir_cc_test(                             # in //tests/core; brings gtest and a main
        name = "tensor_test",
        srcs = ["tensor/tensor_test.cc"],
        deps = ["//core:tensor"],
    )

A package declares its users: package(default_visibility = visible_from("core")).
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

COPTS = [
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Wno-missing-field-initializers",
    "-Wno-sign-compare",
    "-Wno-maybe-uninitialized",  # false positives of GCC 12 in absl::InlinedVector
]

# Each folder may include the folders before it; tests may include everything.
_ORDER = ["proto", "core", "ops", "kernels", "session", "onnx", "serving", "rpc", "capi"]
_TOP = ["tools", "examples", "tests"]

def visible_from(folder):
    """Returns a folder and the folders after it, and the root, which has what others use."""
    after = _ORDER[_ORDER.index(folder):] if folder in _ORDER else [folder]
    return ["//:__pkg__"] + ["//%s:__subpackages__" % f for f in depset(after + _TOP).to_list()]

# Tests are not optimized: half of the sources are tests, and they spend their time in libraries.
TEST_COPTS = COPTS + ["-O0", "-U_FORTIFY_SOURCE"]

# For sources that need little optimization: records and gradients of ops and importers of ONNX, which
# run once per node while a graph is built, and commands and examples, which call other code. As with -O2, startup code
# is placed together, so that the system need not read the rest. (Clang, which uses plain headers,
# does not have this flag.)
LIGHT_COPTS = COPTS + ["-O1"] + select({
    "//tools/precompiled:plain_headers": [],
    "//conditions:default": ["-freorder-functions"],
})

def _is_test(package):
    return (package + "/").startswith("tests/") and package != "tests/bench"

def _folder_copts(package):
    if _is_test(package):
        return TEST_COPTS
    return LIGHT_COPTS if package.split("/")[0] in ["ops", "onnx", "tools", "examples"] else COPTS

def _header(package):
    """Returns the precompiled header for the sources of a folder."""
    top = package.split("/")[0]
    if _is_test(package):
        return "test" if package in ["tests/core", "tests/io", "tests/fuzz"] else "session_test"
    if top in ["core", "proto"]:
        return "library"
    return {"ops": "graph", "onnx": "graph", "tools": "tool", "examples": "tool"}.get(top, "kernel")

def _compiled(copts, deps):
    """Returns the copts and deps of a target: its own, the folder's, and precompiled headers."""
    package = native.package_name()
    if copts:  # other flags than the precompiled header's
        precompiled, flags = [], []
    else:
        header = _header(package)
        include = [
            "-include",
            "tools/precompiled/%s.h" % header,
            "-fpch-deps",  # see tools/precompiled.bzl
            # False positives of GCC 12 in Abseil's headers: in a precompiled header, GCC does not
            # treat them as system headers.
            "-Wno-array-bounds",
            "-Wno-uninitialized",
        ]
        precompiled = select({
            "//tools/precompiled:plain_headers": [],
            "//conditions:default": ["//tools/precompiled:" + header],
        })
        flags = select({
            "//tools/precompiled:plain_headers": [],
            "//conditions:default": include,
        })
    return {
        "copts": _folder_copts(package) + copts + flags,
        "deps": deps + precompiled,
    }

def weir_cc_library(name, copts = [], deps = [], **kwargs):
    kwargs.update(_compiled(copts, deps))
    cc_library(
        name = name,
        include_prefix = "weir/" + native.package_name(),
        linkstatic = True,  # nothing links shared
        **kwargs
    )

def weir_cc_binary(name, copts = [], deps = [], **kwargs):
    kwargs.update(_compiled(copts, deps))
    cc_binary(name = name, **kwargs)

def weir_cc_test(name, copts = [], deps = [], **kwargs):
    kwargs.update(_compiled(copts, deps + ["//third_party:gtest_main"]))
    cc_test(name = name, **kwargs)

def family_index(deps):
    """Defines :index, which maps ops to families (core/graph/families.h).

    The folder's generate_family_index.cc, linked with `deps`, registers all families and generates the
    source of :index. That program is an input of the rule, not a tool, so that nothing is compiled
    twice."""
    weir_cc_binary(
        name = "generate_family_index",
        srcs = ["generate_family_index.cc"],
        deps = deps + ["//core:family_index"],
    )
    native.genrule(
        name = "index_source",
        srcs = [":generate_family_index"],
        outs = ["index.cc"],
        cmd = "$(location :generate_family_index) > $@",
    )
    weir_cc_library(
        name = "index",
        srcs = ["index.cc"],
        alwayslink = True,  # what asks for it may stand behind it
        deps = ["//core:graph"],
    )
