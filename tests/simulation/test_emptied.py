"""A claim that somebody emptied: what is recorded is not there any more, and all is made again without a person."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.simulation.answers import GOOD, Script
from tests.simulation.test_repair import restart, running, saying, served
from tests.simulation.test_rollout import OTHER_SERVER, on_gpus, replicas
from tests.simulation.test_soak import promoted, with_clients
from tests.states.deployment import a_deployment
from triton_converters.contract.reasons import Reason

GONE = Script(exit_code=1, reason=Reason.INPUT_MISSING, message="sources/c0ffee is no longer on the repository claim")


class Emptied:
    """Jobs on a claim that was emptied: each needs what an earlier one has published since."""

    def __init__(self) -> None:
        self.published: set[str] = set()

    def __call__(self, stage: str, candidate: str, request: Any) -> Script:
        needed = {"source": set(), "reference": {"source"}}.get(stage, {"source", "reference"})
        if needed - self.published:
            return GONE
        self.published.add(stage)
        return GOOD


def test_an_emptied_claim_is_filled_again_once_a_server_finds_it_so() -> None:
    cluster = served()
    first = cluster.status["serving"]["revision"]
    cluster.damaged, cluster.scripts = saying([first], Reason.RESULT_MISSING), Emptied()
    restart(cluster)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert running(cluster) == [cluster.status["serving"]["revision"]] != [first]
    assert (cluster.started("source"), cluster.started("reference")) == (2, 2)


def gone(*stages: str) -> Callable[[str, str, Any], Script]:
    """Jobs of these stages never find what others have published, as on volumes that differ by node."""
    return lambda stage, candidate, request: GONE if stage in stages else GOOD


@pytest.mark.parametrize("stage", ["reference", "convert", "profile"])
def test_what_stays_missing_is_told_and_looked_for_ever_more_seldom(stage: str) -> None:
    cluster = a_deployment().one_candidate().cluster()
    cluster.scripts = gone(stage)
    told = set()
    for _ in cluster.steps(300):
        told.add((cluster.condition("Stalled")["status"], GONE.message in cluster.condition("Ready")["message"]))
    assert ("True", True) in told
    assert 3 <= cluster.started("source") < 10
    cluster.scripts = gone()
    cluster.run(300)
    assert cluster.condition("Ready")["status"] == "True"
    assert "InputMissing" not in str(cluster.objects["ConfigMap", "digits-results"]["data"])


def test_what_stays_missing_stops_what_serves_twice_at_most() -> None:
    cluster = on_gpus(1, 1)
    old = cluster.serving() or ""
    cluster.scripts = gone("measure")
    cluster.edit(serving=OTHER_SERVER)
    stops, before = 0, 1
    for _ in cluster.steps(300):
        stops, before = stops + (before > 0 and replicas(cluster)[old] == 0), replicas(cluster)[old]
    assert (stops <= 2, replicas(cluster)[old]) == (True, 1)
    assert cluster.condition("PerformanceMeasured")["reason"] == "InputMissing"


def test_what_is_known_of_servers_is_not_forgotten_with_the_claim() -> None:
    cluster = with_clients()
    promoted(cluster)
    cluster.run(4)
    known = [name for name in cluster.objects["ConfigMap", "digits-results"]["data"] if name.startswith("snapshot.")]
    cluster.scripts = Emptied()
    cluster.edit(models=[{**cluster.spec["models"][0], "config": {"maxBatchSize": 16}}])
    cluster.until(lambda now: now.started("source") == 2)
    assert known
    assert set(known) <= set(cluster.objects["ConfigMap", "digits-results"]["data"])


def test_an_emptied_claim_is_filled_again_by_the_next_edit() -> None:
    cluster = served()
    cluster.scripts = Emptied()
    cluster.edit(models=[{**cluster.spec["models"][0], "config": {"maxBatchSize": 4}}])
    for _ in cluster.passes(until=lambda now: now.started("source") == 2):
        assert cluster.condition("Available")["status"] == "True", "what serves goes on"
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
