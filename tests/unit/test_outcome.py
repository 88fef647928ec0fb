"""What a pass tells of its plan, for each way in which that was carried out."""

from datetime import UTC, datetime
from typing import Any

import pytest

from triton_converters.contract.reasons import Reason
from triton_operator.api.status import ConditionType, TritonDeploymentStatus
from triton_operator.kube.errors import ClusterError, ForbiddenError, ServerError
from triton_operator.planning.plan import Plan
from triton_operator.planning.summary import SummaryFacts
from triton_operator.runtime.outcome import Carried, outcome_of
from triton_operator.runtime.writing import Failures

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
OWNER: dict[str, Any] = {"metadata": {"name": "digits", "generation": 3}}
PLAN = Plan((), (), TritonDeploymentStatus(), (), None, SummaryFacts(True, False, True, True, False, False, False))
REFUSED, FAILED = ForbiddenError("Job a: exceeded quota"), ServerError("Service b: etcd is slow")
UNSCALED = ForbiddenError("ScaledObject c: already managed")


def carried(failures: list[ClusterError], *unscaled: ClusterError) -> Carried:
    without: dict[ConditionType, Failures] = {"Autoscaling": Failures(unscaled)} if unscaled else {}
    return Carried(PLAN, True, [], Failures(failures), without)


@pytest.mark.parametrize(
    ("failures", "reason", "words"),
    [
        ([], None, ""),
        ([FAILED], Reason.APPLY_FAILED, "the operator tries again: Service b: etcd is slow"),
        ([REFUSED], Reason.APPLY_REFUSED, "Job a: exceeded quota"),
        ([FAILED, REFUSED], Reason.APPLY_REFUSED, "Job a: exceeded quota"),
    ],
)
@pytest.mark.parametrize("unscaled", [(), (UNSCALED,)])
def test_a_refusal_is_told_before_what_may_pass_by_itself(
    failures: list[ClusterError], unscaled: tuple[ClusterError, ...], reason: Reason | None, words: str
) -> None:
    plan, setback = outcome_of(OWNER, carried(failures, *unscaled), NOW)
    assert (setback.reason if setback else None) == reason
    assert setback is None or setback.message.endswith(words)
    conditions = {each.type: (each.status, each.reason, each.message) for each in plan.status.conditions}
    message = "ScaledObject c: already managed; the replicas stay as they are"
    assert conditions == ({"Autoscaling": ("False", "ApplyRefused", message)} if unscaled else {})


def test_a_plan_that_was_carried_out_is_told_as_it_is() -> None:
    assert outcome_of(OWNER, carried([]), NOW) == (PLAN, None)


def test_what_others_need_comes_first_among_all_that_failed() -> None:
    assert carried([FAILED, REFUSED], UNSCALED).all_failures == [FAILED, REFUSED, UNSCALED]
    assert carried([], UNSCALED).all_failures == [UNSCALED]
    assert carried([]).all_failures == []
