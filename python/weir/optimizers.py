"""Optimizers: training steps."""

from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Sequence

from . import _build
from ._library import COutput, bytes_of, call, fetch_list, lib, options_text
from .graph import Graph, Operation
from .variables import Variable, operations_array


class Optimizer:
    """An optimizer of TensorFlow 1, by name, with its hyperparameters.

        train = weir.Optimizer(g, "Adam", learning_rate=1e-3, clip_norm=1.0).minimize(loss)

    The names are GradientDescent, Momentum, Adagrad, Adadelta, RMSProp, Adam, AdamW, Ftrl,
    ProximalGradientDescent and ProximalAdagrad; weir_new_optimizer in weir/c_api.h lists their
    hyperparameters. A hyperparameter is a number or a scalar Tensor, such as a schedule. With
    `clip_norm`, all gradients are scaled so that their global norm is at most that.
    """

    def __init__(self, graph: Graph, optimizer: str, **hyperparameters: Any) -> None:
        self.graph = graph
        self._pointer = None
        values = {}
        for key, value in hyperparameters.items():
            tensor = _build.tensor_of(value)
            values[key] = value if tensor is None else tensor.name
        self._pointer = call(
            "weir_new_optimizer", graph.pointer, bytes_of(optimizer), options_text(values)
        )

    def __del__(self) -> None:
        try:
            if self._pointer is not None:
                lib.weir_delete_optimizer(self._pointer)
        except (AttributeError, TypeError):
            pass  # the interpreter ends

    def minimize(
        self,
        loss: Any,
        variables: Optional[Sequence[Variable]] = None,
        global_step: Optional[Variable] = None,
    ) -> Operation:
        """Adds the operation that does one training step.

        Args:
          loss: a Tensor; what is minimized is its sum.
          variables: to update. Default: all trainable ones.
          global_step: a variable that each step increments, such as `g.global_step()`.
        """
        output, (array, count) = _build.output(loss), operations_array(variables)
        step = None if global_step is None else global_step.op.pointer
        pointer = call(
            "weir_optimizer_minimize", self._pointer, ctypes.byref(output), step, array, count
        )
        return Operation(self.graph, pointer)

    def apply_gradients(
        self,
        gradients: Sequence,
        variables: Sequence[Variable],
        global_step: Optional[Variable] = None,
    ) -> Operation:
        """Adds the operation that updates variables by gradients; None is no gradient."""
        if len(gradients) != len(variables):
            raise ValueError("%d gradients of %d variables" % (len(gradients), len(variables)))
        given = (COutput * len(gradients))(
            *(COutput(None, -1) if each is None else _build.output(each) for each in gradients)
        )
        array, count = operations_array(variables)
        step = None if global_step is None else global_step.op.pointer
        pointer = call("weir_optimizer_apply_gradients", self._pointer, given, array, count, step)
        return Operation(self.graph, pointer)

    def slot(self, variable: Variable, name: str) -> Variable:
        """Returns what the optimizer keeps for a variable, such as "m" of Adam."""
        pointer = call("weir_optimizer_slot", self._pointer, variable.op.pointer, bytes_of(name))
        return Variable.from_operation(self.graph, pointer)

    def slot_names(self) -> List[str]:
        """Returns the names of the slots that the optimizer has made."""
        return fetch_list("weir_optimizer_slot_names", self._pointer)
