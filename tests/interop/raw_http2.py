"""HTTP/2 frames written by hand: what clients send that gRPC's own library does not send."""

import socket
import struct

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
_INITIAL_WINDOW_SIZE = 4
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def headers(path):
    """Returns a block of literal headers, without compression, of a gRPC call."""
    fields = ((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
              ("te", "trailers"), ("content-type", "application/grpc"))
    block = b""
    for name, value in fields:
        for text in (name, value):
            assert len(text) < 127
            block += (b"\0" if text is name else b"") + bytes([len(text)]) + text.encode()
    return block


def message(contents, size=None):
    """Returns a message of gRPC; with `size`, one that claims to be of that size."""
    return struct.pack(">BI", 0, len(contents) if size is None else size) + contents


class Connection:
    """A connection after the preface. It answers pings whenever `answer` is called."""

    def __init__(self, port, window=65535, host="127.0.0.1"):
        self.socket = socket.create_connection((host, port), timeout=10)
        self.next_stream = 1
        self.received = b""
        self.send(_PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", _INITIAL_WINDOW_SIZE, window)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def call(self, path, body, end=False):
        """Opens a stream, sends these bytes of its body, and returns its number."""
        stream = self.next_stream
        self.next_stream += 2
        data = frame(HEADERS, END_HEADERS, stream, headers(path))
        for begin in range(0, len(body), 16384):
            data += frame(DATA, 0, stream, body[begin:begin + 16384])
        self.send(data + (frame(DATA, END_STREAM, stream) if end else b""))
        return stream

    def answer(self, seconds):
        """Reads frames for that long, acknowledges settings and pings, and returns the others' (kind, stream, payload)."""
        frames = []
        self.socket.settimeout(seconds)
        try:
            while True:
                while len(self.received) >= 9:
                    size = int.from_bytes(self.received[:3], "big")
                    if len(self.received) < 9 + size:
                        break
                    kind, flags, stream = struct.unpack(">BBI", self.received[3:9])
                    payload, self.received = self.received[9:9 + size], self.received[9 + size:]
                    if kind in (SETTINGS, PING) and not flags & ACK:
                        self.send(frame(kind, ACK, 0, payload if kind == PING else b""))
                    elif kind not in (SETTINGS, PING):
                        frames.append((kind, stream, payload))
                        if kind in (RST_STREAM, GOAWAY) or (kind == HEADERS and flags & END_STREAM):
                            return frames
                data = self.socket.recv(1 << 16)
                if not data:
                    return frames
                self.received += data
        except OSError:
            return frames
