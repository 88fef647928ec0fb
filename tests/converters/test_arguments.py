"""Which arguments a user's function gets, and of which type."""

import argparse
from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from functools import partial, wraps
from pathlib import Path
from typing import Any, List, Literal, Optional, Union  # noqa: UP035 - user files still use these

import pytest

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.user.arguments import Offer, convert, harvest

Update = Callable[[argparse.ArgumentParser], Any]


def take(function: Callable[..., Any], spec: dict[str, str], update: Update | None = None, **stage: int | str) -> Any:
    return function(**harvest(function, Offer(spec, stage), update, "model.py: get_model"))


def refusal(function: Callable[..., Any], spec: dict[str, str], update: Update | None = None) -> str:
    with pytest.raises(StageError) as caught:
        take(function, spec, update)
    assert caught.value.reason is Reason.INVALID_SPEC
    return caught.value.message


class Mode(Enum):
    FAST = "fast"
    EXACT = "exact"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (str, "3", "3"),
        (int, "-3", -3),
        (float, "1e-3", 0.001),
        (bool, "true", True),
        (bool, "False", False),
        (bool, "0", False),
        (Path, "a/b", Path("a/b")),
        (list[int], "1, 2,3", [1, 2, 3]),
        (list[str], "['a', 'b']", ["a", "b"]),
        (List, "english_cleaners_v2", ["english_cleaners_v2"]),  # noqa: UP006 - as users write it
        (Sequence[float], "0.5 1", [0.5, 1.0]),
        (tuple[int, ...], "3,224,224", (3, 224, 224)),
        (Optional[int], "7", 7),  # noqa: UP045 - as users write it
        (Optional[int], "none", None),  # noqa: UP045 - as users write it
        (int | None, "", None),
        (Union[int, str], "x", "x"),  # noqa: UP007 - as users write it
        (str | int, "5", 5),
        (Literal["a", "b"], "b", "b"),
        (Literal[0, 1], "0", 0),
        (Mode, "exact", Mode.EXACT),
        (Mode, "EXACT", Mode.EXACT),
        (Level, "2", Level.HIGH),
        (Level, "HIGH", Level.HIGH),
        (Level | None, "2", Level.HIGH),
        (tuple[int, float], "3, 0.5", (3, 0.5)),
        (Any, "3", "3"),
    ],
)
def test_strings_become_the_annotated_type(annotation: Any, text: str, value: Any) -> None:
    converted = convert(text, annotation)
    assert converted == value
    assert type(converted) is type(value)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "3.5"),
        (bool, "maybe"),
        (float, "x"),
        (list[int], "1,a"),
        (Literal["a"], "b"),
        (Mode, "slow"),
        (Level, "3"),
        (tuple[int, float], "3"),
        (int | None, "x"),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(annotation: Any, text: str) -> None:
    def get_model(option: Any) -> Any:
        return option

    get_model.__annotations__["option"] = annotation
    message = refusal(get_model, {"option": text})
    assert message.startswith("model.py: get_model: option:")


def unannotated(text: str) -> Callable[..., Any]:
    """A function without annotations, from its text."""
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102 - a text of this test
    found: Callable[..., Any] = names["function"]
    return found


def test_unannotated_parameters_have_the_type_of_their_default() -> None:
    get_model = unannotated("def function(width=3, rate=0.5, deep=False, name='x', other=None): return locals()")
    assert take(lambda mode=Mode.FAST: mode, {"mode": "exact"}) is Mode.EXACT
    spec = {"width": "4", "rate": "1", "deep": "true", "name": "5", "other": "6"}
    assert list(take(get_model, spec).values()) == [4, 1.0, True, "5", "6"]
    assert list(take(get_model, {}).values()) == [3, 0.5, False, "x", None]


@pytest.mark.parametrize(
    ("default", "text", "value"),
    [
        ("(224, 224)", "128,256", (128, 256)),
        ("(0.5, 0.5, 0.5)", "[0.1, 1]", (0.1, 1.0)),
        ("(1, 0.5)", "2, 3", (2.0, 3.0)),
        ("[8, 16]", "4", [4]),
        ("['a']", "b c", ["b", "c"]),
        ("{1}", "2", {2}),
        ("(True,)", "false", (False,)),
        ("(1, 'a')", "2,b", ("2", "b")),
        ("()", "2", ("2",)),
    ],
)
def test_a_list_has_elements_of_the_type_of_those_of_its_default(default: str, text: str, value: Any) -> None:
    got = take(unannotated(f"def function(sizes={default}): return sizes"), {"sizes": text})
    assert (got, type(got)) == (value, type(value))
    assert list(map(type, got)) == list(map(type, value))


def test_annotations_that_are_strings_are_resolved() -> None:
    def get_model(width: "int", names: "list[str]" = []) -> Any:  # noqa: B006 - as users write it
        return width, names

    assert take(get_model, {"width": "3", "names": "a b"}) == (3, ["a", "b"])


def width(device: "NoSuchName", width: "int", deep: "Optional[NoSuchName]" = False) -> Any:  # type: ignore[name-defined]  # noqa: F821,UP045 - as users write it
    return device, width, deep


