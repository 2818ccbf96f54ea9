#!/usr/bin/env python3
"""Ops that take the name of a file, with names that lead out of a directory given by --allow-path.

No step may return what lies outside, or write there. Skipped without TensorFlow.
usage: file_escapes_test.py WEIR_SERVE
"""

import os
import sys

from hostile_clients_test import Checks, Server, raw, test_all, tf, v1  # exits if there is no TensorFlow

SECRETS = (b"a secret", b"a neighbor", b"hidden name")


def reading(path):
    """Yields the names of ops that read the file `path`, a scalar, with what they return."""
    def single(dataset):
        return raw.DatasetToSingleElement(dataset=dataset, output_types=[tf.string], output_shapes=[[]])

    def read(reader):
        queue = raw.FIFOQueueV2(component_types=[tf.string])
        with tf.control_dependencies([raw.QueueEnqueueV2(handle=queue, components=[path])]):
            return raw.ReaderReadV2(reader_handle=reader, queue_handle=queue).value
    nothing, zero = tf.constant(""), tf.constant(0, tf.int64)
    yield "ReadFile", raw.ReadFile(filename=path)
    yield "MatchingFiles", raw.MatchingFiles(pattern=path)
    yield "MatchingFiles, below", raw.MatchingFiles(pattern=tf.strings.join([path, "/*"]))
    yield "TextLineDataset", single(raw.TextLineDataset(filenames=[path], compression_type=nothing, buffer_size=zero))
    yield "TFRecordDataset", single(raw.TFRecordDataset(filenames=[path], compression_type=nothing, buffer_size=zero))
    yield "FixedLengthRecordDataset", single(raw.FixedLengthRecordDataset(
        filenames=[path], header_bytes=zero, record_bytes=tf.constant(5, tf.int64), footer_bytes=zero, buffer_size=zero))
    yield "MatchingFilesDataset", single(raw.MatchingFilesDataset(patterns=[path]))
    yield "RestoreV2", raw.RestoreV2(prefix=path, tensor_names=["w"], shape_and_slices=[""], dtypes=[tf.float32])[0]
    yield "Restore", raw.Restore(file_pattern=path, tensor_name="w", dt=tf.float32)
    table = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
    init = raw.InitializeTableFromTextFileV2(table_handle=table, filename=path, key_index=-2, value_index=-1)
    with tf.control_dependencies([init]):
        yield "InitializeTableFromTextFileV2", raw.LookupTableExportV2(table_handle=table, Tkeys=tf.string, Tvalues=tf.int64).keys
    yield "WholeFileReaderV2", read(raw.WholeFileReaderV2())
    yield "TextLineReaderV2", read(raw.TextLineReaderV2())
    yield "GenerateVocabRemapping", raw.GenerateVocabRemapping(
        new_vocab_file=path, old_vocab_file=path, new_vocab_offset=0, num_new_vocab=1).remapping
    yield "LoadAndRemapMatrix", raw.LoadAndRemapMatrix(
        ckpt_path=path, old_tensor_name="w", row_remapping=tf.constant([0], tf.int64),
        col_remapping=tf.zeros([0], tf.int64), initializing_values=tf.zeros([0]), num_rows=1, num_cols=1)


def writing(path, inside):
    """Yields the names of ops that write the file `path`, with the operations. `inside` may be written."""
    numbers = tf.constant([1.0])

    def summary(directory, suffix):
        writer = raw.SummaryWriter()
        create = raw.CreateSummaryFileWriter(writer=writer, logdir=directory, max_queue=1, flush_millis=1,
                                             filename_suffix=suffix)
        with tf.control_dependencies([create]):
            return raw.FlushSummaryWriter(writer=writer)
    yield "WriteFile", raw.WriteFile(filename=path, contents="x")
    yield "SaveV2", raw.SaveV2(prefix=path, tensor_names=["w"], shape_and_slices=[""], tensors=[numbers])
    yield "Save", raw.Save(filename=path, tensor_names=["w"], data=[numbers])
    yield "SaveSlices", raw.SaveSlices(filename=path, tensor_names=["w"], shapes_and_slices=[""], data=[numbers])
    yield "MergeV2Checkpoints, from", raw.MergeV2Checkpoints(checkpoint_prefixes=[path],
                                                             destination_prefix=inside + "/merged", delete_old_dirs=True)
    yield "MergeV2Checkpoints, to", raw.MergeV2Checkpoints(checkpoint_prefixes=[inside + "/none"], destination_prefix=path,
                                                           delete_old_dirs=True)
    yield "CreateSummaryFileWriter", summary(path, "")
    yield "CreateSummaryFileWriter, suffix", summary(inside + "/events", tf.strings.join(["/../", path]))
    cached = raw.CacheDataset(input_dataset=raw.RangeDataset(start=tf.constant(0, tf.int64), stop=tf.constant(1, tf.int64),
                                                             step=tf.constant(1, tf.int64), output_types=[tf.int64],
                                                             output_shapes=[[]]),
                              filename=path, output_types=[tf.int64], output_shapes=[[]])
    yield "CacheDataset", raw.DatasetToSingleElement(dataset=cached, output_types=[tf.int64], output_shapes=[[]])[0].op


