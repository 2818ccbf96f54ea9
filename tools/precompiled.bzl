"""Precompiled headers: headers that are parsed once instead of by every source.

    precompiled_header(
        name = "library",
        src = "library_headers.h",            # #includes, and nothing else
        copts = COPTS,                        # the same as for the sources that use it
        deps = ["//third_party:absl"],
    )

creates library.h, a copy, and library.h.gch in the same folder. A source that is compiled with
`-include tools/precompiled/library.h` and depends on :library starts from the compiler's state after
these headers. The compiler uses the precompiled form only if its flags agree with those of the
source, and otherwise reads the header: a missing flag here only costs time. Without precompiled
headers, half of a source's compilation would be headers: those of the standard library, Abseil and
gtest, and the one of Weir's own that all sources of a folder include.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.symlink(output = header, target_file = ctx.file.src)
    if not ctx.attr.compiled:
        return [
            DefaultInfo(files = depset([header])),
            CcInfo(compilation_context = cc_common.create_compilation_context(
                headers = depset([header]),
            )),
        ]
    compiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")

    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(
        cc_infos = [d[CcInfo] for d in ctx.attr.deps],
    ).compilation_context
    flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = ctx.file.src.path,
        output_file = compiled.path,
        # With its dependencies, which are stored in it as well: with -fpch-deps, sources report them
        # to Bazel, so that they are recompiled when one of them changes.
        user_compile_flags = flags + ["-x", "c++-header", "-MD", "-MF", "/dev/null"],
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
        ),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        inputs = depset(
            [ctx.file.src] + ctx.files.textual,
            transitive = [context.headers, toolchain.all_files],
        ),
        outputs = [compiled],
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling " + ctx.file.src.short_path,
    )
    made = cc_common.create_compilation_context(
        headers = depset([header, compiled, ctx.file.src] + ctx.files.textual),
    )

    # Provides the headers that it contains, but not the libraries that they declare.
    seen = cc_common.merge_cc_infos(
        direct_cc_infos = [CcInfo(compilation_context = made)],
        cc_infos = [CcInfo(compilation_context = d[CcInfo].compilation_context) for d in ctx.attr.deps],
    )
    return [
        DefaultInfo(files = depset([header, compiled])),
        CcInfo(compilation_context = seen.compilation_context),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "compiled": attr.bool(default = True, doc = "if false, provides only the header"),
        "copts": attr.string_list(doc = "flags of the sources that use it"),
        "deps": attr.label_list(providers = [CcInfo], doc = "libraries whose headers it includes"),
        "src": attr.label(allow_single_file = [".h"], mandatory = True),
        "textual": attr.label_list(allow_files = [".h"], doc = "headers in the folder of src that it includes"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