class Width:
    def __init__(self, device: "NoSuchName", width: "int", deep: "NoSuchName" = False) -> None:  # type: ignore[name-defined]  # noqa: F821 - as users write it
        self.got = (device, width, deep)

    def __call__(self, device: "NoSuchName", width: "int", deep: "NoSuchName" = False) -> Any:  # type: ignore[name-defined]  # noqa: F821 - as users write it
        return device, width, deep


@wraps(width)
def wrapped(*args: Any, **arguments: Any) -> Any:
    return width(*args, **arguments)


@pytest.mark.parametrize(
    "function", [width, partial(width), wrapped, Width("", 0), staticmethod(width), Width("", 0).__call__]
)
def test_an_annotation_that_nobody_defines_leaves_the_others_as_they_are(function: Callable[..., Any]) -> None:
    """Such as a name that is imported for a type checker alone."""
    given = {"device": "cpu", "width": "3", "deep": "true"}
    assert take(function, given) == ("cpu", 3, True)
    assert take(Width, given).got == ("cpu", 3, True)


def test_a_missing_argument_is_named() -> None:
    def get_model(checkpoint: str, width: int = 3) -> Any:
        return checkpoint, width

    assert "'checkpoint'" in refusal(get_model, {"width": "4"})


def test_a_typo_does_not_pass() -> None:
    def get_model(checkpoint: str = "", width: int = 3) -> Any:
        return checkpoint, width

    message = refusal(get_model, {"widht": "4"})
    assert "'widht'" in message
    assert "checkpoint, width" in message


def test_stage_arguments_are_passed_only_where_they_are_asked_for() -> None:
    def get_dataloader_fn(batch_size: int = 1) -> Any:
        return batch_size

    assert take(get_dataloader_fn, {}, batch_size=8, precision="fp32") == 8
    assert take(get_dataloader_fn, {"batch_size": "2"}, batch_size=8) == 2


def test_an_untyped_stage_argument_keeps_its_own_type() -> None:
    assert take(unannotated("def function(batch_size): return batch_size"), {}, batch_size=8) == 8
    assert take(lambda **arguments: arguments, {"x": "1"}, batch_size=8) == {"x": "1", "batch_size": 8}


def test_a_class_is_asked_for_its_constructor_s_arguments() -> None:
    class MetricsCalculator:
        def __init__(self, output_used_for_metrics: str, top: int = 1) -> None:
            self.got = (output_used_for_metrics, top)

    class Plain:
        pass

    assert take(MetricsCalculator, {"output_used_for_metrics": "OUTPUT__0", "top": "5"}).got == ("OUTPUT__0", 5)
    assert isinstance(take(Plain, {}), Plain)
    assert "'top'" in refusal(Plain, {"top": "5"})


def seed_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument("--n-mel-channels", default=80, type=int)
    group.add_argument("--speakers", nargs="+", type=int, default=[1])
    group.add_argument("--ema", action="store_true")
    group.add_argument("--no-bias", dest="bias", action="store_false")
    group.add_argument("--precision", default="fp16", choices=["fp32", "fp16"])
    group.add_argument("--scale", default="2", type=float)
    parser.add_argument("--output-format", required=True)


def test_every_default_of_update_argparser_is_passed() -> None:
    got = take(lambda **arguments: arguments, {}, seed_arguments, output_format="ts-trace", precision="fp32")
    assert got == {
        "n_mel_channels": 80,
        "speakers": [1],
        "ema": False,
        "bias": True,
        "precision": "fp32",
        "scale": 2.0,
        "output_format": "ts-trace",
    }


def test_spec_arguments_become_argparse_s_types() -> None:
    spec = {"n_mel_channels": "-40", "speakers": "1,2", "ema": "true", "bias": "false", "output_format": "onnx"}
    got = take(lambda **arguments: arguments, spec, seed_arguments)
    assert (got["n_mel_channels"], got["speakers"], got["ema"], got["bias"]) == (-40, [1, 2], True, False)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"output_format": "onnx", "n_mel_channels": "many"}, "--n-mel-channels"),
        ({"output_format": "onnx", "precision": "int8"}, "--precision"),
        ({"output_format": "onnx", "ema": "perhaps"}, "ema"),
        ({}, "--output-format"),
        ({"output_format": "onnx", "n_mel_chanels": "3"}, "'n_mel_chanels'"),
    ],
)
def test_argparse_s_complaints_are_the_user_s(spec: dict[str, str], words: str) -> None:
    assert words in refusal(lambda **arguments: arguments, spec, seed_arguments)


def test_a_function_gets_of_a_shared_argparser_what_it_takes() -> None:
    def get_dataloader_fn(n_mel_channels: int, data_dir: Path = Path(".")) -> Any:
        return n_mel_channels, data_dir

    spec = {"output_format": "onnx", "data_dir": "/data"}
    assert "'output_format'" in refusal(get_dataloader_fn, spec, seed_arguments)
    taken = take(get_dataloader_fn, {"data_dir": "/data"}, seed_arguments, output_format="pyt")
    assert taken == (80, Path("/data"))
