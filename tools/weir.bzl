"""How Weir's C++ targets are declared.

    load("//tools:weir.bzl", "weir_cc_library", "weir_cc_test")

    weir_cc_library(
        name = "tensor",
        srcs = ["tensor.cc"],
        hdrs = ["tensor.h"],                  # included as "weir/core/tensor.h"
        deps = [":shape", "//third_party:absl"],
    )

    weir_cc_test(                             # in //tests/core; brings gtest and a main
        name = "tensor_test",
        srcs = ["tensor_test.cc"],
        deps = ["//core:tensor"],
    )

A package says who may use it: package(default_visibility = visible_from("core")).
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

COPTS = [
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Wno-missing-field-initializers",
    "-Wno-sign-compare",
    "-Wno-maybe-uninitialized",  # GCC 12 sees ghosts in absl::InlinedVector
]

# Each folder may include what stands before it; tests see everything.
_ORDER = ["proto", "core", "ops", "kernels", "session", "rpc"]
_TOP = ["tools", "examples", "tests"]

def visible_from(folder):
    """The folders to the right of one, and itself."""
    after = _ORDER[_ORDER.index(folder):] if folder in _ORDER else [folder]
    return ["//%s:__subpackages__" % f for f in depset(after + _TOP).to_list()]

# Tests are not optimized: half of the sources are tests, and none of their time is their own code's.
TEST_COPTS = COPTS + ["-O0", "-U_FORTIFY_SOURCE"]

# Nor are records and rules of ops much, which run once a node while a graph is built, and commands
# and examples, which call the others' code. As with -O2, what runs at the start of the program lies
# together: the system need not read the rest. (Clang, which has plain headers, knows no such flag.)
LIGHT_COPTS = COPTS + ["-O1"] + select({
    "//tools/precompiled:plain_headers": [],
    "//conditions:default": ["-freorder-functions"],
})

def _is_test(package):
    return (package + "/").startswith("tests/") and package != "tests/bench"

def _folder_copts(package):
    if _is_test(package):
        return TEST_COPTS
    return LIGHT_COPTS if package.split("/")[0] in ["ops", "tools", "examples"] else COPTS

def _header(package):
    """The precompiled header that the sources of a folder start from."""
    top = package.split("/")[0]
    if _is_test(package):
        return "test" if package in ["tests/core", "tests/io", "tests/fuzz"] else "session_test"
    if top in ["core", "proto"]:
        return "library"
    return {"ops": "graph", "tools": "tool", "examples": "tool"}.get(top, "kernel")

def _compiled(copts, deps):
    """The copts and deps of a target: those given, a folder's own, and headers parsed once."""
    package = native.package_name()
    if copts:  # other flags than the precompiled header's
        precompiled, flags = [], []
    else:
        header = _header(package)
        include = [
            "-include",
            "tools/precompiled/%s.h" % header,
            "-fpch-deps",  # see tools/precompiled.bzl
            # What GCC 12 sees in Abseil's headers, which it does not know for the system's any more.
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
    """:index, which says what op is in which family (core/families.h): its source is written by the
    folder's generate_family_index.cc, linked with `deps`, which makes all families. That program is an input
    of the rule, not a tool, so that nothing is compiled for it a second time."""
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
