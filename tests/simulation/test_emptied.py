"""A claim that somebody emptied: what is recorded is not there any more, and all is made again without a person."""

from typing import Any

from tests.simulation.answers import GOOD, Script
from tests.simulation.test_repair import restart, running, saying, served
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


def test_an_emptied_claim_is_filled_again_by_the_next_edit() -> None:
    cluster = served()
    cluster.scripts = Emptied()
    cluster.edit(models=[{**cluster.spec["models"][0], "config": {"maxBatchSize": 4}}])
    for _ in cluster.passes(until=lambda now: now.started("source") == 2):
        assert cluster.condition("Available")["status"] == "True", "what serves goes on"
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
