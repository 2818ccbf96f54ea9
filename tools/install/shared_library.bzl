"""A shared library with everything inside that a process could have a second time.

    load("//tools/install:shared_library.bzl", "library_tarball", "shared_library")

    shared_library(
        name = "libtensorflow",
        soname = "libtensorflow.so.2",
        file = "libtensorflow.so.2.21.0",     # its name when installed
        version_script = "libtensorflow.lds", # what it exports, and the version of these symbols
        deps = ["//capi:tensorflow"],         # exports what their own objects define,
        transitive = False,                   # or those of all libraries that they need
        rpath = "$ORIGIN",                    # also where the libraries that it needs are searched
    )

    library_tarball(
        name = "tarball",
        libraries = [":libtensorflow"],       # in lib/, with their links
        static = [":weir"],                   # installed_library()s whose shared forms these are
        files = {"//capi:headers": "include"},  # a folder for files, at their paths in their package
    )

The exporting objects are linked whole, and of the other libraries of this repository what they need.
The result has no undefined symbol, exports nothing that the version script does not name, and is
stripped.

Debian's libraries are inside as they are in programs, if their archives are position-independent;
_INSIDE and _BESIDE are for the others.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("//tools/install:install.bzl", "Installed")

SharedLibrary = provider(fields = {
    "file": "the library, under the name that it is installed with",
    "links": "names of symbolic links to it: the SONAME, and what linkers look for",
})

def _archives(info):
    return [
        lib.static_library or lib.pic_static_library
        for i in info.linking_context.linker_inputs.to_list()
        for lib in i.libraries
    ]

def _own_archives(target):
    """Returns the archives of a target without those of its dependencies."""
    return [
        lib.static_library or lib.pic_static_library
        for i in target[CcInfo].linking_context.linker_inputs.to_list()
        if i.owner == target.label
        for lib in i.libraries
    ]

def _unique(values):
    return {v: None for v in values if v}.keys()

def _shared_library_impl(ctx):
    info = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    replaced = {ctx.label.relative(old): "" for old in ctx.attr.inside}
    replaced.update({ctx.label.relative(old): flags for old, flags in ctx.attr.beside.items()})
    flags, left_out = [], []
    for linked in info.linking_context.linker_inputs.to_list():
        if linked.owner in replaced:
            flags.append(replaced[linked.owner])
            left_out += [lib.static_library or lib.pic_static_library for lib in linked.libraries]
        else:
            flags.append(" ".join(linked.user_link_flags))
    inside = [a for d in ctx.attr.sources for a in _archives(d[CcInfo])]
    all = [a for a in _unique(_archives(info)) if a not in left_out]
    own = _unique([a for d in ctx.attr.deps for a in _own_archives(d)])
    whole = [a for a in all if ctx.attr.transitive or a in own]
    parts = [a for a in all if a not in whole]

    out = ctx.actions.declare_file(ctx.attr.file)
    params = ctx.actions.declare_file(ctx.attr.file + ".params")
    ctx.actions.write(params, "\n".join(
        [
            "-shared",
            "-o",
            out.path,
            "-Wl,-soname," + ctx.attr.soname,
            "-Wl,--version-script," + ctx.file.version_script.path,
            "-Wl,--no-undefined",
            "-Wl,-Bsymbolic",
            "-Wl,--gc-sections",
            "-Wl,--as-needed",
            "-Wl,-z,relro,-z,now",
            "-Wl,-O1,--hash-style=gnu,--build-id",
            "-Wl,--strip-all",
        ] + (["-Wl,--disable-new-dtags,-rpath," + ctx.attr.rpath] if ctx.attr.rpath else []) + [
            "-Wl,--whole-archive",
        ] + [a.path for a in whole] + ["-Wl,--no-whole-archive", "-Wl,--start-group"] +
        [a.path for a in parts + inside] +
        [
            w
            for f in _unique(flags)
            for w in f.split(" ")
            # gRPC names some of Abseil's, in a group.
            if w and not w.startswith("-l:libabsl_") and not w.endswith("-group")
        ] + ["-ldl", "-lm", "-lstdc++", "-Wl,--end-group"],
    ))
    toolchain = find_cpp_toolchain(ctx)
    ctx.actions.run(
        executable = toolchain.compiler_executable,
        arguments = ["@" + params.path],
        inputs = depset(
            [params, ctx.file.version_script] + whole + parts + inside,
            transitive = [toolchain.all_files],
        ),
        outputs = [out],
        mnemonic = "LinkSharedLibrary",
        progress_message = "Linking " + ctx.attr.file,
        execution_requirements = {"no-cache": ""},
        use_default_shell_env = True,  # where the linker is
    )
    return [
        DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out])),
        SharedLibrary(
            file = out,
            links = [
                link
                for link in [ctx.attr.soname, ctx.label.name + ".so"]
                if link != ctx.attr.file
            ],
        ),
    ]

_shared_library = rule(
    implementation = _shared_library_impl,
    attrs = {
        "beside": attr.string_dict(),
        "deps": attr.label_list(providers = [CcInfo]),
        "file": attr.string(mandatory = True),
        "inside": attr.string_list(),
        "rpath": attr.string(),
        "soname": attr.string(mandatory = True),
        "sources": attr.label_list(providers = [CcInfo]),
        "transitive": attr.bool(),
        "version_script": attr.label(allow_single_file = [".lds"], mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

# Libraries whose symbols meet others' in a process (TensorFlow exports its own): compiled by this build,
# and hidden.
_INSIDE = {
    "//third_party:absl": "@debian_sources//:absl",
    "//third_party:highway": "@debian_sources//:highway",
    "//third_party:protobuf": "@debian_sources//:protobuf",
    "//third_party:re2": "@debian_sources//:re2",
}

# Libraries with versioned symbols, which are not confused with others': shared.
_BESIDE = {
    "//third_party:jpeg": "-ljpeg",
    "//third_party:png": "-lpng16",
    # Only the tables of characters, which are not in the source package: the code is inside.
    "//third_party:re2": "-l:libre2.a",
    "//third_party:lapack": " ".join([
        "-L/usr/lib/x86_64-linux-gnu/lapack",
        "-L/usr/lib/x86_64-linux-gnu/blas",
        "-L/usr/lib/aarch64-linux-gnu/lapack",
        "-L/usr/lib/aarch64-linux-gnu/blas",
        "-l:liblapack.a -l:libblas.a -lgfortran",
    ]),
}

def shared_library(name, **kwargs):
    """Links a shared library; see above. It is built by name only: it needs tools/fetch_sources.sh."""
    _shared_library(
        name = name,
        inside = _INSIDE.keys(),
        sources = _INSIDE.values(),
        beside = _BESIDE,
        tags = ["manual"],
        **kwargs
    )

def _library_tarball_impl(ctx):
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    tar = ctx.actions.declare_file(ctx.label.name + ".tar")
    args.add("--out", tar)
    inputs = []
    for library in [d[SharedLibrary] for d in ctx.attr.libraries]:
        args.add_all(["--file", "lib/" + library.file.basename, library.file.path])
        for link in library.links:
            args.add_all(["--link", "lib/" + link, library.file.basename])
        inputs.append(library.file)
    for file in [d[Installed].shared_pkg_config for d in ctx.attr.static]:
        args.add_all(["--file", "lib/pkgconfig/" + file.basename, file.path])
        inputs.append(file)
    for target, folder in ctx.attr.files.items():
        for file in target[DefaultInfo].files.to_list():
            package = target.label.package
            path = file.short_path[len(package) + 1 if package else 0:]
            args.add_all(["--file", folder + "/" + path, file.path])
            inputs.append(file)
    ctx.actions.run(
        executable = "/usr/bin/python3",
        arguments = [ctx.file._pack.path, args],
        inputs = depset([ctx.file._pack] + inputs),
        outputs = [tar],
        mnemonic = "PackLibraries",
    )
    return [DefaultInfo(files = depset([tar]), runfiles = ctx.runfiles([tar]))]

_library_tarball = rule(
    implementation = _library_tarball_impl,
    attrs = {
        "files": attr.label_keyed_string_dict(allow_files = True),
        "libraries": attr.label_list(providers = [SharedLibrary]),
        "static": attr.label_list(providers = [Installed]),
        "_pack": attr.label(default = "pack.py", allow_single_file = True),
    },
)

def library_tarball(name, **kwargs):
    """Packs shared libraries and other files; see above. It is built by name only, as they are."""
    _library_tarball(name = name, tags = ["manual"], **kwargs)
