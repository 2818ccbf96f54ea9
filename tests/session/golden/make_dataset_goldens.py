#!/usr/bin/env python3
"""Writes datasets/ with TensorFlow: datasets that were saved, and a cache file.

    make_dataset_goldens.py DIRECTORY
"""

import glob
import os
import shutil
import sys

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'

import tensorflow as tf


def main():
    out = sys.argv[1]
    elements = tf.data.Dataset.from_tensor_slices(
        (tf.range(5, dtype=tf.int64), ['a', 'bb', 'ccc', '', 'e'],
         tf.reshape(tf.range(10, dtype=tf.float32), [5, 2])))
    for name, compression in [('saved', None), ('saved_gzip', 'GZIP'), ('saved_snappy', 'SNAPPY')]:
        shutil.rmtree(f'{out}/{name}', ignore_errors=True)
        elements.save(f'{out}/{name}', compression=compression,
                      shard_func=lambda i, *rest: i % 2)
        os.remove(f'{out}/{name}/dataset_spec.pb')  # for Python only
    for path in glob.glob(f'{out}/cache*'):
        os.remove(path)
    list(elements.cache(f'{out}/cache'))


if __name__ == '__main__':
    main()
