"""How verdicts become conditions, and how reasons of other versions are read."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.states.moments import MOMENTS
from tests.states.passes import planned
from triton_converters.contract.reasons import Reason
from triton_operator.api.status import CandidateStatus, Condition, ConditionType, TritonDeploymentStatus
from triton_operator.api.triton_deployment import parse_status
from triton_operator.effects import Statement, conditions_of
from triton_operator.planning.summary import SUMMARY, summary_truths

OPERATOR = Path(__file__).parents[2] / "operator/triton_operator"
NOW = datetime(2026, 11, 26, 10, 0, 5, tzinfo=UTC)
WORDS = {True: "True", False: "False", None: "Unknown"}
STATUSES = st.sampled_from([True, False, None])
STATEMENTS = st.builds(
    Statement,
    st.sampled_from(get_args(ConditionType)),
    STATUSES,
    st.sampled_from(Reason),
    st.text(max_size=2000),
)


def one(kind: ConditionType, status: bool | None, old: list[Condition], now: datetime = NOW) -> Condition:
    (found,) = conditions_of([Statement(kind, status, Reason.RUNNING, "it runs")], old, 7, now)
    return found


@pytest.mark.parametrize("before", WORDS)
@pytest.mark.parametrize("after", WORDS)
def test_the_time_is_that_of_the_last_change_of_the_status(before: bool | None, after: bool | None) -> None:
    old = [one("Ready", before, []), one("Stalled", after, [], NOW - timedelta(days=1))]
    found = one("Ready", after, old, NOW + timedelta(hours=1))
    assert found.status == WORDS[after]
    assert found.last_transition_time == ("2026-11-26T10:00:05Z" if before is after else "2026-11-26T11:00:05Z")


@given(st.lists(STATEMENTS, unique_by=lambda each: each.type), st.integers(1, 1000))
def test_what_is_said_again_is_equal_whenever_it_is_said(verdicts: list[Statement], hours: int) -> None:
    first = conditions_of(verdicts, [], 3, NOW)
    assert conditions_of(verdicts, first, 3, NOW + timedelta(hours=hours)) == first
    assert [(each.type, each.status, each.reason) for each in first] == [
        (each.type, WORDS[each.status], each.reason) for each in verdicts
    ]


def test_a_time_that_somebody_emptied_begins_anew() -> None:
    old = one("Ready", True, []).model_copy(update={"last_transition_time": ""})
    assert one("Ready", True, [old]).last_transition_time == "2026-11-26T10:00:05Z"


def test_no_other_module_makes_a_condition() -> None:
    made = re.compile(r"\bCondition\((?!StatusType)")
    calls = [path.name for path in sorted(OPERATOR.rglob("*.py")) if made.search(path.read_text(encoding="utf-8"))]
    assert calls == ["effects.py"], "one function makes them, so that no time of a change is lost"


def test_a_reason_of_this_version_is_a_member() -> None:
    status = read("Running")
    assert status.conditions[0].reason is Reason.RUNNING
    assert status.candidates[0].reason is Reason.RUNNING


@pytest.mark.parametrize("reason", ["ForecastToFail", "", "R" * 63])
def test_a_reason_of_another_version_is_read_and_kept(reason: str) -> None:
    status = read(reason)
    assert (status.conditions[0].reason, status.candidates[0].reason) == (reason, reason)
    written = status.model_dump(mode="json", by_alias=True)
    assert written["conditions"][0]["reason"] == written["candidates"][0]["reason"] == reason
    assert one("Ready", True, status.conditions).last_transition_time == "2026-11-25T00:00:00Z", "it is no change"


@pytest.mark.parametrize("reason", [None, 3, True, [], ["Running"], {"Running": 1}])
def test_a_reason_that_is_no_text_costs_that_one_entry(reason: Any) -> None:
    status = read(reason)
    assert status.conditions == []
    assert [(each.name, each.reason) for each in status.candidates] == [("onnx-fp32", None)]


def test_a_candidate_without_a_reason_says_none() -> None:
    assert CandidateStatus(name="onnx-fp32", state="Pending").reason is None


def read(reason: Any) -> TritonDeploymentStatus:
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": reason,
        "message": "m",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-11-25T00:00:00Z",
    }
    candidate = {"name": "onnx-fp32", "state": "Profiling", "reason": reason}
    return parse_status({"status": {"conditions": [condition], "candidates": [candidate]}})


@pytest.mark.parametrize("case", sorted(MOMENTS))
def test_a_plan_carries_the_facts_that_decided_its_conditions(case: str) -> None:
    wanted = planned(case)
    said = {each.type: each.status == "True" for each in wanted.status.conditions if each.type in SUMMARY}
    assert said == summary_truths(wanted.facts)
