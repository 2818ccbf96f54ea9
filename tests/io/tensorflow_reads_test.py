#!/usr/bin/env python3
"""TensorFlow reads checkpoints written by Weir. Skipped if TensorFlow is not installed.

usage: tensorflow_reads_test.py WRITE_CHECKPOINT   (the binary of write_checkpoint.cc)
"""

import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

try:
    import numpy as np
    import tensorflow as tf
except ImportError as error:
    print("SKIPPED: no TensorFlow to read with (%s)" % error)
    sys.exit(0)


def pattern(dtype, shape, seed):
    """The bytes of testing::PatternTensor."""
    count = int(np.prod(shape)) * dtype.itemsize
    if dtype == np.bool_:
        return (np.arange(count) % 2 == 1).reshape(shape)
    raw = ((31 * np.arange(count) + 17 * seed + 1) % 128).astype(np.uint8)
    return raw.view(dtype).reshape(shape)


def check(prefix, at_least):
    """Returns the number of incorrect tensors."""
    reader = tf.train.load_checkpoint(prefix)
    dtypes = reader.get_variable_to_dtype_map()
    faults = checked = 0
    for name, dtype in sorted(dtypes.items()):
        try:
            got = reader.get_tensor(name)
        except tf.errors.UnimplementedError:  # V1: the op reads more types than this interface
            got = tf.raw_ops.Restore(file_pattern=prefix, tensor_name=name, dt=dtype).numpy()
        except Exception as error:  # this interface does not support quantized types
            if "q" in dtype.name and "NumPy" in str(error):
                continue
            raise
        if name == "words":
            want = np.array([b"s5\0" * (37 * i % 200) for i in range(3)], dtype=object)
        elif name == "partitioned":
            want = pattern(np.dtype(np.float32), (7, 4), 3)
        else:
            want = pattern(np.dtype(dtype.as_numpy_dtype), (2, 3), dtype.as_datatype_enum)
        same = list(got) == list(want) if name == "words" else got.tobytes() == want.tobytes()
        checked += 1
        if not same or got.shape != want.shape:
            faults += 1
            print("%s: TensorFlow reads\n%s\nand not\n%s" % (name, got, want))
    print("%d tensors read by TensorFlow %s, %d faults" % (checked, tf.__version__, faults))
    return faults + max(0, at_least - checked)


def main():
    prefix = os.path.join(tempfile.mkdtemp(), "m")
    subprocess.run([sys.argv[1], prefix], check=True)
    return 1 if check(prefix, 15) + check(prefix + "_v1", 14) else 0


if __name__ == "__main__":
    sys.exit(main())
