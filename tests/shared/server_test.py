#!/usr/bin/env python3
"""TF_NewServer starts a server of libweir_server.so, and says which package it needs without it.
  server_test.py LIBTENSORFLOW LIBWEIR_SERVER
"""

import ctypes
import os
import shutil
import socket
import subprocess
import sys
import tempfile

UNIMPLEMENTED = 12


def field(number, value):
    """A field of a serialized message: bytes, or a message."""
    return bytes([number << 3 | 2, len(value)]) + value


# ServerDef { cluster { job { name tasks { 0: address } } } job_name protocol }
TASK = b"\x08\x00" + field(2, b"localhost:0")
CLUSTER = field(1, field(1, b"local") + field(2, TASK))
SERVER_DEF = field(1, CLUSTER) + field(2, b"local") + field(5, b"grpc")


def call(library, name, result, *args):
    function = getattr(library, name)
    function.restype = result
    return function(*args)


def serve(path, has_server):
    library, pointer = ctypes.CDLL(path), ctypes.c_void_p
    status = pointer(call(library, "TF_NewStatus", pointer))
    server = call(library, "TF_NewServer", pointer, SERVER_DEF, ctypes.c_size_t(len(SERVER_DEF)), status)
    code = call(library, "TF_GetCode", ctypes.c_int, status)
    message = call(library, "TF_Message", ctypes.c_char_p, status).decode()
    if not has_server:
        assert server is None and code == UNIMPLEMENTED and "libweir-server" in message, (code, message)
        return
    assert code == 0, message
    server = pointer(server)
    target = call(library, "TF_ServerTarget", ctypes.c_char_p, server).decode()
    host, port = target.removeprefix("grpc://").split(":")
    call(library, "TF_ServerStart", None, server, status)
    socket.create_connection((host, int(port)), timeout=30).close()
    call(library, "TF_ServerStop", None, server, status)
    call(library, "TF_ServerJoin", None, server, status)
    assert call(library, "TF_GetCode", ctypes.c_int, status) == 0
    call(library, "TF_DeleteServer", None, server)


def main():
    if len(sys.argv) == 3 and sys.argv[2] in ("found", "missing"):
        return serve(sys.argv[1], sys.argv[2] == "found")
    with tempfile.TemporaryDirectory() as folder:
        for word, sources in (("missing", sys.argv[1:2]), ("found", sys.argv[1:])):
            os.mkdir(os.path.join(folder, word))
            for source in sources:  # the library looks for the other one beside itself
                shutil.copy(source, os.path.join(folder, word))
            library = os.path.join(folder, word, os.path.basename(sys.argv[1]))
            subprocess.run([sys.executable, os.path.abspath(__file__), library, word], check=True,
                           timeout=100)


if __name__ == "__main__":
    main()
