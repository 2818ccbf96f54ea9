"""Weir: TensorFlow's graphs, trained and run, without TensorFlow.

    import numpy as np
    import weir

    model = weir.load("export/1")                # a SavedModel of TensorFlow 1 or 2
    model(np.zeros([1, 4], "float32"))["y"]

    g = weir.Graph(seed=1)                       # a graph of TensorFlow's ops
    x = g.placeholder("float32", [None, 2], name="x")
    w = g.variable("w", [2, 1])
    loss = g.op("Mean", g.op("Square", g.op("MatMul", x, w) - 1.0), [0, 1])
    train = weir.Optimizer(g, "Adam", learning_rate=0.1).minimize(loss)
    with weir.Session(g) as session:
        session.initialize()
        for _ in range(100):
            value, _ = session.run([loss, train], {x: np.ones([8, 2], "float32")})

All errors are WeirErrors. Values are NumPy arrays; NumPy is imported when the first one is needed.
Threads may share graphs, sessions and models, and the interpreter is free while the library works.
"""

from .errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    LibraryError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
    WeirError,
)
from .graph import Graph, Operation, Tensor
from .optimizers import Optimizer
from .saved_model import Model, Signature, Spec, load
from .savers import Checkpoint, Saver, latest_checkpoint, verify_checkpoint
from .session import Session, Step
from .trace import Trace
from .variables import Variable

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "Checkpoint",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "Graph",
    "InternalError",
    "InvalidArgumentError",
    "LibraryError",
    "Model",
    "NotFoundError",
    "Operation",
    "Optimizer",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "Saver",
    "Session",
    "Signature",
    "Spec",
    "Step",
    "Tensor",
    "Trace",
    "UnavailableError",
    "UnimplementedError",
    "Variable",
    "WeirError",
    "latest_checkpoint",
    "load",
    "verify_checkpoint",
    "version",
]


def version() -> str:
    """Returns the version of Weir's library."""
    from ._library import lib

    return lib.weir_version().decode()
