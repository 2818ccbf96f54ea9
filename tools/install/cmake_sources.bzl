"""The libraries of this repository as a list for CMake.

    load("//tools/install:cmake_sources.bzl", "cmake_sources")

    cmake_sources(
        name = "cmake_sources",
        deps = [":tree"],                     # installed_library()s and installed_tree()s
    )

writes cmake_sources.cmake: calls of the functions in cmake/functions.cmake, one for each library
with sources, generated file and program that is installed or needed, after what it needs itself.
What is linked, and in which order, is computed here, as Bazel links it. Flags are those that a
target adds to the flags of all (COPTS).

tools/cmake_sources.sh copies the list to cmake/sources.cmake; //tests/examples:cmake_sources_test
fails if that file is out of date.
"""

load("//tools:weir.bzl", "COPTS")
load("//tools/install:install.bzl", "Installed")

CMakeSources = provider(fields = {
    "calls": "depset of calls, those of dependencies first",
    "headers": "depset of names of targets that generate headers which dependents include",
    "text": "the list (of cmake_sources only)",
})

# Where a rule names what it needs.
_ATTRIBUTES = ["deps", "exports", "hdrs", "libraries", "programs", "requires", "srcs"]

# Options of tools/weir.bzl for precompiled headers; cmake/functions.cmake has its own.
_PRECOMPILED_OPTIONS = ["-fpch-deps", "-Wno-array-bounds", "-Wno-uninitialized"]

def _name(label):
    """Returns the name of a target in CMake: weir_core_tensor for //core:tensor."""
    words = label.package.split("/") if label.package else []
    if label.name != (words or [""])[-1]:
        words.append(label.name)
    return "_".join(["weir"] + words)

def _quoted(value):
    """Returns a word for CMake, in which nothing is replaced."""
    plain = value
    for mark in "/_.+-:,=".elems():
        plain = plain.replace(mark, "")
    if plain.isalnum():
        return value
    if [c for c in ["\"", "\\", "$", "\n"] if c in value]:
        return "[==[%s]==]" % value
    return '"%s"' % value

def _call(function, name, **arguments):
    """Returns the text of a call: function(name KEYWORD words...), without empty arguments."""
    lines = ["%s(%s" % (function, name)]
    for keyword, values in arguments.items():
        words = [keyword.upper()] + [_quoted(v) for v in values]
        line = "  " + " ".join(words)
        if len(words) > 4 or len(line) > 100:
            lines += ["  " + words[0]] + ["    " + w for w in words[1:]]
        elif values:
            lines.append(line)
    return "\n".join(lines) + ")\n"

def _needed(attributes):
    """Returns the targets that a rule names, as far as the aspect has visited them."""
    found = []
    for name in _ATTRIBUTES:
        named = getattr(attributes, name, None) or []
        targets = named.keys() if type(named) == "dict" else named
        found += [t for t in targets if CMakeSources in t]
    return found

def _files(targets, extensions):
    return [f for t in targets for f in t[DefaultInfo].files.to_list() if f.extension in extensions]

def _options(copts):
    """Returns the precompiled header that copts name, and the options that are not those of all."""
    header, options, skip = [], [], False
    for i, option in enumerate(copts):
        if skip:
            skip = False
        elif option == "-include":
            header = [copts[i + 1].split("/")[-1][:-len(".h")]]
            skip = True
        elif option not in COPTS + _PRECOMPILED_OPTIONS:
            options.append(option)
    return header, options

def _includes(ctx, info):
    """Returns the folders of sources that are searched for headers."""
    context = info.compilation_context
    searched = context.includes.to_list() + context.system_includes.to_list()
    return {
        i: None
        for i in searched
        if not i.startswith(ctx.bin_dir.path) and not i.startswith("external/")
    }.keys()

def _compiled(ctx, info):
    """Returns the arguments of what is compiled: sources, and with which flags."""
    rule = ctx.rule.attr
    header, options = _options(rule.copts)
    sources = _files(rule.srcs, ["cc"])
    return {
        "sources": [f.short_path for f in sources if f.is_source],
        "generated": [f.short_path for f in sources if not f.is_source],
        "options": options,
        "defines": rule.defines + rule.local_defines,
        "includes": _includes(ctx, info),
        "precompiled": header,
    }

def _linked(info):
    """Returns the names of the libraries that a CcInfo links, and the flags, in Bazel's order."""
    libraries, flags = {}, {}
    for linked in info.linking_context.linker_inputs.to_list():
        if linked.libraries:
            libraries[_name(linked.owner)] = None
        if linked.user_link_flags:
            flags[" ".join(linked.user_link_flags)] = None
    return libraries.keys(), flags.keys()

def _library_call(target, ctx, headers):
    compiled = _compiled(ctx, target[CcInfo])
    if not compiled["sources"] + compiled["generated"]:
        return ""
    return _call("weir_library", _name(target.label), needs = headers, **compiled)

