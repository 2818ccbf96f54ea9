"""Signatures of ops, from the library's OpDefs."""

from __future__ import annotations

from typing import Dict

from ._library import bytes_of, fetch_bytes
from ._wire import fields, first


class Argument:
    """An input or output of an op.

    Attributes:
      name: "a".
      dtype: TensorFlow's number of a fixed type; 0 if an attribute says it.
      type_attr: the attribute with the type, "T"; "" if there is none.
      number_attr: the attribute with the number of tensors of a list, "N"; "" if there is none.
      type_list_attr: the attribute with the types of a list; "" if there is none.
    """

    __slots__ = ("name", "dtype", "type_attr", "number_attr", "type_list_attr")

    def __init__(self, data: bytes) -> None:
        self.name = first(data, 1, b"").decode()
        self.dtype = first(data, 3, 0)
        self.type_attr = first(data, 4, b"").decode()
        self.number_attr = first(data, 5, b"").decode()
        self.type_list_attr = first(data, 6, b"").decode()

    @property
    def is_list(self) -> bool:
        return bool(self.number_attr or self.type_list_attr)


class Attribute:
    """An attribute of an op: its name, its type ("int", "list(shape)"), and its default.

    `default_type` is TensorFlow's number if the default is an element type; else 0.
    """

    __slots__ = ("name", "type", "has_default", "default_type")

    def __init__(self, data: bytes) -> None:
        self.name = first(data, 1, b"").decode()
        self.type = first(data, 2, b"").decode()
        default = first(data, 3)
        self.has_default = default is not None
        self.default_type = 0 if default is None else first(default, 6, 0)


class OpDef:
    """The signature of an op: `inputs`, `outputs` and `attrs` (by name)."""

    __slots__ = ("name", "inputs", "outputs", "attrs")

    def __init__(self, data: bytes) -> None:
        self.name, self.inputs, self.outputs, self.attrs = "", [], [], {}
        for number, value in fields(data):
            if number == 1:
                self.name = value.decode()
            elif number == 2:
                self.inputs.append(Argument(value))
            elif number == 3:
                self.outputs.append(Argument(value))
            elif number == 4:
                attribute = Attribute(value)
                self.attrs[attribute.name] = attribute


_known: Dict[str, OpDef] = {}


def op_def(graph: int, op: str) -> OpDef:
    """Returns the signature of an op. NotFoundError for an unknown one."""
    found = _known.get(op)
    if found is None:
        found = OpDef(fetch_bytes("TF_GraphGetOpDef", graph, bytes_of(op)))
        _known[op] = found
    return found
