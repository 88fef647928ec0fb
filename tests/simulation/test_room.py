"""Room on GPUs that are all taken: an outage has an end, and nothing is stopped that frees nothing."""

from datetime import timedelta
from typing import Any

import pytest

from tests.simulation.answers import GOOD, Script, when
from tests.simulation.api_server import ApiServer, Body
from tests.simulation.cluster import Cluster
from tests.simulation.edits import another_version
from tests.simulation.moving import NEW_FILES
from tests.simulation.test_rollout import ONE_GPU, OTHER_SERVER, answering, on_gpus, replicas
from tests.states.deployment import a_deployment
from tests.states.pods import without_a_node
from triton_operator import names
from triton_operator.runtime.store import Key

DEADLINE = 120
EDITED = {**OTHER_SERVER, "progressDeadlineSeconds": DEADLINE}
SHORT = 3 * DEADLINE // 2
"""Steps in which every deadline of a test has passed."""


@pytest.fixture
def one_gpu() -> Cluster:
    """Ready on the only GPU."""
    return on_gpus(1, 1)


def longest_outage(cluster: Cluster, steps: int) -> int:
    """Seconds in a row in which nothing answered."""
    longest = now = 0
    for _ in cluster.steps(steps):
        now = 0 if answering(cluster) else now + 2
        longest = max(longest, now)
    return longest


def until_it_made_way(cluster: Cluster) -> str:
    """Passes and steps until the active server has no replicas; its name."""
    old = cluster.serving() or ""
    cluster.until(lambda _: replicas(cluster).get(old) == 0, 60)
    return old


def test_a_suspended_roll_out_gives_the_gpu_back_and_goes_on_later(one_gpu: Cluster) -> None:
    one_gpu.edit(serving=EDITED)
    old = until_it_made_way(one_gpu)
    one_gpu.edit(suspend=True)
    assert longest_outage(one_gpu, 100) < 30
    assert (one_gpu.serving(), answering(one_gpu)) == (old, 1)
    assert one_gpu.condition("Ready")["reason"] == "Suspended"
    assert f"{old} has the GPUs again" in one_gpu.condition("Ready")["message"]
    one_gpu.edit(suspend=False)
    one_gpu.settle()
    assert one_gpu.condition("Ready")["status"] == "True"
    assert one_gpu.serving() != old


def test_what_others_set_on_a_server_that_makes_way_stays_theirs(one_gpu: Cluster) -> None:
    old = one_gpu.serving() or ""
    one_gpu.objects["Deployment", old]["metadata"]["labels"]["mesh"] = "on"
    one_gpu.edit(serving=EDITED)

    def made_smaller(cluster: Cluster) -> list[dict[str, Any]]:
        servers = [each for each in cluster.intent().objects if each["kind"] == "Deployment"]
        return [each for each in servers if each["metadata"]["name"] == old and each["spec"]["replicas"] == 0]

    (wanted,) = made_smaller(one_gpu.until(made_smaller))
    assert "mesh" not in wanted["metadata"]["labels"]


def test_a_suspended_roll_out_stops_no_server(one_gpu: Cluster) -> None:
    one_gpu.edit(serving=EDITED)
    one_gpu.act()
    one_gpu.edit(suspend=True)
    assert longest_outage(one_gpu, 100) == 0


def test_a_measurement_that_no_node_takes_ends_the_outage(one_gpu: Cluster) -> None:
    words = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    one_gpu.scripts = when("measure", Script(pending={"phase": "Pending", "conditions": [words]}))
    one_gpu.edit(serving=EDITED)
    old = one_gpu.serving()
    assert longest_outage(one_gpu, 3 * SHORT) < 2 * DEADLINE
    assert (one_gpu.serving(), answering(one_gpu)) == (old, 1)
    assert one_gpu.condition("Stalled")["reason"] == "ProgressDeadlineExceeded"
    assert "did not begin in the time for which" in one_gpu.condition("Stalled")["message"]
    assert one_gpu.active("measure") == [], "a node that comes later would measure what is given up"


def test_a_full_queue_ends_the_outage() -> None:
    cluster = (
        a_deployment()
        .asking(gpu=ONE_GPU, conversion={"pod": {"labels": {names.QUEUE_LABEL: "gpus"}}})
        .where(gpus=1, quota=9)
        .settled()
        .cluster()
    )
    cluster.quota = 0
    cluster.edit(serving=EDITED)
    old = cluster.serving()
    assert longest_outage(cluster, 3 * SHORT) < 2 * DEADLINE
    assert (cluster.serving(), answering(cluster)) == (old, 1)


def test_a_target_that_was_ready_once_and_fails_ends_the_outage(one_gpu: Cluster) -> None:
    old = one_gpu.serving()
    one_gpu.scripts = when("measure", Script(hangs=True))
    one_gpu.edit(serving=EDITED)
    until_it_made_way(one_gpu)
    one_gpu.run(10)
    one_gpu.starts = lambda name: name == old
    assert longest_outage(one_gpu, 3 * SHORT) < 2 * DEADLINE
    assert (one_gpu.serving(), answering(one_gpu)) == (old, 1)
    assert one_gpu.condition("Stalled")["status"] == "True"
    assert one_gpu.active("measure") == [], "it would measure a server that is given up"