def _header_calls(target, ctx):
    """Returns calls for headers that are not included by their paths."""
    prefix = ctx.rule.attr.include_prefix
    if prefix and prefix != "weir/" + target.label.package:
        return [
            _call("weir_header", "%s/%s" % (prefix, f.basename), source = [f.short_path])
            for f in _files(ctx.rule.attr.hdrs, ["h"])
        ]
    return []

def _program_call(target, ctx, headers):
    info = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.rule.attr.deps])
    libraries, flags = _linked(info)
    return _call(
        "weir_program",
        _name(target.label),
        output = [target[DefaultInfo].files_to_run.executable.short_path],
        libraries = libraries,
        flags = flags,
        needs = headers,
        **_compiled(ctx, info)
    )

def _proto_call(target, ctx, headers):
    return _call(
        "weir_protos",
        _name(target.label),
        protos = [f.short_path for f in _files(ctx.rule.attr.srcs, ["proto"])],
        needs = headers,
    )

def _genrule_call(target, ctx):
    """Returns the call for a genrule: the command that Bazel runs, with $BIN for its output folder.

    A long list of inputs, as of a filegroup, is ${inputs[@]:N}, from the Nth."""
    action = [a for a in target.actions if a.mnemonic == "Genrule"][0]
    setup = "genrule-setup.sh; "
    command = action.argv[-1]
    command = command[command.index(setup) + len(setup):].replace(ctx.bin_dir.path, '"$BIN"')
    files = [f for t in ctx.rule.attr.srcs for f in t[DefaultInfo].files.to_list()]
    inputs = [f.path for f in files if f.is_source]
    for first in range(len(inputs) - 8):
        command = command.replace(" ".join(inputs[first:]), "${inputs[@]:%d}" % first)
    return _call(
        "weir_generate",
        _name(target.label),
        outputs = [f.short_path for f in target[DefaultInfo].files.to_list()],
        inputs = inputs,
        programs = [_name(f.owner) for f in files if not f.is_source],
        command = [command],
    )

def _installed_library_call(target, ctx, headers):
    rule = ctx.rule.attr
    installed = target[Installed]
    exports = [_name(t.label) for t in rule.exports]
    elsewhere = [n for d in rule.requires for n in _linked(d[Installed].linked)[0]] + exports
    return _call(
        "weir_installed_library",
        target.label.name,
        description = [rule.description],
        libraries = [n for n in _linked(installed.linked)[0] if n not in elsewhere],
        exports = exports,
        exported_symbols = rule.exports.values(),
        requires = [d.label.name for d in rule.requires],
        headers = installed.headers,
        includes = _includes(ctx, installed.linked),
        flags = [installed.substitutions["{flags}"]],
        shared_flags = [installed.substitutions["{shared_flags}"]],
        needs = headers,
    )

def _installed_tree_call(ctx):
    rule = ctx.rule.attr
    return _call(
        "weir_installed_programs",
        _name(rule.printer.label),
        programs = [_name(p.label) for p in rule.programs],
        printed = [word for item in rule.printed.items() for word in item],
    )

def _aspect_impl(target, ctx):
    kind = ctx.rule.kind
    targets = _needed(ctx.rule.attr)
    headers = depset(transitive = [t[CMakeSources].headers for t in targets])
    if target.label.workspace_name or kind == "precompiled_header":
        return [CMakeSources(calls = depset(), headers = depset())]
    calls, own_headers = [], []
    if kind == "cc_library":
        calls = _header_calls(target, ctx) + [_library_call(target, ctx, headers.to_list())]
    elif kind == "cc_binary":
        calls = [_program_call(target, ctx, headers.to_list())]
    elif kind == "proto_library":
        calls = [_proto_call(target, ctx, headers.to_list())]
        own_headers = [_name(target.label)]
    elif kind == "genrule":
        calls = [_genrule_call(target, ctx)]
        own_headers = [_name(target.label)] if _files([target], ["h"]) else []
    elif kind == "installed_library":
        calls = [_installed_library_call(target, ctx, headers.to_list())]
    elif kind == "installed_tree":
        calls = [_installed_tree_call(ctx)]
    elif kind == "link_only":
        headers = depset()
    return [CMakeSources(
        calls = depset(
            [c for c in calls if c],
            transitive = [t[CMakeSources].calls for t in targets],
            order = "postorder",
        ),
        headers = depset(own_headers, transitive = [headers]),
    )]

_cmake_sources_aspect = aspect(
    implementation = _aspect_impl,
    attr_aspects = _ATTRIBUTES,
    apply_to_generating_rules = True,
)

def _cmake_sources_impl(ctx):
    calls = depset(transitive = [d[CMakeSources].calls for d in ctx.attr.deps], order = "postorder")
    text = "\n".join(
        ["# How Bazel builds each library, written by tools/cmake_sources.sh.\n"] + calls.to_list(),
    )
    out = ctx.actions.declare_file(ctx.label.name + ".cmake")
    ctx.actions.write(out, text)
    return [
        DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out])),
        CMakeSources(calls = calls, headers = depset(), text = text),
    ]

cmake_sources = rule(
    implementation = _cmake_sources_impl,
    attrs = {"deps": attr.label_list(aspects = [_cmake_sources_aspect])},
)
