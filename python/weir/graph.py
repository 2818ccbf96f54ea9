"""Graphs, and the operations and tensors in them."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from . import _build
from ._library import (
    Buffer,
    CInput,
    COutput,
    bytes_of,
    call,
    check,
    fetch_bytes,
    fetch_list,
    lib,
    options_text,
    status,
    text_of,
)
from .dtypes import name_of_number, number_of


class Operation:
    """A node of a graph."""

    __slots__ = ("graph", "pointer")

    def __init__(self, graph: "Graph", pointer: int) -> None:
        self.graph = graph
        self.pointer = pointer

    @property
    def name(self) -> str:
        """The unique name: "layer/MatMul"."""
        return text_of(lib.TF_OperationName(self.pointer))

    @property
    def type(self) -> str:
        """The op: "MatMul"."""
        return text_of(lib.TF_OperationOpType(self.pointer))

    @property
    def device(self) -> str:
        """The device that it requests; "" for none."""
        return text_of(lib.TF_OperationDevice(self.pointer))

    @property
    def inputs(self) -> List["Tensor"]:
        out = []
        for i in range(lib.TF_OperationNumInputs(self.pointer)):
            source = lib.TF_OperationInput(CInput(self.pointer, i))
            out.append(Tensor(Operation(self.graph, source.oper), source.index))
        return out

    @property
    def outputs(self) -> List["Tensor"]:
        return [Tensor(self, i) for i in range(lib.TF_OperationNumOutputs(self.pointer))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operation) and other.pointer == self.pointer

    def __hash__(self) -> int:
        return hash(self.pointer)

    def __repr__(self) -> str:
        return "<weir.Operation %s: %s>" % (self.name, self.type)


class Tensor:
    """An output of an operation. Arithmetic with it adds operations to its graph."""

    __slots__ = ("op", "index")
    __array_ufunc__ = None  # NumPy leaves `array + tensor` to the tensor

    def __init__(self, op: Operation, index: int) -> None:
        self.op = op
        self.index = index

    @property
    def graph(self) -> "Graph":
        return self.op.graph

    @property
    def name(self) -> str:
        """ "layer/MatMul:0"."""
        return "%s:%d" % (self.op.name, self.index)

    @property
    def dtype(self) -> str:
        """The element type: "float32"."""
        return name_of_number(self.dtype_number)

    @property
    def dtype_number(self) -> int:
        """TensorFlow's number of the element type, without the mark of references."""
        number = lib.TF_OperationOutputType(self.c)
        return number - 100 if number > 100 else number

    @property
    def shape(self) -> Optional[tuple]:
        """What is known of the shape: None for an unknown dimension or rank."""
        rank = call("TF_GraphGetTensorNumDims", self.graph.pointer, self.c)
        if rank < 0:
            return None
        dims = (ctypes.c_int64 * rank)()
        call("TF_GraphGetTensorShape", self.graph.pointer, self.c, dims, rank)
        return tuple(None if size < 0 else size for size in dims)

    @property
    def c(self) -> COutput:
        return COutput(self.op.pointer, self.index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and other.op == self.op and other.index == self.index

    def __hash__(self) -> int:
        return hash((self.op.pointer, self.index))

    def __repr__(self) -> str:
        return "<weir.Tensor %s shape=%s dtype=%s>" % (self.name, self.shape, self.dtype)

    def __bool__(self) -> bool:
        raise TypeError("a tensor has no value until a session runs it")

    __iter__ = None


_build.add_operators(Tensor)


class Graph:
    """A graph, which operations are added to. Threads may use it at the same time.

    g = weir.Graph()
    x = g.placeholder("float32", [None, 2], name="x")
    w = g.variable("w", [2, 1], initializer="glorot_uniform")
    y = g.op("MatMul", x, w, name="y")
    """

    def __init__(self, seed: Optional[int] = None) -> None:
        """Makes an empty graph. With a seed, random initializers have the same values each run."""
        self._pointer: Any = None  # if the library is not found
        self._pointer = lib.TF_NewGraph()
        self._scope = ""
        if seed is not None:
            lib.weir_graph_set_seed(self._pointer, seed)

    def __del__(self) -> None:
        try:
            if self._pointer is not None:
                lib.TF_DeleteGraph(self._pointer)
        except (AttributeError, TypeError):
            pass  # the interpreter ends

    @property
    def pointer(self) -> int:
        """The TF_Graph*, for calls of the C API."""
        return self._pointer

    # ---- building

    def op(
        self,
        type: str,
        *inputs: Any,
        name: Optional[str] = None,
        device: Optional[str] = None,
        control_inputs: Iterable = (),
        **attrs: Any,
    ) -> Any:
        """Adds an operation.

        Args:
          type: the op, such as "MatMul".
          inputs: one for each argument of the op's signature: a Tensor, a Variable, or a value,
            which becomes a constant of the type that the op needs; a list of these for a list.
          name: inside the name scope, with "_1" and so on if it exists. Default: the op.
          device: such as "/GPU:0".
          control_inputs: operations and tensors that run before it.
          attrs: of the op: numbers, strings, lists; shapes as lists with None for unknown sizes;
            types as "float32" or NumPy's; arrays; names of functions.

        Returns:
          The Tensor; a list of Tensors if the op has several outputs; the Operation if none.

        Raises:
          InvalidArgumentError: types, shapes or attributes are wrong.
          NotFoundError: there is no such op.
        """
        made = _build.add(self, type, inputs, name, device, control_inputs, attrs)
        if len(made.outputs) == 1:
            return made.outputs[0]
        return made.outputs or made

    def placeholder(
        self, dtype: Any = "float32", shape: Optional[Sequence] = None, name: str = "Placeholder"
    ) -> Tensor:
        """Adds a tensor to feed. A shape of None is any, a size of None any size."""
        return self.op("Placeholder", name=name, dtype=dtype, shape=shape)

    def constant(self, value: Any, dtype: Any = None, name: str = "Const") -> Tensor:
        """Adds a constant. Default types: float32, int32 or int64, bool, string, an array's own."""
        return _build.constant(self, value, None if dtype is None else number_of(dtype), name)

    @contextlib.contextmanager
    def name_scope(self, name: str):
        """Names what is built in the `with` block "NAME/...", made unique."""
        outer = self._scope
        self._scope = self.unique_name(name) + "/"
        try:
            yield self._scope
        finally:
            self._scope = outer

    def unique_name(self, name: str) -> str:
        """Returns the name inside the scope, with a number if there is an operation of it."""
        return _build.unique_name(self, self._scope + name)

    def group(self, *inputs: Any, name: str = "group") -> Operation:
        """Adds an operation that does nothing after others have run."""
        return self.op("NoOp", name=name, control_inputs=inputs)

    def gradients(self, ys: Any, xs: Any) -> List[Optional[Tensor]]:
        """Adds the gradients of the sum of `ys` by each of `xs`; None where there is none."""
        y, x = _build.outputs(ys), _build.outputs(xs, handles=True)
        found = (COutput * len(x))()
        of = status()
        lib.TF_AddGradients(self.pointer, y, len(y), x, len(x), None, of, found)
        check(of)
        return [
            Tensor(Operation(self, each.oper), each.index) if each.oper else None for each in found
        ]

    # ---- finding

    def operation(self, name: str) -> Operation:
        """Returns an operation by name. NotFoundError if there is none."""
        pointer = lib.TF_GraphOperationByName(self.pointer, bytes_of(name))
        if not pointer:
            raise _build.no_such("operation", name)
        return Operation(self, pointer)

    def tensor(self, name: str) -> Tensor:
        """Returns a tensor by name: "x:0", or "x" for the first output."""
        op_name, _, index = name.partition(":")
        op = self.operation(op_name)
        if not (index or "0").isdigit() or int(index or 0) >= len(op.outputs):
            raise _build.no_such("tensor", name)
        return Tensor(op, int(index or 0))

    def operations(self) -> List[Operation]:
        """Returns all operations in the order in which they were added."""
        position = ctypes.c_size_t(0)
        out: List[Operation] = []
        while True:
            pointer = lib.TF_GraphNextOperation(self.pointer, ctypes.byref(position))
            if not pointer:
                return out
            out.append(Operation(self, pointer))

    # ---- messages and files

    def import_graph_def(
        self, graph_def: Union[bytes, str], prefix: str = "", inputs: Optional[Dict] = None
    ) -> None:
        """Adds the nodes of a serialized GraphDef, or of the file of that path.

        `prefix` and a slash precede their names; `inputs` replaces tensors of it ("x:0") by those
        of this graph.
        """
        with Buffer(_build.contents(graph_def)) as data:
            options = lib.TF_NewImportGraphDefOptions()
            try:
                lib.TF_ImportGraphDefOptionsSetPrefix(options, bytes_of(prefix))
                for name, tensor in (inputs or {}).items():
                    op, _, index = name.partition(":")
                    lib.TF_ImportGraphDefOptionsAddInputMapping(
                        options, bytes_of(op), int(index or 0), _build.output(tensor)
                    )
                call("TF_GraphImportGraphDef", self.pointer, data.pointer, options)
            finally:
                lib.TF_DeleteImportGraphDefOptions(options)

    def graph_def(self) -> bytes:
        """Returns the graph as a serialized GraphDef."""
        return fetch_bytes("TF_GraphToGraphDef", self.pointer)

    def import_meta_graph(
        self, meta_graph: Union[bytes, str], scope: str = "", clear_devices: bool = False
    ):
        """Adds the nodes and collections of a serialized MetaGraphDef, or of the file of that path.

        Returns its Saver, or None.
        """
        from .savers import Saver

        options = options_text({"import_scope": scope or None, "clear_devices": clear_devices})
        with Buffer(_build.contents(meta_graph)) as data, Buffer() as saver_def:
            call(
                "weir_graph_import_meta_graph",
                self.pointer,
                data.pointer,
                options,
                saver_def.pointer,
            )
            return Saver.from_def(self, saver_def.bytes()) if saver_def.bytes() else None

    def meta_graph(
        self, saver=None, tags: Sequence[str] = (), clear_devices: bool = False
    ) -> bytes:
        """Returns the graph with its collections as a serialized MetaGraphDef."""
        options = options_text({"tags": tags or None, "clear_devices": clear_devices})
        pointer = None if saver is None else saver.pointer
        return fetch_bytes("weir_graph_export_meta_graph", self.pointer, pointer, options)

    # ---- collections and variables

    def collections(self) -> List[str]:
        """Returns the keys of the collections."""
        return fetch_list("weir_graph_collections", self.pointer)

    def collection(self, key: str) -> List:
        """Returns the items of a collection: Variables, Tensors, Operations, or texts."""
        from .variables import collection_items

        return collection_items(self, key)

    def add_to_collection(self, key: str, item: Any) -> None:
        """Adds a Tensor, an Operation or a Variable to a collection."""
        from .variables import add_to_collection

        add_to_collection(self, key, item)

    def variable(
        self, name: str, shape: Optional[Sequence] = None, dtype: Any = "float32", **options
    ):
        """Adds a variable; see weir.Variable."""
        from .variables import Variable

        return Variable(self, name, shape, dtype, **options)

    def variables(self, collection: str = "variables") -> List:
        """Returns the variables of a collection."""
        from .variables import variables_of

        return variables_of(self, collection)

    def initializer(self, collection: str = "variables") -> Operation:
        """Adds an operation that initializes the variables of a collection."""
        pointer = call("weir_variables_initializer", self.pointer, bytes_of(collection))
        return Operation(self, pointer)

    def tables_initializer(self) -> Operation:
        """Adds an operation that fills the lookup tables."""
        return Operation(self, call("weir_tables_initializer", self.pointer))

    def global_step(self):
        """Returns the variable that counts training steps, made on the first call."""
        from .variables import Variable

        return Variable.from_operation(self, call("weir_global_step", self.pointer))
