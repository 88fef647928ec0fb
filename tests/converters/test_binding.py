"""Which of the model's own tensors the names of get_model mean."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from triton_converters.load.binding import items, keywords, places


def bert(input_ids: Any, token_type_ids: Any, attention_mask: Any) -> None:
    """The order of NVIDIA's BERT."""


def hugging(input_ids: Any, attention_mask: Any = None, token_type_ids: Any = None, return_dict: Any = None) -> None:
    """The order of Hugging Face's BERT, whose parameters may be left out."""


def variable(*tensors: Any) -> None: ...


def first_and_rest(x: Any, *rest: Any) -> None: ...


def wrapper(*args: Any, **kwargs: Any) -> None: ...


def named(**inputs: Any) -> None: ...


def first_and_named(x: Any, **inputs: Any) -> None: ...


def keyword_only(x: Any, *, mask: Any, scale: Any = None) -> None: ...


def positional_only(x: Any, mask: Any, /) -> None: ...


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


@pytest.mark.parametrize(
    ("function", "names", "by_name"),
    [
        (bert, "input_ids token_type_ids attention_mask", False),
        (bert, "INPUT__0 INPUT__1 INPUT__2", False),
        (bert, "input__0 input__1 input__2", False),
        (bert, "ids token_type_ids mask", False),
        (bert, "input_ids attention_mask token_type_ids", True),
        (bert, "attention_mask input_ids token_type_ids", True),
        (hugging, "input_ids", False),
        (hugging, "input_ids attention_mask", False),
        (hugging, "input_ids token_type_ids", True),
        (hugging, "input_ids token_type_ids attention_mask", True),
        (hugging, "ids mask", False),
        (variable, "b a", False),
        (first_and_rest, "x y z", False),
        (wrapper, "mask x", False),
        (named, "mask x", True),
        (first_and_named, "x mask", True),
        (first_and_named, "x", False),
        (keyword_only, "x mask", True),
        (keyword_only, "mask x", True),
        (positional_only, "x mask", False),
        (positional_only, "a b", False),
    ],
)
def test_names_that_are_parameters_are_passed_by_name(function: Callable[..., Any], names: str, by_name: bool) -> None:
    assert keywords(names.split(), parameters(function)) is by_name


@pytest.mark.parametrize(
    ("function", "names", "why"),
    [
        (bert, "input_ids mask token_type_ids", "token_type_ids is not at its place"),
        (bert, "mask input_ids types", "input_ids is not at its place"),
        (bert, "input_ids attention_mask", "token_type_ids, which has no default, is not among them"),
        (first_and_rest, "y x", "x is not at its place"),
        (positional_only, "mask x", "x can be passed by position alone"),
    ],
)
def test_an_order_that_contradicts_the_names_is_refused(function: Callable[..., Any], names: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        keywords(names.split(), parameters(function))
    own = ", ".join(each.name for each in parameters(function) if each.kind is not each.VAR_POSITIONAL)
    orders = f"get_model names {', '.join(names.split())}, but forward's parameters are {own}: "
    assert str(caught.value).startswith(orders)
    assert "name all of them as the model does, or none, in the model's order" in str(caught.value)


@pytest.mark.parametrize(
    ("names", "own", "found"),
    [
        ("a b", "a b", (0, 1)),
        ("b a", "a b", (1, 0)),
        ("c a", "a b c", (2, 0)),
        ("x y", "a b", (0, 1)),
        ("a y", "a b", (0, 1)),
        ("x", "a b", (0,)),
        ("x y", "", (0, 1)),
    ],
)
def test_tensors_that_the_model_names_itself_are_found_by_name(names: str, own: str, found: tuple[int, ...]) -> None:
    assert places(names.split(), own.split(), "its fields") == found


@pytest.mark.parametrize(("names", "own"), [("y a", "a b"), ("b y", "a b"), ("a y b", "a b c")])
def test_names_of_which_some_are_elsewhere_are_refused(names: str, own: str) -> None:
    with pytest.raises(ValueError, match=f"but its fields are {', '.join(own.split())}: .* is not at its place"):
        places(names.split(), own.split(), "its fields")


class Pair(NamedTuple):
    first: int
    second: int


@pytest.mark.parametrize(
    ("result", "names", "found"),
    [
        ((1, 2), ["second", "first"], [1, 2]),
        ([1, 2], ["y"], [1, 2]),
        (Pair(1, 2), ["second", "first"], [2, 1]),
        (Pair(1, 2), ["second"], [2]),
        (Pair(1, 2), ["y", "z"], [1, 2]),
        (Pair(1, 2), ["x", "y", "z"], [1, 2]),
    ],
)
def test_a_named_tuple_is_asked_by_name(result: Any, names: list[str], found: list[int]) -> None:
    assert items(result, names) == found