def of_attributes(path):
    """Yields the names of ops whose attribute is the name of a file, with what they return."""
    yield "FixedUnigramCandidateSampler", raw.FixedUnigramCandidateSampler(
        true_classes=tf.constant([[1]], tf.int64), num_true=1, num_sampled=1, unique=True, range_max=5,
        vocab_file=path).sampled_candidates
    yield "ImmutableConst", raw.ImmutableConst(dtype=tf.uint8, shape=[5], memory_region_name=path)
    with tf.control_dependencies([raw.PrintV2(input="x", output_stream="file://" + path)]):
        yield "PrintV2", tf.constant(0)


class Test(Checks):
    def __init__(self, weir, root):
        super().__init__(weir, root)
        self.inside = os.path.join(root, "inside")
        secret = os.path.join(root, "secret")
        for directory in (self.inside + "/sub", self.inside + "2", secret + "/hidden name"):
            os.makedirs(directory)
        for path, text in ((secret + "/key", "a secret\n"), (self.inside + "/a.txt", "fine\n"),
                           (self.inside + "2/other", "a neighbor\n")):
            with open(path, "w") as f:
                f.write(text)
        for name, to in (("link", secret + "/key"), ("directory", secret), ("dangling", secret + "/new"),
                         ("relative", "../secret/key"), ("loop", "loop"), ("root", "/proc/self/root")):
            os.symlink(to, os.path.join(self.inside, name))
        os.mkfifo(self.inside + "/pipe")

    def paths(self):
        inside, secret = self.inside, os.path.join(self.root, "secret")
        return [secret, secret + "/key", inside + "/../secret/key", inside + "/sub/../../secret/key", inside + "/link",
                inside + "/directory/key", inside + "/directory", inside + "/dangling", inside + "/relative",
                inside + "2/other", inside + "/root" + secret + "/key", self.root + "//inside//..//secret//key",
                "/proc/self/environ", "/proc/self/root" + secret + "/key", "/proc/self/fd/3", "/dev/zero",
                inside + "/a.txt\0/../../secret/key", secret + "/key\0", "file://" + secret + "/key",
                inside + "/" + "x/../" * 900 + "../secret/key", "../secret/key", inside + "/none/../../secret/key",
                inside + "/loop", inside + "/pipe", "", "ram://x", "~/x"]

    def outside(self):
        """Everything that is not in the directory of the clients."""
        found = []
        for directory, _, files in os.walk(self.root):
            if directory != self.inside and not directory.startswith(self.inside + "/"):
                found += [(directory, name, open(os.path.join(directory, name), "rb").read()) for name in files]
        return sorted(found)

    @staticmethod
    def attempt(session, fetch, path, feed):
        """Returns what a step returns of what lies outside, or None."""
        try:
            got = session.run(fetch, feed, options=v1.RunOptions(timeout_in_ms=5000))
        except tf.errors.OpError:
            return None
        text = repr(got).replace(repr(path)[1:-1], "").encode()
        return next((secret for secret in SECRETS if secret in text), None)

    def test_no_name_leads_outside(self):
        before = self.outside()
        leaks, attempts = [], 0
        with Server(self.weir, "--allow-path", self.inside) as server:
            with tf.Graph().as_default():
                path = v1.placeholder(tf.string, [])
                ops = list(reading(path)) + list(writing(path, self.inside))
                with v1.Session(server.target) as session:
                    for name in self.paths():
                        for op, fetch in ops:
                            leaks += [(op, name)] * bool(self.attempt(session, fetch, name, {path: name}))
                            attempts += 1
            for name in self.paths():
                with tf.Graph().as_default():
                    ops = list(of_attributes(name))
                    with v1.Session(server.target) as session:
                        for op, fetch in ops:
                            leaks += [(op, name)] * bool(self.attempt(session, fetch, name, None))
                            attempts += 1
            self.expect(server.alive(), "the server lives")
        self.expect(not leaks, "%d attempts: %s" % (attempts, leaks))
        self.expect(self.outside() == before, "nothing was written outside")


if __name__ == "__main__":
    sys.exit(test_all(Test))
