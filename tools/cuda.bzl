"""Rules for CUDA sources: a library of .cu files, and a dependency on it only under --config=cuda:

    load("//tools:cuda.bzl", "if_cuda", "weir_cuda_library")

    weir_cuda_library(
        name = "elementwise_gpu",
        srcs = ["elementwise_gpu.cu"],
        hdrs = ["launch.h"],
        deps = [":elementwise", "//third_party:cudart"],
    )

    link_only(
        name = "gpu_linked",
        deps = [":elementwise_gpu"],
    )

    weir_cc_library(
        name = "kernels",
        srcs = ["registry.cc"] + if_cuda([], ["no_gpu.cc"]),
        deps = [":elementwise_cpu"] + if_cuda([":gpu_linked"]),
    )

A .cu file sees the headers of its deps, like a .cc file. Sources that only call CUDA's libraries
(cuBLAS, cuDNN, NVRTC) are ordinary .cc files of a weir_cc_library tagged "manual". Targets that
depend on either through link_only are compiled as without CUDA, so the option recompiles few files.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@cuda_toolkit//:defs.bzl", "CUDA_HOME")
load("//tools:weir.bzl", "weir_cc_library")

# Code for the Hopper generation, and PTX that drivers compile for any GPU since Turing.
_ARCHITECTURES = [
    "-gencode=arch=compute_90,code=sm_90",
    "-gencode=arch=compute_75,code=compute_75",
]

_COPTS = [
    "-std=c++20",
    "-O2",
    "-DNDEBUG",
    "--expt-relaxed-constexpr",
    "--extended-lambda",
    "-Xcompiler=-Wall",
]

def if_cuda(with_cuda, without = []):
    """Selects the first list under --config=cuda, the second one otherwise."""
    return select({
        "//third_party:with_cuda": with_cuda,
        "//conditions:default": without,
    })

def _link_only_impl(ctx):
    info = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    return [CcInfo(linking_context = info.linking_context)]

# The deps for the linker, without their headers and transitive headers.
link_only = rule(
    implementation = _link_only_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)

def _compile(ctx, source, context):
    """Compiles one .cu file to an object file."""
    out = ctx.actions.declare_file("_objs/%s/%s.o" % (ctx.label.name, source.basename))
    args = ctx.actions.args()
    args.add_all(_ARCHITECTURES + _COPTS + ctx.attr.copts)
    args.add_all(depset(transitive = [context.defines, context.local_defines]), format_each = "-D%s")
    args.add_all(depset(transitive = [context.includes, context.system_includes]), before_each = "-I")
    args.add_all(context.quote_includes, format_each = "-Xcompiler=-iquote,%s")
    args.add("-c", source)
    args.add("-o", out)

    # nvcc names its temporary files after its process number. Sandboxes share /tmp, but each counts
    # processes from 1, so that two compilers at once would use the same files.
    ctx.actions.run_shell(
        command = 'mkdir -p "$1" && TMPDIR="$PWD/$1" "${@:2}" && rm -r "$1"',
        arguments = [out.path + ".tmp", CUDA_HOME + "/bin/nvcc", args],
        inputs = depset([source], transitive = [context.headers]),
        outputs = [out],
        use_default_shell_env = True,
        mnemonic = "CudaCompile",
        progress_message = "Compiling " + source.short_path,
    )
    return out

def _cuda_objects_impl(ctx):
    if not CUDA_HOME:
        fail("--config=cuda needs the CUDA toolkit: install it, and set CUDA_HOME if it is not " +
             "in /usr/local/cuda")
    info = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    objects = depset([_compile(ctx, s, info.compilation_context) for s in ctx.files.srcs])
    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = features,
        cc_toolchain = toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = objects,
            pic_objects = objects,
        ),
        linking_contexts = [info.linking_context],
        disallow_dynamic_library = True,
    )
    return [
        DefaultInfo(files = objects),
        CcInfo(compilation_context = info.compilation_context, linking_context = linking),
    ]

_cuda_objects = rule(
    implementation = _cuda_objects_impl,
    attrs = {
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "srcs": attr.label_list(allow_files = [".cu"]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def weir_cuda_library(name, srcs, hdrs = [], deps = [], copts = [], **kwargs):
    weir_cc_library(
        name = name + "_headers",
        hdrs = hdrs,
        deps = deps,
        tags = ["manual"],
        **kwargs
    )
    _cuda_objects(
        name = name,
        srcs = srcs,
        copts = copts,
        deps = [":%s_headers" % name],
        tags = ["manual"],
        **kwargs
    )
