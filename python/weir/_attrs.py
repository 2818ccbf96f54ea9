"""Attributes of operations from Python's values."""

from __future__ import annotations

import ctypes

from ._arrays import to_tensor
from ._library import bytes_of, call, lib
from .dtypes import number_of


def _set_string(desc, name, value):
    data = value if isinstance(value, bytes) else value.encode()
    lib.TF_SetAttrString(desc, name, data, len(data))


def _set_strings(desc, name, values):
    items = [v if isinstance(v, bytes) else v.encode() for v in values]
    pointers = (ctypes.c_char_p * len(items))(*items)
    lengths = (ctypes.c_size_t * len(items))(*map(len, items))
    lib.TF_SetAttrStringList(desc, name, pointers, lengths, len(items))


def _set_int(desc, name, value):
    lib.TF_SetAttrInt(desc, name, _int(value))


def _set_float(desc, name, value):
    lib.TF_SetAttrFloat(desc, name, float(value))


def _set_bool(desc, name, value):
    lib.TF_SetAttrBool(desc, name, 1 if value else 0)


def _set_type(desc, name, value):
    lib.TF_SetAttrType(desc, name, number_of(value))


def _set_func(desc, name, value):
    data = bytes_of(value)
    lib.TF_SetAttrFuncName(desc, name, data, len(data))


def _set_shape(desc, name, value):
    dims, rank = dims_of(value)
    lib.TF_SetAttrShape(desc, name, dims, rank)


def _set_shapes(desc, name, values):
    shapes = [dims_of(value) for value in values]
    pointers = (ctypes.c_void_p * len(shapes))(
        *(ctypes.cast(dims, ctypes.c_void_p).value if rank > 0 else None for dims, rank in shapes)
    )
    ranks = (ctypes.c_int * len(shapes))(*(rank for _, rank in shapes))
    lib.TF_SetAttrShapeList(desc, name, pointers, ranks, len(shapes))


def _set_tensor(desc, name, value):
    handle = to_tensor(value)  # lives until the call returns
    call("TF_SetAttrTensor", desc, name, handle.pointer)


def _list_setter(function, c_type, convert):
    def set_list(desc, name, values):
        items = [convert(value) for value in values]
        getattr(lib, function)(desc, name, (c_type * len(items))(*items), len(items))

    return set_list


def _int(value) -> int:
    if isinstance(value, float):
        raise TypeError("expected an integer, got %r" % value)
    return int(value)


def dims_of(shape):
    """Returns a shape as a C array and its rank: None is an unknown rank or dimension."""
    if shape is None:
        return None, -1
    dims = [-1 if size is None else _int(size) for size in shape]
    return (ctypes.c_int64 * len(dims))(*dims), len(dims)


_SETTERS = {
    "string": _set_string,
    "int": _set_int,
    "float": _set_float,
    "bool": _set_bool,
    "type": _set_type,
    "shape": _set_shape,
    "tensor": _set_tensor,
    "func": _set_func,
    "list(string)": _set_strings,
    "list(int)": _list_setter("TF_SetAttrIntList", ctypes.c_int64, _int),
    "list(float)": _list_setter("TF_SetAttrFloatList", ctypes.c_float, float),
    "list(bool)": _list_setter("TF_SetAttrBoolList", ctypes.c_ubyte, bool),
    "list(type)": _list_setter("TF_SetAttrTypeList", ctypes.c_int, number_of),
    "list(shape)": _set_shapes,
}


def set_attr(desc: int, op: str, name: str, kind: str, value) -> None:
    """Sets an attribute of a description, whose type is that of the signature."""
    setter = _SETTERS.get(kind)
    if setter is None:
        raise TypeError("%s: attribute %s of type %s cannot be set" % (op, name, kind))
    try:
        setter(desc, bytes_of(name), value)
    except (TypeError, AttributeError) as error:
        raise TypeError(
            "%s: attribute %s is of type %s, got %r (%s)" % (op, name, kind, value, error)
        ) from None
