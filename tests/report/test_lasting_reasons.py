"""What to do about a failure that is not tried again by itself says how to have it tried again."""

import copy

import pytest

from tests.report.subjects import golden
from triton_converters.contract.reason_kinds import Kind
from triton_converters.contract.reasons import Reason, of_kinds
from triton_plugin.reading.subject import parse
from triton_plugin.telling.advice import NEXT_VERSION, advice
from triton_plugin.telling.explain import explain

VERSION, RETRY = "set a new spec.source.version", "kubectl triton retry NAME"


@pytest.mark.parametrize("reason", sorted(of_kinds(Kind.FILES, Kind.RETRY, Kind.EITHER)))
def test_the_advice_says_how_it_is_tried_again(reason: Reason) -> None:
    text = advice(str(reason))
    assert VERSION in text or reason.kind is Kind.RETRY, text
    assert RETRY in text or reason.kind is Kind.FILES, text


@pytest.mark.parametrize("field", ["mountPath", "scratchPaths"])
def test_a_step_that_failed_at_a_path_that_is_not_there_is_told_of_the_fields_for_it(field: str) -> None:
    assert field in advice("UserCodeFailed")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({}, VERSION),
        ({"sha256": "0" * 64}, "set spec.source.sha256 to the new digest"),
        (
            {"uri": "hf://acme/ocr", "interval": "1h"},
            NEXT_VERSION,
        ),
    ],
    ids=["plain", "pinned", "followed"],
)
def test_an_object_learns_of_changed_files_by_what_its_source_says(source: dict[str, str], words: str) -> None:
    body = copy.deepcopy(golden("profiling")[0])
    body["spec"]["source"] |= source
    verified = next(each for each in body["status"]["conditions"] if each["type"] == "Verified")
    verified |= {"status": "False", "reason": "UserCodeFailed", "message": "model.py, line 3: no"}
    text = explain(parse(body, None))
    assert f", then {words}." in text
    assert (VERSION in text) == (words == VERSION)
