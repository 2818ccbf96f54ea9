"""Element types. A type is named as NumPy names it, "float32", and is a string throughout."""

from __future__ import annotations

from typing import Any, Dict

NUMBERS = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "string": 7,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "qint8": 11,
    "quint8": 12,
    "qint32": 13,
    "bfloat16": 14,
    "qint16": 15,
    "quint16": 16,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "resource": 20,
    "variant": 21,
    "uint32": 22,
    "uint64": 23,
    "float8_e5m2": 24,
    "float8_e4m3fn": 25,
    "float8_e4m3fnuz": 26,
    "float8_e4m3b11fnuz": 27,
    "float8_e5m2fnuz": 28,
    "int4": 29,
    "uint4": 30,
}
NAMES = {number: name for name, number in NUMBERS.items()}
_ALIASES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "int": "int32",
    "str": "string",
    "bytes": "string",
    "object": "string",
    "bool_": "bool",
}
# Quantized integers have the elements of plain ones.
_PLAIN = {
    "qint8": "int8",
    "quint8": "uint8",
    "qint32": "int32",
    "qint16": "int16",
    "quint16": "uint16",
}
_ML_DTYPES = ("bfloat16", "float8_", "int4", "uint4")
_cached: Dict[int, Any] = {}


def name_of_number(number: int) -> str:
    """Returns the name of TensorFlow's number, without the mark of references."""
    number = number - 100 if number > 100 else number
    return NAMES.get(number, "dtype%d" % number)


def number_of(dtype) -> int:
    """Returns TensorFlow's number of a type: a name, a NumPy type, or bool, int, float or str."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
    if name is None:
        name = getattr(dtype, "__name__", str(dtype))
    name = _ALIASES.get(name, name)
    number = NUMBERS.get(name)
    if number is None and (name.startswith("str") or name.startswith("bytes")):
        number = NUMBERS["string"]  # NumPy's fixed-length strings
    if number is None:
        raise TypeError("unknown element type %r" % (dtype,))
    return number


def numpy_dtype(number: int):
    """Returns the NumPy type of a number. bfloat16 and smaller floats need the package ml_dtypes."""
    found = _cached.get(number)
    if found is None:
        import numpy

        name = name_of_number(number)
        name = _PLAIN.get(name, name)
        if name in ("resource", "variant"):
            raise TypeError("a tensor of %s has no NumPy array" % name)
        if name == "string":
            found = numpy.dtype(object)
        elif name.startswith(_ML_DTYPES):
            try:
                import ml_dtypes
            except ImportError:
                raise TypeError("arrays of %s need the package ml_dtypes" % name) from None
            found = numpy.dtype(getattr(ml_dtypes, name))
        else:
            found = numpy.dtype(name)
        _cached[number] = found
    return found
