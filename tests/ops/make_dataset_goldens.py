#!/usr/bin/env python3
"""Writes golden/dataset_<program>_ref.pbtxt: the graphs that TensorFlow's tf.compat.v1.data builds for small programs, and
golden/dataset_elements.txt: the elements that TensorFlow reads from them.

dataset_goldens_test.cc builds the same programs with Weir and compares node by node, functions included; dataset_test.cc
compares elements. Functions are numbered in the order of their creation. Run with TensorFlow installed:
    python3 tests/ops/make_dataset_goldens.py
"""
import os
import re

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow.compat.v1 as tf  # noqa: E402
from google.protobuf import text_format  # noqa: E402

Dataset = tf.data.Dataset
PROGRAMS = {}
# Programs whose nodes differ: the bounds of a slice by a tensor.
ELEMENTS_ONLY = ["dataset_buckets"]


def program(fn):
    PROGRAMS["dataset_" + fn.__name__] = fn
    return fn


def numbers(n=10):
    return Dataset.range(n)


@program
def tensors():
    return Dataset.from_tensors((tf.constant([1, 2]), tf.constant("a")))


@program
def slices():
    return Dataset.from_tensor_slices((tf.constant([[1, 2], [3, 4]]), tf.constant([1.5, 2.5])))


@program
def selection():
    return Dataset.range(2, 30, 3).skip(1).take(7).shard(2, 1).concatenate(numbers(2)).repeat(2)


@program
def shuffled():
    return numbers().shuffle(4, seed=3).shuffle(5, seed=7, reshuffle_each_iteration=False).repeat(2)


@program
def shuffled_with_graph_seed():
    tf.set_random_seed(5)
    return numbers().shuffle(4).shuffle(6, seed=2).repeat(2)


@program
def shuffle_and_repeat():
    return numbers(5).apply(tf.data.experimental.shuffle_and_repeat(4, count=2, seed=1))


@program
def random():
    return Dataset.random(seed=3).take(4)


@program
def mapped():
    return numbers().map(lambda x: (x + 1, tf.cast(x, tf.float32)))


@program
def mapped_in_parallel():
    doubled = numbers().map(lambda x: x * 2, num_parallel_calls=4)
    return doubled.map(lambda x: x + 1, num_parallel_calls=-1, deterministic=True)


@program
def filtered():
    thirds = numbers().filter(lambda x: tf.equal(x % 3, 0))
    return thirds.take_while(lambda x: x < 8)


@program
def flat_mapped():
    return numbers(4).flat_map(lambda x: Dataset.range(x).map(lambda y: y + 1))


@program
def interleaved():
    return numbers(5).interleave(lambda x: Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=2)


@program
def interleaved_in_parallel():
    return numbers(5).interleave(lambda x: Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=2,
                                 num_parallel_calls=2, deterministic=True)


@program
def batched():
    return numbers().batch(4).unbatch().batch(3, drop_remainder=True).prefetch(2)


@program
def batched_in_parallel():
    return numbers().batch(4, num_parallel_calls=2, deterministic=False)


@program
def padded():
    lengths = numbers(5).map(lambda n: (tf.fill([n], n), n))
    return lengths.padded_batch(2, padded_shapes=([None], [])).padded_batch(
        2, padded_shapes=([2, 5], [3]), padding_values=(tf.constant(-1, tf.int64), None), drop_remainder=True)


@program
def windows():
    return numbers().window(3, shift=2, stride=2).flat_map(lambda w: w.batch(3))


@program
def groups():
    return numbers().group_by_window(lambda x: x % 3, lambda key, group: group.batch(2), 2)


@program
def groups_of_sizes():
    return numbers().group_by_window(lambda x: x % 3, lambda key, group: group.batch(4), window_size_func=lambda key: key + 1)


@program
def buckets():
    lengths = Dataset.from_tensor_slices(tf.constant([1, 4, 2, 6, 3, 5, 1])).map(lambda n: tf.fill([n], n))
    return lengths.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 5], [2, 1, 2])


@program
def zipped():
    return Dataset.zip((numbers(), numbers(3).enumerate(start=5)))


@program
def scanned():
    return numbers(5).scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s * x))


@program
def unique():
    return numbers().map(lambda x: x % 4).unique().ignore_errors()


@program
def sampled():
    return Dataset.sample_from_datasets([numbers(), Dataset.range(100, 106)], weights=[0.3, 0.7], seed=4)


@program
def sampled_equally():
    return Dataset.sample_from_datasets([numbers(4), Dataset.range(100, 104)], seed=4, stop_on_empty_dataset=True)


@program
def chosen():
    return Dataset.choose_from_datasets([numbers(4), Dataset.range(100, 104)], numbers(2).repeat(3))


@program
def cached():
    return numbers(3).cache().repeat(2)


