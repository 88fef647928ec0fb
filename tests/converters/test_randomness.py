"""The operators that draw random numbers are found in each framework's graph."""

from types import SimpleNamespace

import pytest

from triton_converters.load.randomness import of_tensorflow


def graph(*nodes: tuple[str, str], inside: tuple[tuple[str, str], ...] = ()) -> SimpleNamespace:
    """A GraphDef of such operators and names; ``inside``: those of its one function."""
    own, body = ([SimpleNamespace(op=op, name=name) for op, name in each] for each in (nodes, inside))
    return SimpleNamespace(node=own, library=SimpleNamespace(function=[SimpleNamespace(node_def=body)]))


@pytest.mark.parametrize(
    "operator",
    ["RandomUniform", "RandomStandardNormal", "StatelessRandomUniformV2", "StatefulUniform", "TruncatedNormal"],
)
def test_tensorflows_random_operators_are_named_with_their_node(operator: str) -> None:
    flip = (operator, "random_flip/uniform")
    assert of_tensorflow(graph(("MatMul", "dense"), flip)) == (f"{operator} (node random_flip/uniform)",)
    assert of_tensorflow(graph(("MatMul", "dense"), inside=(flip,))) == (f"{operator} (node random_flip/uniform)",)


def test_what_only_makes_a_key_or_computes_is_not() -> None:
    computing = ("StatelessRandomGetKeyCounter", "UniformQuantize", "UniqueV2", "Relu", "RealDiv")
    assert of_tensorflow(graph(*((each, "n") for each in computing))) == ()
