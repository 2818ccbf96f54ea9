"""How operations are built: inputs converted, attributes set, names made unique."""

from __future__ import annotations

import os

from . import graph as _graph
from ._arrays import as_array
from ._attrs import set_attr
from ._library import COutput, bytes_of, call, lib
from .dtypes import name_of_number, number_of
from .errors import InvalidArgumentError, NotFoundError
from .op_defs import op_def


def no_such(kind: str, name: str) -> NotFoundError:
    return NotFoundError("the graph has no %s '%s'" % (kind, name))


def contents(data) -> bytes:
    """Returns bytes themselves, and the contents of a file for its path."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    with open(data, "rb") as file:
        return file.read()


def tensor_of(value):
    """Returns the tensor that a Tensor, a Variable, or an operation with one output is; or None."""
    if isinstance(value, _graph.Tensor):
        return value
    if isinstance(value, _graph.Operation):
        if len(value.outputs) != 1:
            raise TypeError("%r has %d outputs" % (value, len(value.outputs)))
        return value.outputs[0]
    return getattr(value, "value", None) if hasattr(value, "weir_variable") else None


def output(value) -> COutput:
    tensor = tensor_of(value)
    if tensor is None:
        raise TypeError("expected a Tensor, got %r" % (value,))
    return tensor.c


def outputs(values, handles: bool = False):
    """Returns a C array of one tensor or several; with `handles`, of the storage of variables."""
    items = values if isinstance(values, (list, tuple)) else [values]
    made = []
    for each in items:
        if handles and hasattr(each, "weir_variable"):
            made.append(COutput(each.op.pointer, 0))
        else:
            made.append(output(each))
    return (COutput * len(made))(*made)


def unique_name(graph, name: str) -> str:
    candidate, i = name, 0
    while lib.TF_GraphOperationByName(graph.pointer, bytes_of(candidate)):
        i += 1
        candidate = "%s_%d" % (name, i)
    return candidate


def constant(graph, value, dtype, name: str):
    array = as_array(value, dtype)
    return add(
        graph,
        "Const",
        (),
        name,
        None,
        (),
        {"value": array, "dtype": name_of_number(dtype or number_of(array.dtype))},
    ).outputs[0]


def type_of(op: str, attr: str, value) -> int:
    """Returns the number of an element type that is the value of an attribute."""
    try:
        return number_of(value)
    except TypeError as error:
        raise TypeError("%s: attribute %s: %s" % (op, attr, error)) from None


class _Inputs:
    """The inputs of one operation, converted to tensors."""

    def __init__(self, graph, definition, name, inputs, attrs) -> None:
        self.graph, self.definition, self.name = graph, definition, name
        self.types = {}  # by attribute
        for attr, value in attrs.items():
            if attr in definition.attrs and definition.attrs[attr].type == "type":
                self.types[attr] = type_of(definition.name, attr, value)
        if len(inputs) != len(definition.inputs):
            raise InvalidArgumentError(
                "%s takes %d inputs (%s), got %d"
                % (
                    definition.name,
                    len(definition.inputs),
                    ", ".join(each.name for each in definition.inputs),
                    len(inputs),
                )
            )
        for argument, value in zip(definition.inputs, inputs):  # tensors say the types
            for item in value if argument.is_list and _is_list(value) else [value]:
                tensor = tensor_of(item)
                if tensor is not None and argument.type_attr:
                    self.types.setdefault(argument.type_attr, tensor.dtype_number)
        self.converted = [self._convert(*each) for each in zip(definition.inputs, inputs)]

    def _convert(self, argument, value):
        if not argument.is_list:
            return self._tensor(argument, value)
        if not _is_list(value):
            raise TypeError(
                "%s: argument %s is a list, got %r" % (self.definition.name, argument.name, value)
            )
        return [self._tensor(argument, each) for each in value]

    def _tensor(self, argument, value):
        tensor = tensor_of(value)
        if tensor is not None:
            return tensor
        dtype = argument.dtype or self.types.get(argument.type_attr)
        try:
            array = self._array(argument, value, dtype)
            made = constant(self.graph, array, dtype, self.name + "/" + argument.name)
        except TypeError as error:
            raise TypeError(
                "%s: argument %s: %s" % (self.definition.name, argument.name, error)
            ) from None
        if argument.type_attr:
            self.types.setdefault(argument.type_attr, made.dtype_number)
        return made

    def _array(self, argument, value, dtype):
        """Returns a value as an array; of the op's default type, such as int32 for axes, if it fits."""
        if dtype is None and argument.type_attr and not hasattr(value, "dtype"):
            default = self.definition.attrs[argument.type_attr].default_type
            try:
                return as_array(value, default or None)
            except TypeError:
                pass
        return as_array(value, dtype)


