"""The shared library: found, loaded on the first call, and its functions' types.

The library is, in this order: the file that the environment variable WEIR_LIBRARY names, the one
beside this module (as in a wheel), and libtensorflow.so.2 where the system's loader finds it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Dict, Optional

from .errors import LibraryError, error_of

NAME = "libtensorflow.so.2"


class CBuffer(ctypes.Structure):
    """A TF_Buffer."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("deallocator", ctypes.c_void_p),
    ]


class COutput(ctypes.Structure):
    """A TF_Output: an operation and the index of one of its outputs."""

    _fields_ = [("oper", ctypes.c_void_p), ("index", ctypes.c_int)]


class CInput(ctypes.Structure):
    """A TF_Input: an operation and the index of one of its inputs."""

    _fields_ = [("oper", ctypes.c_void_p), ("index", ctypes.c_int)]


_TYPES: Dict[str, Any] = {
    "p": ctypes.c_void_p,
    "s": ctypes.c_char_p,
    "i": ctypes.c_int,
    "l": ctypes.c_int64,
    "z": ctypes.c_size_t,
    "b": ctypes.c_ubyte,
    "f": ctypes.c_float,
    "o": COutput,
    "n": CInput,
    "v": None,
}

# The functions that this package calls: the type of the result, and those of the arguments.
_FUNCTIONS: Dict[str, str] = {
    "TF_NewStatus": "p",
    "TF_DeleteStatus": "v p",
    "TF_GetCode": "i p",
    "TF_Message": "s p",
    "TF_NewBuffer": "p",
    "TF_NewBufferFromString": "p sz",
    "TF_DeleteBuffer": "v p",
    "TF_NewTensor": "p ipipzpp",
    "TF_AllocateTensor": "p ipiz",
    "TF_DeleteTensor": "v p",
    "TF_TensorType": "i p",
    "TF_NumDims": "i p",
    "TF_Dim": "l pi",
    "TF_TensorData": "p p",
    "TF_TensorByteSize": "z p",
    "TF_StringInit": "v p",
    "TF_StringCopy": "v psz",
    "TF_StringDealloc": "v p",
    "TF_StringGetDataPointer": "p p",
    "TF_StringGetSize": "z p",
    "TF_NewGraph": "p",
    "TF_DeleteGraph": "v p",
    "TF_GraphOperationByName": "p ps",
    "TF_GraphNextOperation": "p pp",
    "TF_GraphToGraphDef": "v ppp",
    "TF_GraphGetOpDef": "v pspp",
    "TF_GraphGetTensorNumDims": "i pop",
    "TF_GraphGetTensorShape": "v popip",
    "TF_NewOperation": "p pss",
    "TF_SetDevice": "v ps",
    "TF_AddInput": "v po",
    "TF_AddInputList": "v ppi",
    "TF_AddControlInput": "v pp",
    "TF_SetAttrString": "v pssz",
    "TF_SetAttrStringList": "v psppi",
    "TF_SetAttrInt": "v psl",
    "TF_SetAttrIntList": "v pspi",
    "TF_SetAttrFloat": "v psf",
    "TF_SetAttrFloatList": "v pspi",
    "TF_SetAttrBool": "v psb",
    "TF_SetAttrBoolList": "v pspi",
    "TF_SetAttrType": "v psi",
    "TF_SetAttrTypeList": "v pspi",
    "TF_SetAttrFuncName": "v pssz",
    "TF_SetAttrShape": "v pspi",
    "TF_SetAttrShapeList": "v psppi",
    "TF_SetAttrTensor": "v pspp",
    "TF_FinishOperation": "p pp",
    "TF_OperationName": "s p",
    "TF_OperationOpType": "s p",
    "TF_OperationDevice": "s p",
    "TF_OperationNumOutputs": "i p",
    "TF_OperationOutputType": "i o",
    "TF_OperationNumInputs": "i p",
    "TF_OperationInput": "o n",
    "TF_NewImportGraphDefOptions": "p",
    "TF_DeleteImportGraphDefOptions": "v p",
    "TF_ImportGraphDefOptionsSetPrefix": "v ps",
    "TF_ImportGraphDefOptionsAddInputMapping": "v psio",
    "TF_GraphImportGraphDef": "v pppp",
    "TF_AddGradients": "v ppipippp",
    "TF_NewSessionOptions": "p",
    "TF_DeleteSessionOptions": "v p",
    "TF_SetConfig": "v pszp",
    "TF_SetTarget": "v ps",
    "TF_NewSession": "p ppp",
    "TF_LoadSessionFromSavedModel": "p ppspippp",
    "TF_CloseSession": "v pp",
    "TF_DeleteSession": "v pp",
    "TF_SessionRun": "v ppppippipipp",
    "TF_Version": "s",
    "weir_set_released": "v pzp",
    "weir_version": "s",
    "weir_graph_import_meta_graph": "v ppspp",
    "weir_graph_export_meta_graph": "v ppspp",
    "weir_graph_set_seed": "v pl",
    "weir_graph_collections": "v ppp",
    "weir_collection_names": "v pspp",
    "weir_collection_items": "i pspip",
    "weir_collection_add_tensor": "v pspp",
    "weir_collection_add_operation": "v pspp",
    "weir_collection_add_variable": "v pspp",
    "weir_collection_clear": "v psp",
    "weir_new_variable": "p psipissp",
    "weir_new_variable_from_tensor": "p pspsp",
    "weir_new_variable_from_output": "p pspsp",
    "weir_variables": "i pspip",
    "weir_variable_value": "v pppp",
    "weir_variable_assign": "v ppppp",
    "weir_variable_assign_add": "v ppppp",
    "weir_variable_assign_sub": "v ppppp",
    "weir_variable_initializer": "p ppp",
    "weir_variables_initializer": "p psp",
    "weir_tables_initializer": "p pp",
    "weir_uninitialized_variables": "v ppp",
    "weir_global_step": "p pp",
    "weir_new_optimizer": "p pssp",
    "weir_delete_optimizer": "v p",
    "weir_optimizer_minimize": "p ppppip",
    "weir_optimizer_apply_gradients": "p pppipp",
    "weir_optimizer_slot": "p ppsp",
    "weir_optimizer_slot_names": "v ppp",
    "weir_new_saver": "p ppisp",
    "weir_new_saver_from_def": "p pp",
    "weir_delete_saver": "v p",
    "weir_saver_save": "v ppslspp",
    "weir_saver_wait": "v pp",
    "weir_saver_restore": "v ppsp",
    "weir_saver_restore_latest": "v ppsipp",
    "weir_saver_checkpoints": "v ppp",
    "weir_latest_checkpoint": "v spp",
    "weir_checkpoint_verify": "i spp",
    "weir_checkpoint_tensors": "v spp",
    "weir_checkpoint_read": "p ssp",
    "weir_export_saved_model": "v psssp",
    "weir_freeze": "v ppispp",
    "weir_session_run_traced": "v pppippipipp",
}


