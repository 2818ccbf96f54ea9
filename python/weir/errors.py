"""Exceptions: one class for each of TensorFlow's error codes."""

from __future__ import annotations

from typing import Optional


class WeirError(Exception):
    """An error of the library.

    Attributes:
      code: TensorFlow's number, such as 3.
      message: what is wrong: the op, the node, and the shapes or types.
    """

    code = 2

    def __init__(self, message: str, code: Optional[int] = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class LibraryError(WeirError):
    """The shared library is not found, or does not have a function."""


class CancelledError(WeirError):
    """The session is closed."""

    code = 1


class InvalidArgumentError(WeirError, ValueError):
    """An argument is wrong in every state: a type, a shape, a name."""

    code = 3


class DeadlineExceededError(WeirError, TimeoutError):
    """A step took longer than its time limit."""

    code = 4


class NotFoundError(WeirError, LookupError):
    """A file, an operation, a key or an op does not exist."""

    code = 5


class AlreadyExistsError(WeirError):
    """What is to be created exists."""

    code = 6


class PermissionDeniedError(WeirError):
    """A file cannot be opened or written by this user."""

    code = 7


class ResourceExhaustedError(WeirError, MemoryError):
    """There is not enough memory."""

    code = 8


class FailedPreconditionError(WeirError):
    """The state does not allow the call: a variable has no value."""

    code = 9


class AbortedError(WeirError):
    """Something else interfered, such as another saver of the same path."""

    code = 10


class OutOfRangeError(WeirError):
    """The end of a sequence: a data set, a queue; or an index."""

    code = 11


class UnimplementedError(WeirError, NotImplementedError):
    """This is not supported, or an op has no kernel."""

    code = 12


class InternalError(WeirError):
    """A mistake in Weir."""

    code = 13


class UnavailableError(WeirError):
    """A server does not answer."""

    code = 14


class DataLossError(WeirError):
    """A file is damaged."""

    code = 15


_CLASSES = {
    each.code: each
    for each in (
        CancelledError,
        InvalidArgumentError,
        DeadlineExceededError,
        NotFoundError,
        AlreadyExistsError,
        PermissionDeniedError,
        ResourceExhaustedError,
        FailedPreconditionError,
        AbortedError,
        OutOfRangeError,
        UnimplementedError,
        InternalError,
        UnavailableError,
        DataLossError,
    )
}


def error_of(code: int, message: str) -> WeirError:
    """Returns the exception for a code."""
    return _CLASSES.get(code, WeirError)(message, code)