def _is_list(value) -> bool:
    return isinstance(value, (list, tuple))


def add(graph, op, inputs, name, device, control_inputs, attrs):
    """Implements Graph.op."""
    definition = op_def(graph.pointer, op)
    for attr in attrs:
        if attr not in definition.attrs and not attr.startswith("_"):
            known = ", ".join(sorted(definition.attrs)) or "none"
            raise InvalidArgumentError(
                "%s has no attribute '%s'; its attributes: %s" % (op, attr, known)
            )
    given = _Inputs(graph, definition, name or op, inputs, attrs)
    desc = lib.TF_NewOperation(graph.pointer, bytes_of(op), bytes_of(graph.unique_name(name or op)))
    try:
        _describe(desc, definition, given.converted, device, control_inputs, attrs)
    except BaseException:
        _discard(desc)
        raise
    return _graph.Operation(graph, call("TF_FinishOperation", desc))


def _describe(desc, definition, inputs, device, control_inputs, attrs) -> None:
    for value in inputs:
        if isinstance(value, list):
            items = outputs(value)
            lib.TF_AddInputList(desc, items, len(items))
        else:
            lib.TF_AddInput(desc, value.c)
    for each in control_inputs:
        lib.TF_AddControlInput(desc, _graph_operation(each).pointer)
    if device:
        lib.TF_SetDevice(desc, bytes_of(device))
    for name, value in attrs.items():
        attribute = definition.attrs.get(name)
        kind = attribute.type if attribute is not None else _kind_of(value)
        set_attr(desc, definition.name, name, kind, value)


def _graph_operation(value):
    if isinstance(value, _graph.Operation):
        return value
    op = getattr(value, "op", None)
    if not isinstance(op, _graph.Operation):
        raise TypeError("expected an Operation or a Tensor, got %r" % (value,))
    return op


def _kind_of(value) -> str:
    """The type of an attribute that the signature does not have, such as "_class"."""
    if isinstance(value, (list, tuple)):
        return "list(%s)" % _kind_of(value[0] if value else "")
    kinds = ((bool, "bool"), (int, "int"), (float, "float"))
    return next((kind for type_, kind in kinds if isinstance(value, type_)), "string")


def _discard(desc) -> None:
    """Deletes a description: finishing one with an unknown input is an error that does so."""
    lib.TF_AddInput(desc, COutput(None, 0))
    try:
        call("TF_FinishOperation", desc)
    except InvalidArgumentError:
        pass


_BINARY = {
    "add": "AddV2",
    "sub": "Sub",
    "mul": "Mul",
    "truediv": "RealDiv",
    "floordiv": "FloorDiv",
    "mod": "FloorMod",
    "pow": "Pow",
    "matmul": "MatMul",
}
_COMPARISONS = {"lt": "Less", "le": "LessEqual", "gt": "Greater", "ge": "GreaterEqual"}


def _binary(op):
    def forward(self, other):
        return self.graph.op(op, self, other)

    def reverse(self, other):
        return self.graph.op(op, other, self)

    return forward, reverse


def add_operators(cls) -> None:
    """Gives a class with a `graph`, whose objects are tensors, Python's operators."""
    for name, op in _BINARY.items():
        forward, reverse = _binary(op)
        setattr(cls, "__%s__" % name, forward)
        setattr(cls, "__r%s__" % name, reverse)
    for name, op in _COMPARISONS.items():
        setattr(cls, "__%s__" % name, _binary(op)[0])
    cls.__neg__ = lambda self: self.graph.op("Neg", self)
    cls.__abs__ = lambda self: self.graph.op("Abs", self)