def _path() -> str:
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), NAME)
    return os.environ.get("WEIR_LIBRARY") or (here if os.path.exists(here) else NAME)


def _load() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(_path())
    except OSError as error:
        raise LibraryError(
            "Weir's library cannot be loaded: %s. Install the wheel, or set WEIR_LIBRARY to the "
            "path of %s" % (error, NAME)
        ) from None


class _Library:
    """The functions of the library, as attributes; each is bound when it is used first."""

    def __init__(self) -> None:
        self._loaded: Optional[ctypes.CDLL] = None
        self._lock = threading.Lock()

    def __getattr__(self, name: str):
        types = _FUNCTIONS.get(name)
        if types is None:
            raise AttributeError(name)
        with self._lock:
            if self._loaded is None:
                self._loaded = _load()
        result, _, args = types.partition(" ")
        try:
            function = self._loaded[name]  # an object of its own, whose types are not shared
        except AttributeError:
            raise LibraryError(
                "the library has no function %s: it is not Weir's, or older than this package"
                % name
            ) from None
        function.restype = _TYPES[result]
        function.argtypes = [_TYPES[arg] for arg in args]
        self.__dict__[name] = function
        return function

    def address(self, name: str) -> ctypes.c_void_p:
        """Returns the address of a function that C calls."""
        return ctypes.cast(getattr(self, name), ctypes.c_void_p)


lib = _Library()


class _Status:
    """The TF_Status of a thread."""

    def __init__(self) -> None:
        self.pointer: Any = lib.TF_NewStatus()

    def __del__(self) -> None:
        pointer, self.pointer = self.pointer, None
        try:
            lib.TF_DeleteStatus(pointer)
        except (AttributeError, TypeError):
            pass  # the interpreter ends


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.status = _Status()


_per_thread: Optional["_PerThread"] = None


def status() -> int:
    """Returns the status of the calling thread."""
    global _per_thread
    if _per_thread is None:
        _per_thread = _PerThread()
    of = _per_thread.status
    if of.pointer is None:  # the interpreter ends, and deletes objects in any order
        of.pointer = lib.TF_NewStatus()
    return of.pointer


def check(of: int) -> None:
    """Raises the error of a status, if it has one."""
    code = lib.TF_GetCode(of)
    if code != 0:
        raise error_of(code, text_of(lib.TF_Message(of)))


def call(name: str, *args):
    """Calls a function whose last argument is a status. Raises its error."""
    of = status()
    result = getattr(lib, name)(*args, of)
    if lib.TF_GetCode(of) != 0:
        check(of)
    return result


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text) -> bytes:
    """Returns the bytes of a name or a path for C."""
    data = text if isinstance(text, bytes) else os.fspath(text)
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise ValueError("a name has a zero byte: %r" % (text,))
    return data


class Buffer:
    """A TF_Buffer, for a `with` statement."""

    def __init__(self, data: Optional[bytes] = None) -> None:
        self.pointer: Any
        if data is None:
            self.pointer = lib.TF_NewBuffer()
        else:
            self.pointer = lib.TF_NewBufferFromString(data, len(data))

    def __enter__(self) -> "Buffer":
        return self

    def __exit__(self, *_) -> None:
        lib.TF_DeleteBuffer(self.pointer)

    def bytes(self) -> bytes:
        buffer = CBuffer.from_address(self.pointer)
        return ctypes.string_at(buffer.data, buffer.length) if buffer.data else b""

    def text(self) -> str:
        return text_of(self.bytes())

    def list(self) -> list:
        """Returns the strings of a list."""
        return [text_of(each) for each in self.bytes().split(b"\0")[:-1]]


def fetch_bytes(name: str, *args) -> bytes:
    """Calls a function that writes a buffer, its last argument before the status."""
    with Buffer() as buffer:
        call(name, *args, buffer.pointer)
        return buffer.bytes()


def fetch_text(name: str, *args) -> str:
    return text_of(fetch_bytes(name, *args))


def fetch_list(name: str, *args) -> list:
    return [text_of(each) for each in fetch_bytes(name, *args).split(b"\0")[:-1]]


def options_text(options: dict) -> bytes:
    """Returns options as the text of pairs that the library reads. None is left out."""
    words = []
    for key, value in options.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        elif isinstance(value, float):
            value = repr(value)
        text = str(value).replace("\\", "\\\\").replace('"', '\\"')
        words.append('"%s=%s"' % (key, text))
    return " ".join(words).encode("utf-8", "surrogateescape")