@program
def initialized():
    it = tf.data.make_initializable_iterator(numbers().batch(4), shared_name="s")
    it.get_next(name="n")


@program
def structured():
    it = tf.data.Iterator.from_structure((tf.int64, tf.float32), (tf.TensorShape([]), tf.TensorShape([2])))
    it.get_next()
    it.make_initializer(Dataset.zip((numbers(), Dataset.from_tensors(tf.constant([1.0, 2.0])).repeat())))


@program
def one_shot():
    tf.data.make_one_shot_iterator(numbers().map(lambda x: x + 1)).get_next()


@program
def text_lines():
    tf.data.TextLineDataset(tf.constant(["a", "b"]), compression_type="GZIP")


@program
def tf_records():
    tf.data.TFRecordDataset(tf.constant("a"))
    tf.data.TFRecordDataset(tf.constant(["a", "b"]), num_parallel_reads=2)


@program
def fixed_length_records():
    tf.data.FixedLengthRecordDataset(tf.constant(["a", "b"]), 4, 1, 2)


@program
def csv():
    tf.data.experimental.CsvDataset(tf.constant(["a"]), [tf.constant([], tf.int32), tf.constant("x")], header=True,
                                    select_cols=[0, 2])


@program
def list_files():
    Dataset.list_files(tf.constant("/tmp/*.txt"), seed=4)


@program
def parsed():
    features = {"b": tf.FixedLenFeature([2], tf.float32), "a": tf.VarLenFeature(tf.int64),
                "c": tf.FixedLenFeature([], tf.string, default_value="x")}
    Dataset.from_tensors(tf.constant(["a"])).apply(tf.data.experimental.parse_example_dataset(features, num_parallel_calls=2))


@program
def saved():
    numbers().save("/tmp/saved")


@program
def counted():
    numbers().cardinality()
    numbers(1).get_single_element()
    numbers().reduce(tf.constant(0, tf.int64), lambda s, x: s + x)


NUMBERED = re.compile(r"(__inference_.*|_make_dataset)_([A-Za-z0-9]+)$")


def renamed(functions):
    """Returns new names for functions: those of tf.function end in a number that grows with each."""
    traced = sorted((f.signature.name for f in functions if not f.signature.name.startswith("_make_dataset")),
                    key=lambda name: int(NUMBERED.match(name).group(2)))
    made = [f.signature.name for f in functions if f.signature.name.startswith("_make_dataset")]
    return {name: "%s_%d" % (NUMBERED.match(name).group(1), i) for i, name in enumerate(traced + made)}


def cleaned(node, names):
    node.attr.pop("_has_manual_control_dependencies", None)  # specific to TensorFlow 2
    for value in node.attr.values():
        if value.WhichOneof("value") == "func":
            value.func.name = names[value.func.name]
    return text_format.MessageToString(node, as_one_line=True)


def write_graph(graph, path):
    """Writes the nodes of the graph, and for each function a line for its signature, and its nodes as "function/node".

    Left out: the NoOp that joins a function's effects, which are its control outputs too, and the control edge from it.
    Captured tensors are arguments captured_0, captured_1, ...
    """
    definition = graph.as_graph_def()
    names = renamed(definition.library.function)
    with open(path, "w") as out:
        for node in definition.node:
            out.write("node { %s }\n" % cleaned(node, names))
        for function in sorted(definition.library.function, key=lambda f: names[f.signature.name]):
            captured = [a.name for a in function.signature.input_arg if not a.name.startswith("args_")]
            for node in function.node_def:
                if node.op == "NoOp":
                    continue
                inputs = ["captured_%d" % captured.index(i) if i in captured else i for i in node.input if i != "^NoOp"]
                del node.input[:]
                node.input.extend(inputs)
                node.name = names[function.signature.name] + "/" + node.name
                out.write("node { %s }\n" % cleaned(node, names))


def elements(dataset, limit=60):
    """Yields a line for each element of a data set."""
    following = tf.data.make_initializable_iterator(dataset)
    next_element = tf.nest.flatten(following.get_next())
    with tf.Session() as session:
        session.run(following.initializer)
        for _ in range(limit):
            try:
                values = session.run(next_element)
            except tf.errors.OutOfRangeError:
                yield "end"
                return
            yield " ; ".join(str(v.tolist() if hasattr(v, "tolist") else v) for v in values)


def main():
    tf.disable_eager_execution()
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
    os.makedirs(folder, exist_ok=True)
    lines = []
    for name, build in PROGRAMS.items():
        with tf.Graph().as_default() as graph:
            dataset = build()
            if name not in ELEMENTS_ONLY:
                write_graph(graph, os.path.join(folder, name + "_ref.pbtxt"))
            if dataset is not None:
                lines.append("# " + name)
                lines += elements(dataset)
    with open(os.path.join(folder, "dataset_elements.txt"), "w") as out:
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
