"""The list of the zoo's models: each is of a package that is pinned by its hash."""

import re

from rich.console import Console

from tests.zoo.__main__ import table
from tests.zoo.fetch import PACKAGES
from tests.zoo.models import MODELS
from tests.zoo.run import Outcome, smallest
from triton_plugin.validation.validate import check


def test_every_model_is_of_a_pinned_package_and_every_package_has_a_model() -> None:
    lines = PACKAGES.read_text(encoding="utf-8").splitlines()
    pinned = [re.fullmatch(r"([a-z0-9-]+)==[0-9a-z.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines]
    assert all(pinned)
    assert sorted({model.package for model in MODELS}) == sorted(each[1] for each in pinned if each)


def test_names_are_names_of_objects_and_distinct() -> None:
    names = [model.name for model in MODELS]
    assert len(set(names)) == len(names) >= 25
    assert all(re.fullmatch(r"[a-z0-9][-a-z0-9]{0,40}", name) for name in names)


def test_the_smallest_object_is_valid() -> None:
    assert [fault for model in MODELS for fault in check(smallest(model, "model.onnx", "0" * 64))] == []


def test_the_table_has_the_reason_of_what_is_not_ready() -> None:
    ready = Outcome(MODELS[0], True, "GeneratedInputs: ...", "1 of 1", 40.2)
    refused = Outcome(MODELS[1], False, "InputsNotGenerated: it is float64", "", 9.9)
    console = Console(width=150)
    with console.capture() as captured:
        console.print(table([ready, refused]))
    first, second = captured.get().splitlines()[1:3]
    assert first.split()[-5:] == ["yes", "1", "of", "1", "40"]
    assert "InputsNotGenerated: it is float64" in second
    assert "GeneratedInputs" not in first
