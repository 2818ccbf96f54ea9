"""Sessions, which run graphs."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Sequence

from . import _build
from ._arrays import TensorHandle, shared, to_array, to_tensor
from ._library import Buffer, COutput, bytes_of, call, fetch_bytes, fetch_list, lib, options_text
from ._wire import varint_field
from .graph import Graph, Operation, Tensor


class Session:
    """Runs parts of a graph, and has the values of its variables.

        with weir.Session(g) as session:
            session.initialize()
            y_value = session.run(y, {x: array})

    Threads may run steps at the same time: the interpreter is free while a step runs.
    """

    def __init__(
        self,
        graph: Graph,
        threads: int = 0,
        target: str = "",
        timeout: Optional[float] = None,
        soft_placement: bool = True,
    ) -> None:
        """Makes a session.

        Args:
          graph: which may grow later.
          threads: that kernels use; 0: one for each core.
          target: a server, "grpc://host:port"; "": this process.
          timeout: the time limit of steps in seconds; None: none.
          soft_placement: whether an op that the requested device does not have runs on another.
        """
        self.graph = graph
        self._pointer = None
        config = varint_field(2, threads) + varint_field(7, int(soft_placement))
        if timeout is not None:
            config += varint_field(11, max(1, int(timeout * 1000)))
        options = lib.TF_NewSessionOptions()
        try:
            call("TF_SetConfig", options, config, len(config))
            lib.TF_SetTarget(options, bytes_of(target))
            self._pointer = call("TF_NewSession", graph.pointer, options)
        finally:
            lib.TF_DeleteSessionOptions(options)

    @classmethod
    def _of(cls, graph: Graph, pointer: int) -> "Session":
        self = cls.__new__(cls)
        self.graph, self._pointer = graph, pointer
        return self

    @property
    def pointer(self) -> int:
        """The TF_Session*, for calls of the C API."""
        if self._pointer is None:
            raise ValueError("the session is closed")
        return self._pointer

    def close(self) -> None:
        """Ends running steps, and frees the variables. A session also closes when it is deleted."""
        pointer, self._pointer = self._pointer, None
        if pointer is not None:
            call("TF_CloseSession", pointer)
            call("TF_DeleteSession", pointer)
            shared.sweep()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except (AttributeError, TypeError):
            pass  # the interpreter ends

    def run(
        self,
        fetches: Any,
        feeds: Optional[Dict] = None,
        targets: Any = (),
        timeout: Optional[float] = None,
    ) -> Any:
        """Runs one step.

        Args:
          fetches: a Tensor, a Variable, an Operation, or the name of one ("y:0", "train"); or a
            list, a tuple or a dict of these.
          feeds: the values of tensors, by Tensor or name. An array has the tensor's type; Python's
            numbers and lists are converted. Large arrays are not copied: do not change one while
            a step runs or an array that was fetched may share it.
          targets: an operation, or several, to run as well.
          timeout: in seconds.

        Returns:
          The values in the form of `fetches`: NumPy arrays, and None for operations. Arrays are
          read-only, because they may share memory with variables; `array.copy()` is not.

        Raises:
          WeirError: one of its classes; the message has the op, the node and the shapes.
        """
        options = None
        if timeout is not None:
            options = varint_field(2, max(1, int(timeout * 1000)))
        return Step(self, fetches, list(feeds or ()), targets)._run(
            list((feeds or {}).values()), options
        )

    def step(self, fetches: Any, feeds: Sequence = (), targets: Any = ()) -> "Step":
        """Returns a step to call repeatedly, with the values of the feeds in order.

        predict = session.step(y, [x])
        predict(array)
        """
        return Step(self, fetches, list(feeds), targets)

    def trace(self, fetches: Any, feeds: Optional[Dict] = None, targets: Any = ()):
        """Runs one step as `run` does. Returns the values, and a Trace of its nodes."""
        from .trace import Trace

        with Buffer() as buffer:
            values = Step(self, fetches, list(feeds or ()), targets)._run(
                list((feeds or {}).values()), None, buffer
            )
            return values, Trace(buffer.text())

    def initialize(self) -> None:
        """Initializes all variables, global and local, and all lookup tables."""
        graph = self.graph
        self.run([], targets=[graph.initializer(), graph.initializer("local_variables")])
        self.run([], targets=[graph.tables_initializer()])

    def uninitialized(self) -> List[str]:
        """Returns the names of the variables that have no value."""
        return fetch_list("weir_uninitialized_variables", self.pointer)

    def export_saved_model(
        self,
        folder: str,
        signatures: Dict[str, Any],
        tags: Sequence[str] = ("serve",),
        init_op: Optional[Operation] = None,
        objects: bool = False,
        clear_devices: bool = False,
    ) -> None:
        """Writes a SavedModel with the present values of the variables.

        Args:
          folder: which does not exist, or is empty.
          signatures: by name, pairs of inputs and outputs, which are dicts of tensors:
            {"serving_default": ({"x": x}, {"y": y})}.
          tags: by which it is loaded.
          init_op: runs when it is loaded.
          objects: whether tf.saved_model.load of TensorFlow 2 finds variables to train.
          clear_devices: whether it leaves out the devices that operations request.
        """
        pairs = {}
        for name, (inputs, outputs) in signatures.items():
            for kind, tensors in (("inputs", inputs), ("outputs", outputs)):
                for argument, value in tensors.items():
                    tensor = self._tensor(value)
                    pairs["%s/%s/%s" % (name, kind, argument)] = tensor.name
        options = {
            "tags": tags,
            "init_op": None if init_op is None else init_op.name,
            "objects": objects,
            "clear_devices": clear_devices,
        }
        call(
            "weir_export_saved_model",
            self.pointer,
            bytes_of(folder),
            options_text(pairs),
            options_text(options),
        )

    def freeze(
        self, outputs: Any, targets: Sequence[str] = (), clear_devices: bool = False
    ) -> bytes:
        """Returns a serialized GraphDef that computes tensors, with the variables as constants.

        `targets` names operations to keep too, such as the initializer of a table.
        """
        items = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        array = _build.outputs([self._tensor(each) for each in items])
        options = options_text({"targets": targets or None, "clear_devices": clear_devices})
        return fetch_bytes("weir_freeze", self.pointer, array, len(array), options)

    def _tensor(self, value: Any) -> Tensor:
        if isinstance(value, str):
            return self.graph.tensor(value)
        tensor = _build.tensor_of(value)
        if tensor is None:
            raise TypeError("expected a Tensor or its name, got %r" % (value,))
        return tensor


class Step:
    """A step of a session with its feeds and fetches. Threads may call it at the same time."""

    def __init__(self, session: Session, fetches: Any, feeds: List, targets: Any) -> None:
        self.session = session
        self._feeds = [session._tensor(feed) for feed in feeds]
        self._feed_types = [tensor.dtype_number for tensor in self._feeds]
        self._inputs = _build.outputs(self._feeds)
        self._tensors: List[Tensor] = []
        self._operations: List[Operation] = []
        self._form = self._collect(fetches)
        for each in targets if isinstance(targets, (list, tuple)) else [targets]:
            self._collect(_operation(session, each))
        self._outputs = _build.outputs(self._tensors)
        self._targets = (ctypes.c_void_p * len(self._operations))(
            *(each.pointer for each in self._operations)
        )

    def __call__(self, *values: Any) -> Any:
        """Runs the step with the values of its feeds."""
        if len(values) != len(self._feeds):
            raise TypeError("the step has %d feeds, got %d" % (len(self._feeds), len(values)))
        return self._run(list(values), None)

    def _collect(self, fetch: Any) -> Any:
        """Adds what a fetch needs. Returns its form: a function of the fetched values."""
        if isinstance(fetch, dict):
            parts = {key: self._collect(each) for key, each in fetch.items()}
            return lambda values: {key: part(values) for key, part in parts.items()}
        if isinstance(fetch, (list, tuple)):
            items, kind = [self._collect(each) for each in fetch], type(fetch)
            if hasattr(fetch, "_fields"):
                return lambda values: kind(*(item(values) for item in items))
            return lambda values: kind(item(values) for item in items)
        if isinstance(fetch, str):
            graph = self.session.graph
            fetch = graph.tensor(fetch) if ":" in fetch else graph.operation(fetch)
            if isinstance(fetch, Operation) and len(fetch.outputs) == 1:
                fetch = fetch.outputs[0]
        if isinstance(fetch, Operation):
            self._operations.append(fetch)
            return lambda values: None
        index = len(self._tensors)
        self._tensors.append(self.session._tensor(fetch))
        return lambda values: values[index]

    def _tensors_of(self, values: List) -> List[TensorHandle]:
        handles = []
        for tensor, dtype, value in zip(self._feeds, self._feed_types, values):
            try:
                handles.append(to_tensor(value, dtype))
            except TypeError as error:
                raise TypeError("feed of %s: %s" % (tensor.name, error)) from None
        return handles

    def _run(self, values: List, options: Optional[bytes], trace: Optional[Buffer] = None) -> Any:
        handles = self._tensors_of(values)
        inputs = (ctypes.c_void_p * len(handles))(*(each.pointer for each in handles))
        fetched = (ctypes.c_size_t * len(self._tensors))()  # pointers
        step = (
            self._inputs,
            inputs,
            len(handles),
            self._outputs,
            fetched,
            len(fetched),
            self._targets,
            len(self._targets),
        )
        pointer = self.session.pointer
        if trace is not None:
            call("weir_session_run_traced", pointer, *step, trace.pointer)
        elif options is None:
            call("TF_SessionRun", pointer, None, *step, None)
        else:
            with Buffer(options) as buffer:
                call("TF_SessionRun", pointer, buffer.pointer, *step, None)
        del handles
        shared.sweep()
        return self._form([to_array(each) for each in fetched])


def _operation(session: Session, target: Any) -> Operation:
    if isinstance(target, str):
        return session.graph.operation(target.partition(":")[0])
    if isinstance(target, Operation):
        return target
    return session._tensor(target).op
