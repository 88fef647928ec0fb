"""What may be in the way of a revision that is served again, and what becomes of the one that serves."""

from typing import Any

import pytest

from tests.simulation.answers import FINAL, when
from tests.simulation.cluster import Cluster
from tests.simulation.moving import NEW_FILES
from tests.simulation.test_repair import restart, saying
from tests.simulation.test_rollback import RESULTS, active, keys, one_candidate, roll_back, version
from tests.simulation.test_rollout import ONE_GPU, answering

SHORT = {"progressDeadlineSeconds": 60}


class OneGpu(Cluster):
    """A pod without a GPU does not get so far as to look at its revision."""

    def _schedule(self, pod: dict[str, Any]) -> None:
        damaged = self.damaged
        if self._is_full(pod["spec"]):
            self.damaged = lambda revision: ""
        super()._schedule(pod)
        self.damaged = damaged


def served(**fields: Any) -> Cluster:
    """The second source serves, and the first one did."""
    return second(Cluster(one_candidate(**version(1)) | fields))


def second(cluster: Cluster) -> Cluster:
    cluster.settle()
    cluster.edit(**version(2))
    cluster.settle()
    return cluster


def on_one_gpu(**fields: Any) -> Cluster:
    return second(OneGpu(one_candidate(gpu=ONE_GPU, **version(1)) | fields, gpus=1))


def idle(cluster: Cluster, steps: int) -> int:
    """For how many steps nothing answers."""
    found = 0
    for _ in range(steps):
        cluster.act()
        cluster.step()
        found += answering(cluster) == 0
    return found


# Damaged files -----------------------------------------------------------------------------------------------------


def test_one_gpu_is_not_kept_idle_by_a_damaged_revision() -> None:
    cluster = on_one_gpu()
    newest, first = keys(cluster)
    cluster.damaged = saying([first])
    roll_back(cluster, first)
    assert idle(cluster, 330) < 60
    assert f"damaged.{first}" in cluster.objects[RESULTS]["data"]
    assert (active(cluster), cluster.condition("Ready")["reason"]) == (newest, "RepositoryDamaged")
    roll_back(cluster, None)
    cluster.settle()
    roll_back(cluster, first)
    assert idle(cluster, 330) == 0, "what is known of it is enough"
    cluster.retries += 1
    assert 0 < idle(cluster, 330) < 60, "a retry tries once"
    cluster.damaged = saying([])
    cluster.retries += 1
    cluster.settle()
    assert (active(cluster), cluster.condition("Ready")["status"]) == (first, "True")


def test_what_is_held_and_was_damaged_says_what_helps() -> None:
    cluster = served()
    before = keys(cluster)[1]
    roll_back(cluster, before)
    cluster.settle()
    cluster.damaged = saying([before])
    restart(cluster)
    cluster.run(40)
    assert answering(cluster) == 0
    assert cluster.condition("Stalled")["status"] == "True"
    assert "name another one in spec.rollout.revision, or remove the field" in cluster.condition("Ready")["message"]
    roll_back(cluster, None)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


# Room and deadlines ------------------------------------------------------------------------------------------------


def test_the_active_one_makes_way_though_the_spec_has_no_gpu_any_more() -> None:
    cluster = on_one_gpu(serving=SHORT)
    first = keys(cluster)[1]
    cluster.scripts = when("convert", FINAL)
    del cluster.spec["gpu"]
    cluster.edit()
    cluster.settle()
    roll_back(cluster, first)
    cluster.run(60)
    assert active(cluster) == first, cluster.condition("Ready")["message"]


def test_no_deadline_counts_while_a_suspension_alone_keeps_its_gpu_from_it() -> None:
    cluster = on_one_gpu(serving=SHORT)
    newest, first = keys(cluster)
    cluster.edit(suspend=True, rollout={"revision": first})
    assert idle(cluster, 60) == 0
    assert (active(cluster), cluster.condition("Stalled")["status"]) == (newest, "False")
    assert cluster.condition("Ready")["reason"] == "Suspended"
    cluster.edit(suspend=False)
    cluster.run(60)
    assert active(cluster) == first, cluster.condition("Ready")["message"]


def test_a_restart_of_what_was_late_once_is_no_stall() -> None:
    cluster = served(serving=SHORT)
    before, serving = keys(cluster)[1], cluster.serving()
    cluster.starts = lambda name: name == serving
    roll_back(cluster, before)
    cluster.run(50)
    assert cluster.condition("Ready")["reason"] == "ProgressDeadlineExceeded"
    cluster.starts = lambda name: True
    cluster.settle()
    assert (active(cluster), cluster.condition("Ready")["status"]) == (before, "True")
    cluster.starts = lambda name: False
    restart(cluster)
    cluster.run(2)
    assert answering(cluster) == 0
    assert cluster.condition("Stalled")["status"] == "False", cluster.condition("Stalled")["message"]


# What is said, and what comes after it -----------------------------------------------------------------------------


def test_what_failed_to_come_back_is_not_said_to_have_figures() -> None:
    cluster = served(serving=SHORT)
    before, serving = keys(cluster)[1], cluster.serving()
    told = {part: cluster.status[part] for part in ("performance", "signature", "source")}
    cluster.starts = lambda name: name == serving
    roll_back(cluster, before)
    cluster.run(60)
    assert {part: cluster.status.get(part) for part in told} == told
    assert "has its figures" not in cluster.condition("PerformanceMeasured")["message"]


def test_an_unknown_revision_leaves_what_is_told_of_the_source() -> None:
    cluster = served()
    source = cluster.status["source"]
    cluster.edit(rollout={"revision": "0123456789abcdef"}, **version(3))
    cluster.settle()
    assert (cluster.condition("Ready")["reason"], cluster.status["source"]) == ("RevisionUnknown", source)


def test_after_a_rollback_an_approval_is_awaited() -> None:
    cluster = served()
    newest, before = keys(cluster)
    selection = {"constraints": {"p99Latency": "10ms"}, "approval": "Manual", "approvedRevision": newest}
    cluster.edit(selection=selection, rollout={"revision": before})
    cluster.settle()
    cluster.edit(rollout={}, **version(3))
    cluster.settle()
    assert cluster.condition("Ready")["reason"] == "AwaitingApproval", cluster.condition("Ready")["message"]


@pytest.mark.parametrize("restarts", [False, True])
def test_to_hold_what_serves_and_to_let_go_turns_no_failed_training_into_a_stall(restarts: bool) -> None:
    cluster = served()
    newer, fails = when("source", NEW_FILES), when("convert", FINAL)
    cluster.scripts = lambda stage, name, run: newer(stage, name, run) if stage == "source" else fails(stage, name, run)
    cluster.edit(source={**cluster.spec["source"], "version": "tonight"})
    cluster.settle()
    said = [cluster.condition(each)["status"] for each in ("Ready", "UpToDate", "Stalled")]
    assert said == ["True", "False", "False"]
    roll_back(cluster, active(cluster))
    cluster.settle()
    if restarts:
        restart(cluster)
        cluster.settle()
    roll_back(cluster, None)
    cluster.settle()
    assert [cluster.condition(each)["status"] for each in ("Ready", "UpToDate", "Stalled")] == said
