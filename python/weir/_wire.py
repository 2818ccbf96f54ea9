"""A reader of protobuf's wire format, for the few messages that the package looks into."""

from __future__ import annotations


def _varint(data: bytes, at: int):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data: bytes):
    """Yields (number, value) of each field: an int, or the bytes of strings and messages."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            value = data[at : at + size]
            at += size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value = data[at : at + size]
            at += size
        else:
            raise ValueError("wire type %d" % kind)
        if at > end:
            raise ValueError("a message is cut off")
        yield tag >> 3, value


def signed(value: int) -> int:
    """Returns the int64 that a varint holds."""
    return value - (1 << 64) if value >= 1 << 63 else value


def first(data: bytes, number: int, default=None):
    """Returns the last value of a field, which is its value; the default if it is absent."""
    for found, value in fields(data):
        if found == number:
            default = value
    return default


def mapping(data: bytes, number: int) -> dict:
    """Returns a map field with strings as keys."""
    out = {}
    for found, entry in fields(data):
        if found == number:
            out[first(entry, 1, b"").decode()] = first(entry, 2, b"")
    return out


def varint_field(number: int, value: int) -> bytes:
    """Returns a field with a number that is not negative."""
    out = bytearray()
    for rest in (number << 3, value):
        while rest >= 0x80:
            out.append(rest & 0x7F | 0x80)
            rest >>= 7
        out.append(rest)
    return bytes(out)


def shape(data: bytes):
    """Returns the dimensions of a TensorShapeProto, None for unknown ones; None: unknown rank."""
    dims = []
    for number, value in fields(data):
        if number == 3 and value:
            return None
        if number == 2:
            size = signed(first(value, 1, 0))
            dims.append(None if size < 0 else size)
    return tuple(dims)
