"""NumPy arrays as tensors of the library, and back."""

from __future__ import annotations

import atexit
import ctypes
from typing import Any, List, Optional

from ._library import lib
from .dtypes import numpy_dtype, number_of

_STRING = 7
_STRING_SIZE = 24
# Below this, an array is copied: that takes less time than to share it.
_SHARED_BYTES = 16384


class _Shared:
    """Arrays whose memory tensors share, until the library says that it has released them.

    It says so by a flag instead of a call: threads of the library then never wait for the
    interpreter, nor call it after its end.
    """

    def __init__(self) -> None:
        self._held: List[Any] = []
        self._release: Any = None

    def add(self, array) -> tuple:
        """Returns the deallocator for the tensor, and its argument."""
        if self._release is None:
            self._release = lib.address("weir_set_released")
            atexit.register(self._keep)
        self.sweep()
        flag = ctypes.c_int32(0)
        self._held.append((flag, array))
        return self._release, ctypes.addressof(flag)

    def sweep(self) -> None:
        """Drops what has been released."""
        if self._held:
            self._held[:] = [held for held in self._held if not held[0].value]

    def _keep(self) -> None:
        """Keeps what is still shared when the interpreter ends: sessions may be deleted later."""
        self.sweep()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._held))

    def __len__(self) -> int:
        return len(self._held)


shared = _Shared()


def _dims(shape):
    return (ctypes.c_int64 * len(shape))(*shape)


def as_array(value, dtype: Optional[int] = None):
    """Returns a contiguous array of a value, of the type with this number if one is given.

    Python's floats become float32, and its integers int32 if they fit, as in TensorFlow.
    """
    import numpy

    if dtype == _STRING:
        return numpy.asarray(value, dtype=object)
    if dtype is not None:
        wanted = numpy_dtype(dtype)
        array = numpy.asarray(value)
        if array is value and array.dtype == wanted and array.flags.c_contiguous:
            return array
        if array.dtype != wanted:
            if isinstance(value, numpy.ndarray) or not _converts(array.dtype, wanted):
                raise TypeError("expected an array of %s, got %s" % (wanted, array.dtype))
            array = array.astype(wanted)
        return numpy.ascontiguousarray(array).reshape(array.shape)
    array = numpy.asarray(value)
    if not hasattr(value, "dtype"):
        if array.dtype == numpy.float64:
            array = array.astype(numpy.float32)
        elif array.dtype == numpy.int64:
            small = array.astype(numpy.int32)
            array = small if (small == array).all() else array
    if array.dtype.kind in "US":
        return array.astype(object)
    return numpy.ascontiguousarray(array).reshape(array.shape)


def _converts(have, want) -> bool:
    """Whether literals of one type become another: integers any number, floats any float."""
    kinds = {"b": "b", "i": "iufcV", "u": "iufcV", "f": "fcV", "c": "c", "O": "O"}
    return want.kind in kinds.get(have.kind, "")


class TensorHandle:
    """A TF_Tensor that is deleted with this object."""

    __slots__ = ("pointer", "__weakref__")

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer

    def __del__(self) -> None:
        try:
            lib.TF_DeleteTensor(self.pointer)
        except (AttributeError, TypeError):
            pass  # the interpreter ends


def to_tensor(value, dtype: Optional[int] = None) -> TensorHandle:
    """Returns a tensor of a value, which shares the memory of a large array."""
    array = as_array(value, dtype)
    if array.dtype == object:
        return _strings_to_tensor(array)
    number = dtype if dtype is not None else number_of(array.dtype)
    size = array.nbytes
    dims = _dims(array.shape)
    if size >= _SHARED_BYTES:
        release, flag = shared.add(array)
        pointer = lib.TF_NewTensor(number, dims, array.ndim, array.ctypes.data, size, release, flag)
    else:
        pointer = lib.TF_AllocateTensor(number, dims, array.ndim, size)
        if pointer and size:
            ctypes.memmove(lib.TF_TensorData(pointer), array.ctypes.data, size)
    if not pointer:
        raise MemoryError("no tensor of %s%s" % (array.dtype, array.shape))
    return TensorHandle(pointer)


def _strings_to_tensor(array) -> TensorHandle:
    items = [_bytes_of(each) for each in array.ravel().tolist()]
    dims = _dims(array.shape)
    pointer = lib.TF_AllocateTensor(_STRING, dims, array.ndim, len(items) * _STRING_SIZE)
    if not pointer:
        raise MemoryError("no tensor of %d strings" % len(items))
    at = lib.TF_TensorData(pointer)
    for each in items:
        lib.TF_StringInit(at)
        lib.TF_StringCopy(at, each, len(each))
        at += _STRING_SIZE
    return _StringHandle(pointer, len(items))


class _StringHandle(TensorHandle):
    """Strings of the caller, which the tensor does not free."""

    __slots__ = ("count",)

    def __init__(self, pointer: int, count: int) -> None:
        super().__init__(pointer)
        self.count = count

    def __del__(self) -> None:
        try:
            at = lib.TF_TensorData(self.pointer)
            for _ in range(self.count):
                lib.TF_StringDealloc(at)
                at += _STRING_SIZE
        except (AttributeError, TypeError):
            return  # the interpreter ends
        super().__del__()


def _bytes_of(item) -> bytes:
    if isinstance(item, bytes):
        return item
    if isinstance(item, str):
        return item.encode()
    raise TypeError("expected a string or bytes, got %r" % type(item).__name__)


class _Memory:
    """The elements of a tensor, as NumPy's array interface describes them."""

    __slots__ = ("_handle", "__array_interface__")

    def __init__(self, handle: TensorHandle, address: int, shape: tuple, typestr: str) -> None:
        self._handle = handle
        self.__array_interface__ = {
            "version": 3,
            "data": (address, True),
            "shape": shape,
            "typestr": typestr,
        }


def to_array(pointer: int):
    """Returns the elements of a tensor, which it takes over, as an array.

    The array shares the tensor's memory and is read-only: variables and constants may have it too.
    """
    import numpy

    handle = TensorHandle(pointer)
    number = lib.TF_TensorType(pointer)
    shape = tuple(lib.TF_Dim(pointer, i) for i in range(lib.TF_NumDims(pointer)))
    if number == _STRING:
        return _strings_to_array(pointer, shape)
    dtype = numpy_dtype(number)
    address = lib.TF_TensorData(pointer)
    if not address or 0 in shape:
        return numpy.empty(shape, dtype)
    if dtype.kind == "V" or dtype.isbuiltin != 1:  # of ml_dtypes, which have no name of NumPy's
        raw = numpy.asarray(_Memory(handle, address, shape, "|u%d" % dtype.itemsize))
        return raw.view(dtype)
    return numpy.asarray(_Memory(handle, address, shape, dtype.str))


def _strings_to_array(pointer: int, shape: tuple):
    import numpy

    array = numpy.empty(shape, object)
    flat = array.reshape(-1)
    at = lib.TF_TensorData(pointer)
    for i in range(flat.size):
        flat[i] = ctypes.string_at(lib.TF_StringGetDataPointer(at), lib.TF_StringGetSize(at))
        at += _STRING_SIZE
    return array if shape else array.reshape(())