def too_slow(cluster: Cluster) -> str:
    """Roll out what is too slow through the preview; the name of what serves."""
    old = cluster.serving() or ""
    cluster.scripts = when("measure", Script(p99=20_000))
    cluster.edit(serving=EDITED)
    cluster.settle()
    assert (cluster.serving(), cluster.condition("Stalled")["reason"]) == (old, "ConstraintsNotMet")
    return old


def test_a_retry_after_a_broken_constraint_gets_room_again(one_gpu: Cluster) -> None:
    old = too_slow(one_gpu)
    one_gpu.scripts = lambda *_: Script()
    one_gpu.retry()
    one_gpu.settle()
    assert one_gpu.serving() != old
    assert one_gpu.condition("Ready")["status"] == "True"


def test_a_relaxed_constraint_lets_the_target_start_again(one_gpu: Cluster) -> None:
    old = too_slow(one_gpu)
    one_gpu.edit(selection={"constraints": {"maxP99Milliseconds": 50}})
    one_gpu.settle()
    assert one_gpu.serving() != old
    assert one_gpu.condition("Ready")["status"] == "True"


def late(cluster: Cluster) -> str:
    """Roll out what never gets ready; the name of what serves."""
    old = cluster.serving() or ""
    cluster.starts = lambda name: name == old
    cluster.edit(serving=EDITED)
    cluster.settle()
    assert (cluster.serving(), replicas(cluster)[old]) == (old, 1)
    assert cluster.condition("Stalled")["status"] == "True"
    return old


@pytest.mark.parametrize("how", ["a retry", "a longer deadline"])
def test_a_late_target_is_tried_again_when_asked(one_gpu: Cluster, how: str) -> None:
    old = late(one_gpu)
    one_gpu.starts = lambda name: True
    if how == "a retry":
        one_gpu.retry()
    else:
        one_gpu.edit(serving={**EDITED, "progressDeadlineSeconds": 2 * DEADLINE})
    one_gpu.settle()
    assert one_gpu.serving() != old
    assert one_gpu.condition("Ready")["status"] == "True"


def test_a_late_target_stays_down_without_being_asked_for(one_gpu: Cluster) -> None:
    old = late(one_gpu)
    one_gpu.starts = lambda name: True
    assert longest_outage(one_gpu, SHORT) == 0
    assert one_gpu.serving() == old


def test_a_target_for_which_nobody_could_make_room_is_not_late(one_gpu: Cluster) -> None:
    one_gpu.edit(serving=EDITED)
    one_gpu.until(lambda cluster: len(replicas(cluster)) == 2).run(3)
    one_gpu.now += timedelta(minutes=20)  # the operator is away
    one_gpu.settle()
    assert one_gpu.condition("Ready")["status"] == "True", one_gpu.condition("Ready")["message"]


@pytest.mark.parametrize("seconds", [20, 30])
def test_a_short_deadline_makes_room_in_time(one_gpu: Cluster, seconds: int) -> None:
    old = one_gpu.serving()
    one_gpu.edit(serving={**OTHER_SERVER, "progressDeadlineSeconds": seconds})
    one_gpu.settle()
    assert one_gpu.serving() != old


@pytest.mark.parametrize(
    "gpu",
    [{"resourceName": "nvidia.com/mig-1g.5gb", "count": 1}, {**ONE_GPU, "product": "NVIDIA-H100"}],
    ids=["another resource", "another product"],
)
def test_no_server_stops_for_a_target_that_its_gpu_does_not_help(gpu: dict[str, Any]) -> None:
    cluster = a_deployment().asking(gpu={**ONE_GPU, "product": "NVIDIA-A100"}).where(gpus=1).settled().cluster()
    cluster.edit(gpu=gpu, serving={"progressDeadlineSeconds": DEADLINE})
    cluster.gpus = 0
    assert longest_outage(cluster, SHORT) == 0


def test_no_server_stops_for_a_target_while_a_node_comes(one_gpu: Cluster) -> None:
    one_gpu.edit(serving={**OTHER_SERVER, "progressDeadlineSeconds": 1200})
    one_gpu.announces = True
    assert longest_outage(one_gpu, 60) == 0
    one_gpu.gpus = 2
    assert longest_outage(one_gpu, 60) == 0
    one_gpu.settle()
    assert one_gpu.condition("Ready")["status"] == "True"


