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

_COPTS = [
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Wno-missing-field-initializers",
    "-Wno-sign-compare",
    "-Wno-maybe-uninitialized",  # GCC 12 sees ghosts in absl::InlinedVector
]

# Each folder may include what stands before it; tests see everything.
_ORDER = ["proto", "core", "ops", "kernels", "session"]
_TOP = ["tools", "examples", "tests"]

def visible_from(folder):
    """The folders to the right of one, and itself."""
    after = _ORDER[_ORDER.index(folder):] if folder in _ORDER else [folder]
    return ["//%s:__subpackages__" % f for f in depset(after + _TOP).to_list()]

def weir_cc_library(name, copts = [], **kwargs):
    cc_library(
        name = name,
        copts = _COPTS + copts,
        include_prefix = "weir/" + native.package_name(),
        linkstatic = True,  # nothing links shared
        **kwargs
    )

def weir_cc_binary(name, copts = [], **kwargs):
    cc_binary(name = name, copts = _COPTS + copts, **kwargs)

def weir_cc_test(name, copts = [], deps = [], **kwargs):
    cc_test(
        name = name,
        copts = _COPTS + copts,
        deps = deps + ["//third_party:gtest_main"],
        **kwargs
    )
