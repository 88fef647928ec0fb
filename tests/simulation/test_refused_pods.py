"""Pods that admission refuses: whether time helps, and how the object goes on."""

import pytest

from tests.simulation.controllers import QUOTA
from tests.states.deployment import a_deployment

LIMIT_RANGE = 'pods "x" is forbidden: maximum memory usage per Container is 4Gi, but limit is 16Gi'


@pytest.mark.parametrize("before", ["", "source", "convert", "profile"])
def test_pods_that_no_time_lets_in_stall_the_object_until_somebody_changes_that(before: str) -> None:
    cluster = a_deployment().one_candidate().cluster()
    cluster.until(lambda _: not before or (cluster.started(before) and not cluster.active(before)))
    cluster.admission = LIMIT_RANGE
    cluster.until_has("PodRefused", "Stalled")
    assert cluster.condition("Stalled")["status"] == "True"
    assert cluster.condition("Reconciling")["status"] == "False"
    assert LIMIT_RANGE in cluster.condition("Ready")["message"]
    cluster.run(20)
    assert cluster.has("PodRefused", "Stalled")
    cluster.admission = ""
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_a_quota_that_may_have_room_later_stalls_nothing() -> None:
    cluster = a_deployment().one_candidate().cluster()
    cluster.admission = QUOTA
    cluster.run(25)
    assert cluster.has("ApplyRefused", "Ready", QUOTA)
    assert cluster.condition("Stalled")["status"] == "False"
