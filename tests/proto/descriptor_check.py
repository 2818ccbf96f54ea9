#!/usr/bin/env python3
"""Compares Weir's .proto files with TensorFlow's and TensorFlow Serving's descriptors.

Every message, field, number, type, label, oneof and enum value must agree, both ways. Needs protoc
and a Python in which TensorFlow and TensorFlow Serving (PyPI's tensorflow-serving-api) can be
imported; says SKIP and exits 0 without TensorFlow. Without TensorFlow Serving it says SKIP for those
messages, and compares the others.

  python3 tests/proto/descriptor_check.py
"""

import glob
import importlib
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
OURS, THEIRS = "weir.proto.", "tensorflow."
# TensorFlow's Python packages do not have these messages. tests/interop/serve_test.py sends those of
# the first; the others have the numbers of TensorFlow Serving's source.
NOT_IN_PYTHON = ("weir/proto/master.proto", "weir/proto/monitoring_config.proto",
                 "weir/proto/session_bundle_config.proto")
# ONNX's messages are read by tests/onnx, from files that ONNX wrote.
NOT_TENSORFLOW = ("weir/proto/onnx.proto",)
MODULES = ("core/framework", "core/protobuf", "core/util", "core/util/quantization", "core/example",
           "python/training", "python/checkpoint", "tsl/protobuf")
SERVING_MODULES = ("apis", "config")
SERVING_PACKAGE = "weir.proto.serving"


def our_files():
    """Weir's descriptors, by way of protoc and a folder that puts them under weir/proto."""
    from google.protobuf import descriptor_pb2
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/weir")
        os.symlink(ROOT + "/proto", folder + "/weir/proto")
        names = ["weir/proto/" + os.path.basename(p) for p in glob.glob(ROOT + "/proto/*.proto")]
        out = folder + "/set"
        subprocess.run(["protoc", "-I", folder, "--descriptor_set_out", out] + sorted(names),
                       check=True)
        with open(out, "rb") as f:
            files = descriptor_pb2.FileDescriptorSet.FromString(f.read()).file
            return [file for file in files if file.name not in NOT_IN_PYTHON + NOT_TENSORFLOW]


def import_their_messages(folder, modules):
    for part in modules:
        for path in glob.glob(os.path.join(folder, part, "*_pb2.py")):
            name = os.path.relpath(path, os.path.dirname(folder))[:-3].replace("/", ".")
            try:
                importlib.import_module(name)
            except (ImportError, TypeError):
                pass  # A module that is not part of this build; its messages will be missed.


def packed(field):
    """Whether a repeated field is written packed: proto3's default is yes."""
    scalar = field.label == field.LABEL_REPEATED and field.type not in (
        field.TYPE_STRING, field.TYPE_BYTES, field.TYPE_MESSAGE, field.TYPE_GROUP)
    return scalar and (field.options.packed if field.options.HasField("packed") else True)


def fields(message, prefix):
    """name -> what the wire and the text format depend on."""
    return {
        f.name: (f.number, f.Type.Name(f.type), f.Label.Name(f.label), packed(f),
                 f.type_name.replace("." + prefix, ".", 1),
                 message.oneof_decl[f.oneof_index].name if f.HasField("oneof_index") else "")
        for f in message.field
    }


def compare(what, ours, theirs, errors):
    for name in sorted(set(ours) | set(theirs)):
        if ours.get(name) != theirs.get(name):
            errors.append("%s.%s: Weir has %s, TensorFlow has %s" %
                          (what, name, ours.get(name), theirs.get(name)))


def compare_enum(enum, name, pool, errors):
    their = pool.FindEnumTypeByName(THEIRS + name)
    compare(name, {v.name: v.number for v in enum.value},
            {v.name: v.number for v in their.values}, errors)


def compare_message(message, name, pool, errors):
    from google.protobuf import descriptor_pb2
    their = descriptor_pb2.DescriptorProto()
    pool.FindMessageTypeByName(THEIRS + name).CopyToProto(their)
    compare(name, fields(message, OURS), fields(their, THEIRS), errors)
    for enum in message.enum_type:
        compare_enum(enum, name + "." + enum.name, pool, errors)
    compare(name, {m.name: True for m in message.nested_type},
            {m.name: True for m in their.nested_type}, errors)
    count = 1
    for nested in message.nested_type:
        count += compare_message(nested, name + "." + nested.name, pool, errors)
    return count


def main():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        import tensorflow
        from google.protobuf import descriptor_pool
    except ImportError as e:
        print("SKIP: %s (pip install tensorflow-cpu, then run this again)" % e)
        return 0
    import_their_messages(os.path.dirname(tensorflow.__file__), MODULES)
    files = our_files()
    try:
        import tensorflow_serving
        import_their_messages(os.path.dirname(tensorflow_serving.__file__), SERVING_MODULES)
    except ImportError as e:
        print("SKIP the messages of TensorFlow Serving: %s (pip install --no-deps "
              "tensorflow-serving-api, then run this again)" % e)
        files = [file for file in files if file.package != SERVING_PACKAGE]
    pool, errors, messages, enums = descriptor_pool.Default(), [], 0, 0
    for file in files:
        scope = (file.package + ".")[len(OURS):]
        for kind, compare_one in ((file.enum_type, compare_enum),
                                  (file.message_type, compare_message)):
            for item in kind:
                try:
                    n = compare_one(item, scope + item.name, pool, errors)
                    messages, enums = messages + (n or 0), enums + (n is None)
                except KeyError:
                    errors.append("%s: not in TensorFlow" % (scope + item.name))
    for error in errors:
        print(error)
    print("%d messages and %d top-level enums compared with TensorFlow %s: %d differences" %
          (messages, enums, tensorflow.__version__, len(errors)))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
