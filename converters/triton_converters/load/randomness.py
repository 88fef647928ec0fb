"""What in a model draws random numbers, so that it answers the same request in two ways."""

import re
from typing import Any, Protocol, runtime_checkable

from triton_converters.graph.walk import nodes

ONNX_OPERATORS = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
TORCH_OPERATORS = frozenset(
    f"aten::{name}"
    for name in (
        "bernoulli",
        "multinomial",
        "normal",
        "rand",
        "rand_like",
        "randint",
        "randn",
        "randn_like",
        "randperm",
    )
)
"""Operators of TorchScript; each also exists with an underscore, which changes a tensor in place."""

TENSORFLOW_OPERATORS = re.compile(
    r"(Stateless|Stateful)?(Random|TruncatedNormal|ParameterizedTruncatedNormal|Multinomial)(?!Get)\w*"
    r"|Stateful(StandardNormal|Uniform)\w*"
)
"""Operators of TensorFlow, by the beginnings of their names; what only makes a generator's key is left out."""


@runtime_checkable
class KnowsRandomness(Protocol):
    """A Framework whose model's own graph tells what is random."""

    @property
    def random(self) -> tuple[str, ...]:
        """The operators that draw random numbers, in words, each kind once."""


def of_onnx(model: Any) -> tuple[str, ...]:
    """Return the random operators of a ModelProto, each with the name of a node that has it."""
    found: dict[str, str] = {}
    for node in nodes(model):
        # Dropout does nothing unless its third input says that it is in training.
        is_training = node.op_type == "Dropout" and len(node.input) > 2 and node.input[2]
        if node.op_type in ONNX_OPERATORS or is_training:
            found.setdefault(node.op_type, node.name)
    return tuple(f"{kind} (node {name})" if name else kind for kind, name in found.items())


def of_tensorflow(graph: Any) -> tuple[str, ...]:
    """Return the random operators of a GraphDef, and of its functions, each with the name of a node that has it."""
    found: dict[str, str] = {}
    for node in (*graph.node, *(node for function in graph.library.function for node in function.node_def)):
        if TENSORFLOW_OPERATORS.fullmatch(node.op):
            found.setdefault(node.op, node.name)
    return tuple(f"{kind} (node {name})" for kind, name in found.items())


def of_torchscript(graph: Any) -> tuple[str, ...]:
    """Return the random operators of a TorchScript graph, whose calls are inlined."""
    kinds = {node.kind() for name in TORCH_OPERATORS for node in (*_all(graph, name), *_all(graph, f"{name}_"))}
    return tuple(sorted(kinds))


def _all(graph: Any, kind: str) -> list[Any]:
    return list(graph.findAllNodes(kind, True))
