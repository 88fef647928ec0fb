"""What counts as a difference between a cluster and `kubectl triton check`."""

import copy
from typing import Any

import pytest

from tests.local.doors.compare import row
from tests.local.doors.objects import OBJECTS
from tests.report.subjects import expected, golden
from triton_plugin.reading.subject import Subject, parse

Body = dict[str, Any]


def a_subject(change: Any = None) -> Subject:
    """Four candidates that passed, with a change of the status."""
    body, results = copy.deepcopy(golden("ready"))
    body["status"] = copy.deepcopy(expected("ready"))
    if change is not None:
        change(body["status"])
    return parse(body, results)


def slower(status: Body) -> None:
    """Other figures, and another choice."""
    first, third = status["candidates"][0], status["candidates"][2]
    first |= {"state": "Selected", "reason": "Selected"}
    third |= {"state": "Passed", "reason": "ConstraintsNotMet"}
    for each in status["candidates"]:
        each["throughput"] = str(float(each["throughput"]) / 2)


def another_reason(status: Body) -> None:
    """A condition says something else."""
    next(each for each in status["conditions"] if each["type"] == "Verified")["reason"] = "OutputsDiffer"


def failed(status: Body) -> None:
    """A candidate was refused."""
    status["candidates"][1] |= {"state": "Failed", "reason": "OutputsDiffer"}


def worse(status: Body) -> None:
    """A candidate is farther from the framework."""
    status["candidates"][0]["maxAbsoluteError"] = "0.5"


def another_signature(status: Body) -> None:
    """An output has another type."""
    status["signature"]["outputs"][0]["dataType"] = "TYPE_FP64"


def test_there_are_twelve_objects() -> None:
    assert len(OBJECTS) == 12


def test_figures_and_what_follows_from_them_are_no_difference() -> None:
    found = row("digits", a_subject(), a_subject(slower))
    assert found.differences == ()
    assert found.outcome == "Ready"
    assert len(found.choice.split(" / ")) == 2
    assert found.ratio.startswith("0.50, ")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (another_reason, "condition Verified: True"),
        (failed, "candidate "),
        (worse, "largest error of "),
        (another_signature, "signature: "),
    ],
)
def test_all_else_that_differs_is_told(change: Any, words: str) -> None:
    (told, *_) = row("digits", a_subject(), a_subject(change)).differences
    assert told.startswith(words)
    assert "; check: " in told
