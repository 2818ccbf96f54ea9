"""Savers, and checkpoints as files."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Sequence

from ._arrays import to_array
from ._library import (
    Buffer,
    bytes_of,
    call,
    fetch_bytes,
    fetch_list,
    fetch_text,
    lib,
    options_text,
)
from .graph import Graph
from .session import Session
from .variables import Variable, operations_array


class Saver:
    """Saves variables to checkpoints in TensorFlow's format, restores them, keeps the newest few.

    saver = weir.Saver(g, max_to_keep=3)
    path = saver.save(session, "train/model", step=100)
    saver.restore_latest(session, "train")
    """

    def __init__(
        self, graph: Graph, variables: Optional[Sequence[Variable]] = None, **options: Any
    ) -> None:
        """Adds the nodes that save and restore.

        Args:
          graph: with its variables.
          variables: default: all of the collection "variables".
          options: max_to_keep=5, keep_checkpoint_every_n_hours, keep_best, better, sharded,
            reshape, pad_step_number, save_relative_paths, write_version, synced, name: see
            weir_new_saver in weir/c_api.h.
        """
        array, count = operations_array(variables)
        self.graph = graph
        self._pointer: Any = None
        self._pointer = call("weir_new_saver", graph.pointer, array, count, options_text(options))

    @classmethod
    def from_def(cls, graph: Graph, saver_def: bytes) -> "Saver":
        """Returns a saver for nodes that the graph has, which a serialized SaverDef names."""
        self = cls.__new__(cls)
        self.graph, self._pointer = graph, None
        with Buffer(saver_def) as buffer:
            self._pointer = call("weir_new_saver_from_def", buffer.pointer)
        return self

    def __del__(self) -> None:
        try:
            if self._pointer is not None:
                lib.weir_delete_saver(self._pointer)
        except (AttributeError, TypeError):
            pass  # the interpreter ends

    @property
    def pointer(self) -> int:
        """The weir_saver*, for calls of the C API."""
        return self._pointer

    def save(self, session: Session, path: str, step: Optional[int] = None, **options: Any) -> str:
        """Writes a checkpoint and returns its path, with the step at its end.

        Args:
          session: with the values.
          path: whose folder exists.
          step: of training.
          options: mode="sync", "async" or "async_or_skip", metric, latest_filename, write_state,
            write_meta_graph, exact_resume: see weir_saver_save in weir/c_api.h. With "async" it
            returns once it has the values, and writes them meanwhile; `wait` and the next `save`
            raise its error.
        """
        with Buffer() as saved:
            call(
                "weir_saver_save",
                self._pointer,
                session.pointer,
                bytes_of(path),
                -1 if step is None else step,
                options_text(options),
                saved.pointer,
            )
            return saved.text()

    def wait(self) -> None:
        """Waits until no checkpoint is being written. Raises the error of the last one."""
        call("weir_saver_wait", self._pointer)

    def restore(self, session: Session, path: str) -> None:
        """Sets all variables to the values of a checkpoint, or none after an error."""
        call("weir_saver_restore", self._pointer, session.pointer, bytes_of(path))

    def restore_latest(self, session: Session, folder: str, skip_damaged: bool = False) -> str:
        """Restores the newest checkpoint of a folder and returns its path.

        With `skip_damaged`, an older one if the newest is damaged. The saver then keeps and
        removes the checkpoints of the folder, as if it had written them.
        """
        with Buffer() as path:
            call(
                "weir_saver_restore_latest",
                self._pointer,
                session.pointer,
                bytes_of(folder),
                int(skip_damaged),
                path.pointer,
            )
            return path.text()

    def checkpoints(self) -> List[str]:
        """Returns the checkpoints that it has written and not removed, oldest first."""
        return fetch_list("weir_saver_checkpoints", self._pointer)


def latest_checkpoint(folder: str) -> str:
    """Returns the path of the newest checkpoint of a folder. NotFoundError if there is none."""
    return fetch_text("weir_latest_checkpoint", bytes_of(folder))


def verify_checkpoint(path: str) -> Dict:
    """Reads every byte of a checkpoint and returns a report.

    The report has "sound" (True or False), "tensors", "index_bytes", "data_bytes", and "problems",
    a list of dicts with "file", "offset", "size", "tensor" and "message".
    """
    return _fetch_json("weir_checkpoint_verify", path)


def _fetch_json(function: str, path: str) -> Any:
    import json  # takes a fifth of the time to import the package

    return json.loads(fetch_bytes(function, bytes_of(path)).decode())


class Checkpoint:
    """The tensors of a checkpoint by name, read as they are asked for.

    checkpoint = weir.Checkpoint("train/model-100")
    checkpoint["w"]            # an array
    checkpoint.info["w"]       # {"name": "w", "dtype": "float", "shape": [2, 3]}
    """

    def __init__(self, path: str) -> None:
        self.path = path
        tensors = _fetch_json("weir_checkpoint_tensors", path)
        self.info: Dict[str, Dict] = {each["name"]: each for each in tensors}

    def __getitem__(self, name: str) -> Any:
        return to_array(call("weir_checkpoint_read", bytes_of(self.path), bytes_of(name)))

    def __contains__(self, name: object) -> bool:
        return name in self.info

    def __iter__(self) -> Iterator[str]:
        return iter(self.info)

    def __len__(self) -> int:
        return len(self.info)

    def keys(self) -> List[str]:
        return list(self.info)
