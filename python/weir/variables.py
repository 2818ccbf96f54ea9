"""Variables, and the items of collections."""

from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Sequence

from . import _build
from ._arrays import to_tensor
from ._attrs import dims_of
from ._library import COutput, bytes_of, call, fetch_list, options_text
from .dtypes import number_of
from .graph import Graph, Operation, Tensor


class Variable:
    """State that steps read and write, and sessions keep: each session has its own value.

    A Variable can be an input of an operation, where it is its value, and be fetched.

        w = weir.Variable(g, "w", [784, 10], initializer="glorot_uniform")
        b = weir.Variable(g, "b", initial_value=np.zeros(10, "float32"))

    Attributes:
      graph, op: the graph, and the operation that holds the storage.
    """

    weir_variable = True
    __array_ufunc__ = None

    def __init__(
        self,
        graph: Graph,
        name: str,
        shape: Optional[Sequence] = None,
        dtype: Any = "float32",
        initializer: str = "glorot_uniform",
        initial_value: Any = None,
        trainable: bool = True,
        collections: Optional[Sequence[str]] = None,
        use_resource: bool = True,
    ) -> None:
        """Adds a variable.

        Args:
          graph: where it is added.
          name: which no other variable has.
          shape, dtype: of its value, with `initializer`.
          initializer: "zeros", "ones", "constant value=0.1", "random_normal stddev=0.1 seed=7",
            "glorot_uniform", ...: see weir_new_variable in weir/c_api.h.
          initial_value: an array, a number or a Tensor, instead of shape, dtype and initializer.
          trainable: whether optimizers update it.
          collections: default: "variables", which savers save.
          use_resource: False for a reference variable as in TensorFlow 1.

        Raises:
          AlreadyExistsError: there is a variable of this name.
        """
        options = options_text(
            {"trainable": trainable, "use_resource": use_resource, "collections": collections}
        )
        start, label = (graph.pointer, bytes_of(name)), (options,)
        if initial_value is None:
            dims, rank = dims_of(shape if shape is not None else ())
            how = (number_of(dtype), dims, rank, bytes_of(initializer))
            pointer = call("weir_new_variable", *start, *how, *label)
        elif _build.tensor_of(initial_value) is not None:
            value = _build.output(initial_value)
            pointer = call("weir_new_variable_from_output", *start, ctypes.byref(value), *label)
        else:
            tensor = to_tensor(initial_value)
            pointer = call("weir_new_variable_from_tensor", *start, tensor.pointer, *label)
        self._set(graph, pointer)

    def _set(self, graph: Graph, pointer: int) -> None:
        self.graph = graph
        self.op = Operation(graph, pointer)
        self._value: Optional[Tensor] = None

    @classmethod
    def from_operation(cls, graph: Graph, pointer: int) -> "Variable":
        """Returns the variable with this storage, a TF_Operation*."""
        self = cls.__new__(cls)
        self._set(graph, pointer)
        return self

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def value(self) -> Tensor:
        """The value as a tensor."""
        if self._value is None:
            read = COutput()
            call("weir_variable_value", self.graph.pointer, self.op.pointer, ctypes.byref(read))
            self._value = Tensor(Operation(self.graph, read.oper), read.index)
        return self._value

    @property
    def dtype(self) -> str:
        return self.value.dtype

    @property
    def shape(self) -> Optional[tuple]:
        return self.value.shape

    @property
    def initializer(self) -> Operation:
        """The operation that assigns the initial value."""
        pointer = call("weir_variable_initializer", self.graph.pointer, self.op.pointer)
        return Operation(self.graph, pointer)

    def assign(self, value: Any) -> Tensor:
        """Adds an operation that assigns a value; its result is the new value."""
        return self._write("weir_variable_assign", value)

    def assign_add(self, delta: Any) -> Tensor:
        """Adds an operation that adds to the value; its result is the new value."""
        return self._write("weir_variable_assign_add", delta)

    def assign_sub(self, delta: Any) -> Tensor:
        """Adds an operation that subtracts from the value; its result is the new value."""
        return self._write("weir_variable_assign_sub", delta)

    def _write(self, function: str, value: Any) -> Tensor:
        if _build.tensor_of(value) is None:
            value = _build.constant(
                self.graph, value, self.value.dtype_number, self.name + "/value"
            )
        source, result = _build.output(value), COutput()
        call(
            function,
            self.graph.pointer,
            self.op.pointer,
            ctypes.byref(source),
            ctypes.byref(result),
        )
        return Tensor(Operation(self.graph, result.oper), result.index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variable) and other.op == self.op

    def __hash__(self) -> int:
        return hash(self.op)

    def __repr__(self) -> str:
        return "<weir.Variable %s shape=%s dtype=%s>" % (self.name, self.shape, self.dtype)


_build.add_operators(Variable)


def operations_array(variables: Optional[Sequence[Variable]]):
    """Returns the storage of variables as a C array, and its length. None: null and 0."""
    if variables is None:
        return None, 0
    items = [each.op.pointer for each in variables]
    return (ctypes.c_void_p * len(items))(*items), len(items)


def variables_of(graph: Graph, collection: str) -> List[Variable]:
    """Implements Graph.variables."""
    key = bytes_of(collection)
    count = call("weir_variables", graph.pointer, key, None, 0)
    found = (ctypes.c_void_p * count)()
    count = min(count, call("weir_variables", graph.pointer, key, found, count))
    return [Variable.from_operation(graph, each) for each in found[:count] if each]


def collection_items(graph: Graph, key: str) -> List:
    """Implements Graph.collection."""
    data = bytes_of(key)
    names = fetch_list("weir_collection_names", graph.pointer, data)
    items = (COutput * len(names))()
    call("weir_collection_items", graph.pointer, data, items, len(names))
    storage = {each.name + ":0": each for each in variables_of(graph, key)}
    out = []
    for name, item in zip(names, items):
        if not item.oper:
            out.append(name)
        elif item.index < 0:
            out.append(Operation(graph, item.oper))
        else:
            tensor = Tensor(Operation(graph, item.oper), item.index)
            out.append(storage[name] if name in storage and tensor.name != name else tensor)
    return out


def add_to_collection(graph: Graph, key: str, item: Any) -> None:
    """Implements Graph.add_to_collection."""
    if isinstance(item, Variable):
        call("weir_collection_add_variable", graph.pointer, bytes_of(key), item.op.pointer)
    elif isinstance(item, Operation):
        call("weir_collection_add_operation", graph.pointer, bytes_of(key), item.pointer)
    else:
        tensor = _build.output(item)
        call("weir_collection_add_tensor", graph.pointer, bytes_of(key), ctypes.byref(tensor))
