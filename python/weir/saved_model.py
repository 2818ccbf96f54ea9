"""SavedModels: loaded, and called by signature."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Optional, Sequence

from . import _wire
from ._library import Buffer, bytes_of, call
from .dtypes import name_of_number
from .errors import InvalidArgumentError, NotFoundError
from .graph import Graph
from .session import Session, Step

_DEFAULT = "serving_default"


class Spec:
    """What a signature says of a tensor: `name` in the graph, `dtype` and `shape`.

    A dimension of None is any; a shape of None has any rank.
    """

    def __init__(self, info: bytes) -> None:
        name = _wire.first(info, 1)
        self.name: Optional[str] = None if name is None else name.decode()
        self.dtype = name_of_number(_wire.first(info, 2, 0))
        shape = _wire.first(info, 3)
        self.shape = None if shape is None else _wire.shape(shape)

    def accepts(self, shape: Sequence) -> bool:
        """Whether an array of this shape is such a tensor."""
        if self.shape is None:
            return True
        return len(shape) == len(self.shape) and all(
            want is None or have == want for have, want in zip(shape, self.shape)
        )

    def __repr__(self) -> str:
        return "Spec(%r, %s, %s)" % (self.name, self.dtype, self.shape)


class Signature:
    """A function of a model: arrays in, a dict of arrays out.

        signature(x=array)      # by name
        signature(array)        # if it has one input
        signature({"x": array})

    Attributes:
      name: "serving_default".
      inputs, outputs: a Spec for each argument and result, by name.
    """

    def __init__(self, model: "Model", name: str, message: bytes) -> None:
        self.name = name
        self.inputs = _specs(message, 1)
        self.outputs = _specs(message, 2)
        self._model = model
        self._step: Optional[Step] = None

    def __call__(self, *args: Any, **kwargs: Any) -> Dict:
        values = self._arguments(args, kwargs)
        if self._step is None:
            self._step = self._prepare()
        return self._step(*(values[name] for name in self.inputs))

    def _arguments(self, args: tuple, kwargs: Dict) -> Dict:
        if len(args) == 1 and isinstance(args[0], dict) and not kwargs:
            values = args[0]
        elif len(args) == 1 and not kwargs and len(self.inputs) == 1:
            values = {next(iter(self.inputs)): args[0]}
        elif args:
            raise TypeError("%s takes its inputs by name: %s" % (self.name, self._usage()))
        else:
            values = kwargs
        if set(values) != set(self.inputs):
            raise TypeError(
                "%s takes %s; got %s" % (self.name, self._usage(), ", ".join(sorted(values)))
            )
        for name, spec in self.inputs.items():
            shape = getattr(values[name], "shape", None)
            if shape is not None and not spec.accepts(shape):
                raise InvalidArgumentError(
                    "%s: input '%s' has shape %s, expected %s"
                    % (self.name, name, tuple(shape), spec.shape)
                )
        return values

    def _usage(self) -> str:
        return ", ".join(
            "%s: %s%s" % (name, spec.dtype, "" if spec.shape is None else list(spec.shape))
            for name, spec in self.inputs.items()
        )

    def _prepare(self):
        for name, spec in list(self.inputs.items()) + list(self.outputs.items()):
            if spec.name is None:
                raise InvalidArgumentError(
                    "%s: '%s' is sparse or composite; run its tensors by model.session"
                    % (self.name, name)
                )
        return self._model.session.step(
            {name: spec.name for name, spec in self.outputs.items()},
            [spec.name for spec in self.inputs.values()],
        )

    def __repr__(self) -> str:
        return "<weir.Signature %s(%s)>" % (self.name, self._usage())


def _specs(message: bytes, number: int) -> Dict[str, Spec]:
    return {name: Spec(info) for name, info in sorted(_wire.mapping(message, number).items())}


class Model:
    """A loaded SavedModel with the values of its variables. See weir.load.

    Attributes:
      graph, session: which have all of the model.
      signatures: by name.
      meta_graph: its serialized MetaGraphDef.
    """

    def __init__(
        self, folder: str, tags: Sequence[str] = ("serve",), signature: Optional[str] = None
    ) -> None:
        self.graph = Graph()
        names = [bytes_of(tag) for tag in tags]
        array = (ctypes.c_char_p * len(names))(*names)
        with Buffer() as meta_graph:
            pointer = call(
                "TF_LoadSessionFromSavedModel",
                None,
                None,
                bytes_of(folder),
                array,
                len(names),
                self.graph.pointer,
                meta_graph.pointer,
            )
            self.session = Session._of(self.graph, pointer)
            self.meta_graph = meta_graph.bytes()
        self.signatures: Dict[str, Signature] = {
            name: Signature(self, name, message)
            for name, message in _wire.mapping(self.meta_graph, 5).items()
            if not name.startswith("__saved_model_")
        }
        self._default = signature
        if signature is not None:
            self.signature(signature)

    def signature(self, name: Optional[str] = None) -> Signature:
        """Returns a signature by name. Default: "serving_default", or the only one."""
        if name is None:
            name = self._default or _DEFAULT
            if name not in self.signatures and len(self.signatures) == 1:
                return next(iter(self.signatures.values()))
        found = self.signatures.get(name)
        if found is None:
            raise NotFoundError(
                "the model has no signature '%s'; it has: %s"
                % (name, ", ".join(sorted(self.signatures)) or "none")
            )
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Dict:
        """Calls the default signature."""
        return self.signature()(*args, **kwargs)

    def close(self) -> None:
        """Frees the model's variables."""
        self.session.close()

    def __repr__(self) -> str:
        return "<weir.Model: %s>" % ", ".join(map(repr, self.signatures.values()))


def load(folder: str, tags: Sequence[str] = ("serve",), signature: Optional[str] = None) -> Model:
    """Loads a SavedModel, which is called with arrays and returns a dict of arrays.

        model = weir.load("export/1")
        model(np.zeros([1, 224, 224, 3], "float32"))["logits"]

    Args:
      folder: with saved_model.pb.
      tags: of the meta graph.
      signature: that calls of the model use. Default: "serving_default", or the only one.

    Raises:
      NotFoundError: there is no model, or none with these tags, or no such signature.
    """
    return Model(folder, tags, signature)
