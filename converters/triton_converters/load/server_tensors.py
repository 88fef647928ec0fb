"""Tensors as they are between the models of a server: one of the batch dimension alone has another one there, of 1."""

from collections.abc import Collection

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.conversion_requests import Step
from triton_converters.contract.formats import AS_GIVEN
from triton_converters.load.framework import Framework
from triton_converters.load.graph_inputs import DeclaresInputs


def received(step: Step, model: Framework, inputs: Arrays, bare: Collection[str] = ()) -> dict[str, Array]:
    """Return what a model gets of a server's tensors: its config.pbtxt has ``reshape`` where it takes one less.

    A graph says what it takes. Code does not, so it gets what its author connects in Python. ``bare``: the inputs that
    a network answered so.
    """
    if not _is_network(step):
        return dict(inputs)
    declared = model.declared if isinstance(model, DeclaresInputs) else ()
    taken = {each.name for each in declared if len(each.dims) == 1} if declared else bare
    return {name: array[:, 0] if name in taken and array.shape[1:] == (1,) else array for name, array in inputs.items()}


def is_bare(step: Step, array: Array) -> bool:
    """Whether an answer has the batch dimension alone, and another one on a server."""
    return _is_network(step) and array.ndim == 1


def answered(step: Step, array: Array) -> Array:
    """Return what a server has of an answer, for the next model and for clients."""
    return array[:, None] if is_bare(step, array) else array


def _is_network(step: Step) -> bool:
    """Whether config.pbtxt is made of what the model answers, and has a batch dimension."""
    return step.code.format not in AS_GIVEN and step.code.max_batch_size > 0
