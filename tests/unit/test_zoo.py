"""The list of the zoo's models, each of a package that is pinned by its hash or made by one, and its rows."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from hack.docs.zoo import pages
from tests.zoo.fetch import CODE, MAKERS, PACKAGES
from tests.zoo.models import MODELS
from tests.zoo.outcome import Outcome, are_enough, read, smallest, summary, worse, write
from tests.zoo.refusals import REFUSALS, refusal
from triton_plugin.drafting.validation.validate import check

READY = Outcome(MODELS[0], True, "GeneratedInputs: ...", "1 of 1", 40.2, 4)
REFUSED = Outcome(MODELS[1], False, "InputsNotGenerated: it is float64", "", 9.9)
EXPLAINED = replace(REFUSED, reason="InputsNotGenerated: x; write a dataloader and name it in spec.dataloader")


def pinned(file: Path) -> list[str]:
    """Names of a list's packages, each of which has a hash."""
    lines = file.read_text(encoding="utf-8").splitlines()
    found = [re.fullmatch(r"([a-z0-9-]+)==[0-9a-z.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines]
    assert all(found)
    return sorted(each[1] for each in found if each)


def test_every_model_is_of_a_pinned_package_and_every_package_has_a_model() -> None:
    assert sorted({model.package for model in MODELS if not model.maker}) == pinned(PACKAGES)


def test_every_maker_is_there_and_its_packages_are_pinned() -> None:
    assert {model.maker for model in MODELS} - {""} == {each.stem for each in MAKERS.glob("*.py")}
    assert {"skl2onnx", "onnxmltools", "transformers"} <= set(pinned(MAKERS / "packages.txt"))
    assert {model.code for model in MODELS} - {""} == {each.name for each in CODE.iterdir()}


def test_names_are_names_of_objects_and_distinct() -> None:
    names = [model.name for model in MODELS]
    assert len(set(names)) == len(names) >= 60
    assert all(re.fullmatch(r"[a-z0-9][-a-z0-9]{0,40}", name) for name in names)


def test_the_smallest_object_is_valid() -> None:
    assert [fault for model in MODELS for fault in check(smallest(model, "model.onnx", "0" * 64))] == []


def test_a_row_has_the_reason_of_what_is_not_ready() -> None:
    assert READY.line() == f"{MODELS[0].name}  Ready  1 of 1  40 s"
    assert REFUSED.line() == f"{MODELS[1].name}  InputsNotGenerated: it is float64  10 s"


def test_nine_of_ten_are_enough_if_the_others_are_refused_for_a_reason_of_the_list() -> None:
    assert summary([READY] * 8 + [EXPLAINED, REFUSED]) == (
        "8 of 10 ready (80 %), 1 refused for a reason of tests/zoo/refusals.py"
    )
    assert are_enough([READY] * 9 + [EXPLAINED])
    assert are_enough([READY] * 19 + [REFUSED])
    assert not are_enough([READY] * 9 + [REFUSED])
    assert not are_enough([READY] * 8 + [EXPLAINED] * 2)
    assert not are_enough([])


@pytest.mark.parametrize(
    ("reason", "is_listed"),
    [
        ("InputsNotGenerated: NaN; write a dataloader and name it in spec.dataloader", True),
        (
            "AllCandidatesFailed: x: ConversionUnsupported: tf2onnx 1 cannot convert TensorFlow's X; use format",
            True,
        ),
        ("AllCandidatesFailed: onnx-fp32: OutputsDiffer: write a dataloader and name it in spec.dataloader", False),
        ("Crashed: reference", False),
        ("", False),
    ],
)
def test_only_reasons_of_the_list_are_right(reason: str, is_listed: bool) -> None:
    assert bool(refusal(reason)) is is_listed


def test_a_model_that_was_ready_and_is_not_is_worse(tmp_path: Path) -> None:
    file = tmp_path / "zoo.json"
    write(file, [READY, REFUSED], "cluster")
    lost = replace(READY, is_ready=False)
    assert worse(read(file), [lost, REFUSED]) == [READY.model.name]
    assert worse(read(file), [READY, REFUSED]) == []
    write(file, [READY], "rehearsal")
    assert worse(read(file), [lost]) == []


def test_rows_of_another_run_stay_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "zoo.json"
    write(file, [READY, REFUSED], "rehearsal")
    write(file, [READY], "cluster")
    assert [
        (row["model"]["name"], row["run"], row["is_ready"], row["batch"])
        for row in json.loads(file.read_text(encoding="utf-8"))
    ] == [(MODELS[0].name, "cluster", True, 4), (MODELS[1].name, "rehearsal", False, None)]


def test_the_page_names_each_model() -> None:
    (text,) = pages().values()
    assert [model.name for model in MODELS if f"`{model.name}` (" not in text] == []


def test_the_page_lists_what_counts_as_a_right_refusal() -> None:
    (text,) = pages().values()
    _, _, listed = text.partition("### Refusals that count as right\n")
    assert [needs for needs in REFUSALS if f"- {needs}: `" not in listed] == []
