"""Writes event files without Weir or TensorFlow: records with masked CRC-32C checksums that hold
Event messages, encoded by hand."""

import struct


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc_table()


def _masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data):
    """Returns a record of a TFRecord file."""
    length = struct.pack("<Q", len(data))
    return (length + struct.pack("<I", _masked_crc(length)) + data +
            struct.pack("<I", _masked_crc(data)))


def _varint(number):
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _bytes_field(number, data):
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def scalar(tag, step, wall_time, value):
    """Returns a record with one scalar: Event{wall_time, step, summary{value{tag, simple_value}}}."""
    summary_value = _bytes_field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)
    return record(b"\x09" + struct.pack("<d", wall_time) + b"\x10" + _varint(step) +
                  _bytes_field(5, _bytes_field(1, summary_value)))
