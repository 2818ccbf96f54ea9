"""Tests in Python that compare with TensorFlow."""

def tensorflow_test(name, script = None, args = [], data = [], size = "medium"):
    """Runs a script with the Python that has TensorFlow; it says so and passes where none has.

    Args:
      name: the test's.
      script: NAME.py if it is not given.
      args: what the script is given.
      data: what it reads besides itself.
      size: as of any test.
    """
    script = script or name + ".py"
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tests:with_tensorflow.sh"],
        args = ["$(rootpath %s)" % script] + args,
        data = [script] + data,
        tags = ["local"],
    )
