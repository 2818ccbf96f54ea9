"""Rules for the tree that `tools/install.sh` installs: libraries, headers and programs.

    load("//tools/install:install.bzl", "installed_library", "installed_tree")

    installed_library(                        # libweir.a, weir.pc, weirConfig.cmake
        name = "weir",
        deps = ["//session:weir"],
        headers = ["weir/weir.h"],    # and the headers they include
        exports = {"//third_party:x": "..."}, # a symbol that programs provide to a shared library
    )

    installed_tree(                           # tree.tar
        name = "tree",
        libraries = [":weir"],
        programs = ["//tools:weir"],
        printer = "//tools:weir",             # a program that prints some of the files:
        printed = {"share/man/man1/weir.1": "help --man"},  # path: its arguments
    )

A library is one archive with all objects of this repository that the deps link; the flags for the
user's linker name Debian's libraries instead. It needs no --whole-archive, because nothing in Weir
registers itself (core/graph/families.h). Shared libraries, which are an addition to this tree, are in
shared_library.bzl.

The linker flags contain --exclude-libs for its archive and for Debian's: a program that exports its
symbols (-rdynamic, plugins) keeps the libraries' symbols private. Otherwise a library in the same
process with another version of protobuf, such as TensorFlow's, would be bound to the program's
protobuf, and crash. The symbols that programs must export are in a separate archive, which is not
excluded: lib<name>_exports.a.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

Installed = provider(fields = {
    "archives": "depset of files: the archives that the library contains",
    "candidates": "depset of files: headers that may be requested",
    "files": "{path below the prefix: file}",
    "flags": "linker flags for Debian's libraries, one string each",
    "headers": "requested headers, as in #include",
    "linked": "CcInfo of what the library contains and needs",
    "shared_pkg_config": "file through which pkg-config finds the shared form of the library",
    "substitutions": "{text: its replacement} in the templates of its files",
})

def _unique(values):
    return {v: None for v in values}.keys()

def _exclude_libs(name, flags):
    """Returns the flag that keeps a program from exporting the symbols of these archives."""
    words = [w for f in flags for w in f.split(" ")]
    archives = ["lib%s.a" % name] + [w[len("-l:"):] for w in words if w.startswith("-l:") and w.endswith(".a")]
    return "-Wl,--exclude-libs," + ":".join(_unique(archives))

def _merged_archive(ctx, name, archives):
    """Merges archives into one, with an MRI script for ar."""
    script = ctx.actions.declare_file(name + ".mri")
    archive = ctx.actions.declare_file(name)
    ctx.actions.write(script, "\n".join(
        ["CREATE " + archive.path] + ["ADDLIB " + a.path for a in archives] + ["SAVE", "END", ""],
    ))
    toolchain = find_cpp_toolchain(ctx)
    ctx.actions.run_shell(
        command = "%s -M < %s && %s --strip-unneeded %s" % (
            toolchain.ar_executable,
            script.path,
            toolchain.strip_executable,
            archive.path,
        ),
        inputs = depset([script] + archives, transitive = [toolchain.all_files]),
        outputs = [archive],
        mnemonic = "MergeArchives",
        progress_message = "Making " + name,
    )
    return archive

def _with_version(ctx, file):
    """Writes the version into a file NAME.in, and returns NAME."""
    out = ctx.actions.declare_file(file.basename[:-len(".in")])
    version = ctx.file._version
    ctx.actions.run_shell(
        command = 'sed "s/{version}/$(cat %s)/" %s > %s' % (version.path, file.path, out.path),
        inputs = [file, version],
        outputs = [out],
        mnemonic = "WriteVersion",
    )
    return out

def _installed_library_impl(ctx):
    name = ctx.label.name
    info = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    requires = [d[Installed] for d in ctx.attr.requires]
    elsewhere = {f: None for d in requires for f in d.archives.to_list()}

    inputs = info.linking_context.linker_inputs.to_list()
    archives = [
        lib.static_library or lib.pic_static_library
        for i in inputs
        for lib in i.libraries
    ]
    own = [a for a in _unique(archives) if a and a not in elsewhere]
    told = {f: None for d in requires for f in d.flags}
    flags = _unique([" ".join(i.user_link_flags) for i in inputs if i.user_link_flags])

    own_flags = [f for f in flags if f not in told]

    exporting = [
        lib.static_library or lib.pic_static_library
        for target in ctx.attr.exports
        for i in target[CcInfo].linking_context.linker_inputs.to_list()
        if i.owner == target.label
        for lib in i.libraries
    ]
    archive = _merged_archive(ctx, "lib%s.a" % name, [a for a in own if a not in exporting])
    files = {"lib/" + archive.basename: archive}
    exports_flags = ["-Wl,-u," + symbol for symbol in ctx.attr.exports.values()]
    exports_file = ""
    if exporting:
        exports = _merged_archive(ctx, "lib%s_exports.a" % name, exporting)
        files["lib/" + exports.basename] = exports
        exports_file = exports.basename

    # What a program calls beside Weir: the public headers include Abseil's.
    shared_flags = ["-Wl,--as-needed"] + [
        "-l" + w[len("-l:lib"):-len(".a")]
        for f in own_flags
        for w in f.split(" ")
        if w.startswith("-l:libabsl_")
    ]
    shared_pkg_config = "lib/pkgconfig/%s-shared.pc" % name
    substitutions = {
        "{name}": name,
        "{description}": ctx.attr.description,
        "{flags}": " ".join(own_flags + [_exclude_libs(name, own_flags)]),
        # By name for pkg-config, which has the folder; by path for CMake.
        "{exports}": " ".join(exports_flags + ["-l:" + f for f in [exports_file] if f]),
        "{exports_cmake}": ";".join(exports_flags + [
            "${_%s_prefix}/lib/%s" % (name, f)
            for f in [exports_file]
            if f
        ]),
        "{shared_flags}": " ".join(shared_flags),
        "{requires}": " ".join([d.label.name for d in ctx.attr.requires]),
        "{targets}": " ".join(["%s::%s" % ((d.label.name,) * 2) for d in ctx.attr.requires]),
    }
    for template, path in [
        (ctx.file._pkg_config, "lib/pkgconfig/%s.pc" % name),
        (ctx.file._shared_pkg_config, shared_pkg_config),
        (ctx.file._cmake, "lib/cmake/%s/%sConfig.cmake" % (name, name)),
        (ctx.file._cmake_version, "lib/cmake/%s/%sConfigVersion.cmake" % (name, name)),
    ]:
        made = ctx.actions.declare_file(path.split("/")[-1] + ".in")
        ctx.actions.expand_template(
            template = template,
            output = made,
            substitutions = substitutions,
        )
        files[path] = _with_version(ctx, made)
    shared_pkg_config = files.pop(shared_pkg_config)
    return [
        DefaultInfo(files = depset(files.values())),
        Installed(
            archives = depset(own, transitive = [d.archives for d in requires]),
            candidates = info.compilation_context.headers,
            files = files,
            flags = flags,
            headers = ctx.attr.headers,
            linked = info,
            shared_pkg_config = shared_pkg_config,
            substitutions = substitutions,
        ),
    ]

installed_library = rule(
    implementation = _installed_library_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "description": attr.string(mandatory = True),
        "exports": attr.label_keyed_string_dict(providers = [CcInfo]),
        "headers": attr.string_list(),
        "requires": attr.label_list(providers = [Installed]),
        "_cmake": attr.label(default = "config.cmake.in", allow_single_file = True),
        "_cmake_version": attr.label(default = "version.cmake.in", allow_single_file = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_pkg_config": attr.label(default = "library.pc.in", allow_single_file = True),
        "_shared_pkg_config": attr.label(default = "shared_library.pc.in", allow_single_file = True),
        "_version": attr.label(default = "//:VERSION", allow_single_file = True),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _installed_tree_impl(ctx):
    libraries = [d[Installed] for d in ctx.attr.libraries]
    files = {}
    for library in libraries:
        files.update(library.files)
    toolchain = find_cpp_toolchain(ctx)
    for program in [p[DefaultInfo].files_to_run.executable for p in ctx.attr.programs]:
        stripped = ctx.actions.declare_file("bin/" + program.basename)
        ctx.actions.run(
            executable = toolchain.strip_executable,
            arguments = ["-o", stripped.path, program.path],
            inputs = depset([program], transitive = [toolchain.all_files]),
            outputs = [stripped],
            mnemonic = "StripProgram",
        )
        files["bin/" + program.basename] = stripped

    for path, arguments in ctx.attr.printed.items():
        printed = ctx.actions.declare_file(path)
        ctx.actions.run_shell(
            command = "%s %s > %s" % (ctx.executable.printer.path, arguments, printed.path),
            tools = [ctx.executable.printer],
            outputs = [printed],
            mnemonic = "PrintInstalledFile",
        )
        files[path] = printed

    candidates = depset(transitive = [d.candidates for d in libraries])
    tar = ctx.actions.declare_file(ctx.label.name + ".tar")
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add("--out", tar)
    args.add_all([h for d in libraries for h in d.headers], before_each = "--header")
    args.add_all(candidates, before_each = "--candidate")
    args.add("--forwarding", ctx.file._forwarding)
    for path, file in files.items():
        args.add("--file", path)
        args.add(file)
    ctx.actions.run(
        executable = "/usr/bin/python3",
        arguments = [ctx.file._pack.path, args],
        inputs = depset([ctx.file._pack, ctx.file._forwarding] + files.values(), transitive = [candidates]),
        outputs = [tar],
        mnemonic = "PackInstalledTree",
    )
    return [DefaultInfo(files = depset([tar]), runfiles = ctx.runfiles([tar]))]

installed_tree = rule(
    implementation = _installed_tree_impl,
    attrs = {
        "libraries": attr.label_list(providers = [Installed]),
        "printed": attr.string_dict(),
        "printer": attr.label(cfg = "target", executable = True),
        "programs": attr.label_list(cfg = "target"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_forwarding": attr.label(default = "forwarding_headers.txt", allow_single_file = True),
        "_pack": attr.label(default = "pack.py", allow_single_file = True),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