def test_half_of_those_that_run_make_way_where_more_are_wanted_than_fit() -> None:
    cluster = a_deployment().asking(gpu=ONE_GPU, serving={"replicas": 4}).where(gpus=4).settled().cluster()
    old = cluster.serving() or ""
    cluster.gpus = 2
    for pod in cluster.pods_of(old)[2:]:
        cluster.delete("Pod", pod["metadata"]["name"])
    cluster.run(3)
    cluster.edit(serving={**EDITED, "replicas": 4})
    assert longest_outage(cluster, SHORT) == 0
    assert cluster.serving() != old
    assert answering(cluster) == 2


@pytest.mark.parametrize("count", [1, 2])
def test_a_refused_spec_gives_the_gpus_back_and_the_roll_out_goes_on_later(count: int) -> None:
    cluster = on_gpus(count, count)
    old = cluster.serving() or ""
    cluster.edit(serving={**EDITED, "replicas": count})
    cluster.until(lambda cluster: replicas(cluster)[old] < count)
    cluster.run(3)
    cluster.edit(conversion={"parallelism": 99})
    assert longest_outage(cluster, 40) < 30
    assert (cluster.serving(), answering(cluster)) == (old, count)
    assert cluster.condition("Ready")["reason"] == "InvalidSpec"
    cluster.edit(conversion={})
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.serving() != old


def test_pods_that_are_not_ready_make_way_before_the_last_that_answers() -> None:
    """They hold GPUs too, so the target gets as many as if all had been ready."""
    cluster = on_gpus(4, 4)
    old = cluster.serving() or ""
    cluster.unready = {pod["metadata"]["name"] for pod in cluster.pods_of(old)[1:]}
    cluster.edit(serving={**EDITED, "replicas": 4})
    kept = 4
    for _ in cluster.steps(SHORT):
        assert answering(cluster) > 0
        kept = min(kept, replicas(cluster).get(old, 4))
    assert kept == 2
    assert cluster.serving() != old
    assert answering(cluster) == 4


class LacksPods(ApiServer):
    """The store lacks pods that are there, because the watch of pods lags behind."""

    lacks: frozenset[str] = frozenset()

    def children(self, key: Key) -> list[Body]:
        return [each for each in super().children(key) if each["metadata"]["name"] not in self.lacks]


def test_an_exchange_believes_a_deployment_of_pods_that_are_not_seen() -> None:
    cluster = on_gpus(4, 4)
    unseen = frozenset(each["metadata"]["name"] for each in cluster.pods_of(cluster.serving() or "")[:3])
    cluster.edit(serving={**EDITED, "replicas": 4})
    for _ in range(60):
        api = LacksPods(cluster)
        api.lacks = unseen
        cluster.report(api)
        assert answering(cluster) >= 2
        cluster.step()


def test_a_quota_on_gpus_makes_room() -> None:
    cluster = on_gpus(1, 1)
    old = cluster.serving()
    cluster.gpu_quota = True
    cluster.edit(serving=EDITED)
    cluster.settle()
    assert cluster.serving() != old
    assert cluster.condition("Ready")["status"] == "True"


def test_fewer_replicas_in_the_middle_of_an_exchange_end_no_last_server() -> None:
    cluster = on_gpus(3, 3)
    old = cluster.serving() or ""
    cluster.starts = lambda name: name == old
    cluster.edit(serving={**EDITED, "replicas": 3})
    cluster.until(lambda _: replicas(cluster)[old] == 1, 60)
    cluster.edit(serving={**EDITED, "replicas": 1})
    assert longest_outage(cluster, SHORT) == 0


def test_an_active_revision_is_measured_with_the_pods_that_it_has() -> None:
    """An autoscaler that asks for more than fit must not keep the object from its measurement for ever."""
    cluster = on_gpus(2, 2)
    cluster.edit(performance={"online": {"concurrency": {"start": 1, "end": 2}}}, serving={"replicas": 3})
    cluster.settle()
    assert answering(cluster) == 2
    assert cluster.condition("PerformanceMeasured")["status"] == "True"


def test_a_new_version_on_the_only_gpu_waits_until_nothing_serves(one_gpu: Cluster) -> None:
    """Its Jobs need the GPU before its servers do, and take it from nobody."""
    old = one_gpu.serving()

    def on_the_gpu(stage: str, name: str, request: Any) -> Script:
        if stage == "source":
            return NEW_FILES
        is_full = stage in ("reference", "convert", "profile") and answering(one_gpu)
        return Script(pending=without_a_node()) if is_full else GOOD

    one_gpu.scripts = on_the_gpu
    one_gpu.edit(another_version())
    one_gpu.run(SHORT)
    assert (one_gpu.serving(), answering(one_gpu)) == (old, 1)
    assert (one_gpu.condition("Ready")["status"], one_gpu.condition("UpToDate")["reason"]) == ("True", "Unschedulable")
    one_gpu.edit(serving={"replicas": 0})
    one_gpu.run(SHORT)
    assert (one_gpu.condition("Selected")["status"], answering(one_gpu)) == ("True", 0)
    one_gpu.edit(serving={"replicas": 1})
    one_gpu.settle()
    assert one_gpu.serving() != old
    assert one_gpu.condition("Ready")["status"] == "True"
