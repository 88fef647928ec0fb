"""The soak of a new revision: how long both revisions stay, what the verdicts are, and what an undo leaves."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest

from tests.simulation.answers import FINAL, GOOD, Script, when
from tests.simulation.api_server import KEY, ApiServer, Body
from tests.simulation.cluster import METRICS, STEP, Cluster
from tests.simulation.edits import Edit, a_narrower_batch, a_wider_batch, another_source, the_usual_batch
from tests.states.deployment import State, a_deployment
from tests.states.pods import without_a_node
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Counters
from triton_operator.kube.kinds import ApiKind
from triton_operator.rollout import trial
from triton_operator.runtime.reconcile import Reconciler
from triton_operator.runtime.store import Key

BORN = datetime(2026, 11, 21, tzinfo=UTC)
SOAK = {"duration": "30s", "minRequests": 100}
WINDOW = int(30 / STEP.total_seconds()) + 30
"""Steps, which take longer than a soak and its Jobs."""
SWEEP = Counters("", 20_000, 0, 20_000 * 50_000)
"""The load of a server's own measurement, at which requests wait."""


@dataclass
class Clients:
    """Clients that ask every server at the same rate, and what its counters make of that."""

    cluster: Cluster
    first: str
    """Name of the Deployment that was active first."""
    rate: float = 10.0
    """Requests per second and pod."""
    slower: float = 1.0
    """How much longer a request takes in other Deployments."""
    failing: float = 0.0
    """The share of requests that fail there."""
    until: datetime | None = None
    """When they stopped asking; None: they ask."""
    only: Callable[[str], bool] = field(default=lambda pod: True)
    """Whether that is so in a pod of that name."""

    def __call__(self, pod: str) -> Counters:
        """The counters of a pod now."""
        asked = (self.until or self.cluster.now) - BORN
        requests = int(asked.total_seconds() * self.rate)
        ill = not pod.startswith(f"{self.first}-") and self.only(pod)
        failed = int(requests * self.failing) if ill else 0
        microseconds = int((requests - failed) * 2000 * (self.slower if ill else 1.0))
        return Counters(
            pod, SWEEP.succeeded + requests - failed, SWEEP.failed + failed, SWEEP.microseconds + microseconds
        )


def asking(soak: dict[str, Any] | None = None, **serving: Any) -> dict[str, Any]:
    return {"serving": {"soak": SOAK if soak is None else soak, **serving}}


def swept(pod: str) -> Counters:
    """The metrics of a server that only the measurement has asked."""
    return replace(SWEEP, pod=pod)


def not_soaked_yet() -> State:
    """An object whose first revision is active, and that asks for a soak."""
    return a_deployment().one_candidate().asking(**asking()).where(counters=swept).settled()


def with_clients() -> Cluster:
    """The same, with clients that ask for half a minute already."""
    cluster = not_soaked_yet().cluster()
    ask(cluster)
    return cluster


@pytest.fixture
def before() -> Cluster:
    return not_soaked_yet().cluster()


@pytest.fixture
def cluster() -> Cluster:
    return with_clients()


def ask(cluster: Cluster, **fields: Any) -> Clients:
    clients = Clients(cluster, cluster.serving() or "", **fields)
    cluster.counters = clients
    cluster.run(15)
    return clients


def clients(cluster: Cluster) -> Clients:
    found = cluster.counters
    assert isinstance(found, Clients)
    return found


def promoted(cluster: Cluster, edit: Edit | None = None, /, **fields: Any) -> tuple[str, str]:
    """Edit the object, by default to a wider batch, up to the promotion; the Deployments' names before and after."""
    old = cluster.serving() or ""
    cluster.edit(edit or a_wider_batch(), **fields)
    for _ in cluster.passes(300):
        if cluster.serving() != old:
            return old, cluster.serving() or ""
    raise AssertionError(f"no promotion: {cluster.status['conditions']}")


def soaked(cluster: Cluster) -> tuple[str, str]:
    found = cluster.condition("Soaked")
    return found["status"], found["reason"]


def summary(cluster: Cluster) -> list[tuple[str, str]]:
    found = (cluster.condition(kind) for kind in ("Ready", "Reconciling", "Stalled"))
    return [(each["status"], each["reason"]) for each in found]


def servers(cluster: Cluster) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.of_kind("Deployment")}


CONTINUE = {"rollout": {"onInconclusive": "Continue"}}
KEPT = [("True", "Ready"), ("False", "Ready"), ("False", "NoStall")]
UNDONE = [("False", "SoakFailed"), ("False", "SoakFailed"), ("True", "SoakFailed")]


def test_without_the_field_the_old_revision_goes_at_the_promotion(serving: Cluster) -> None:
    promoted(serving)
    serving.settle()
    assert len(servers(serving)) == 1
    assert serving.started("snapshot") == 0
    assert all(each["type"] != "Soaked" for each in serving.status["conditions"])
    assert ("NetworkPolicy", "digits-snapshot") not in serving.objects


def test_the_first_revision_is_not_soaked(before: Cluster) -> None:
    assert soaked(before) == ("Unknown", "Waiting")
    assert summary(before) == KEPT
    assert before.started("snapshot") == 1, "what its measurement counted, to be taken off later"


def test_both_revisions_run_until_the_verdict(cluster: Cluster) -> None:
    old, new = promoted(cluster)
    cluster.run(8)
    assert servers(cluster) == {old, new}
    assert soaked(cluster) == ("Unknown", "Soaking")
    assert summary(cluster) == [("True", "Ready"), ("True", "Progressing"), ("False", "NoStall")]
    assert 0 < (cluster.intent().requeue_after or 0) <= 30
    cluster.settle()
    assert (cluster.serving(), servers(cluster)) == (new, {new})
    assert soaked(cluster) == ("True", "SoakPassed")
    assert summary(cluster) == KEPT
    assert cluster.started("snapshot") == 3
    assert [each.type for each in cluster.events if each.reason == Reason.SOAKING] == ["Normal"]


def test_the_load_of_a_measurement_is_no_traffic(cluster: Cluster) -> None:
    promoted(cluster)
    cluster.settle()
    message = cluster.condition("Soaked")["message"]
    assert "the mean latency is 2 ms" in message
    assert "was 2 ms before" in message


@pytest.mark.parametrize(
    ("ills", "words"),
    [
        ({"failing": 0.05}, "requests failed in pod"),
        ({"failing": 1.0}, "100 % of"),
        ({"slower": 1.5}, "50 % more, and maxLatencyPercent is 40"),
    ],
)
def test_a_revision_that_does_worse_is_undone(cluster: Cluster, ills: dict[str, float], words: str) -> None:
    told = cluster.status["serving"], cluster.status["performance"]
    vars(clients(cluster)).update(ills)
    old, new = promoted(cluster)
    cluster.run(6)
    assert cluster.status["serving"]["revision"] != told[0]["revision"]
    cluster.settle()
    assert (cluster.serving(), servers(cluster)) == (old, {old})
    assert (soaked(cluster), summary(cluster)) == (("False", "SoakFailed"), UNDONE)
    assert words in cluster.condition("Stalled")["message"]
    assert new in cluster.condition("Stalled")["message"]
    assert (cluster.status["serving"], cluster.status["performance"]) == told
    assert [each.type for each in cluster.events if each.message.startswith("Stalled")] == ["Warning"]


def test_what_tells_of_an_undo_tells_of_the_revision_before_too(cluster: Cluster) -> None:
    """A status is read as a whole: no one holds the figures of one revision and the verdict on the other."""
    told = cluster.status["serving"]
    clients(cluster).failing = 0.5
    promoted(cluster)
    cluster.until(lambda cluster: cluster.condition("Stalled")["status"] == "True")
    assert (cluster.status["serving"]["revision"], cluster.status["serving"]["selector"]) == (
        told["revision"],
        told["selector"],
    )


def test_other_settings_of_the_server_are_soaked_too(cluster: Cluster) -> None:
    """The revision on the claim is the same; its server is not."""
    told = cluster.status["serving"], cluster.status["performance"]
    clients(cluster).failing = 0.5
    other = asking(arguments=["--backend-config=default-max-batch-size=4"])
    old, new = promoted(cluster, the_usual_batch(), **other)
    cluster.settle()
    assert (cluster.serving(), summary(cluster), new in servers(cluster)) == (old, UNDONE, False)
    assert (cluster.status["serving"], cluster.status["performance"]) == told


def test_a_suspended_object_reads_no_counters(cluster: Cluster) -> None:
    """It keeps both revisions, and judges once it is no longer suspended."""
    old, new = promoted(cluster)
    started = cluster.started("snapshot")
    cluster.edit(suspend=True)
    cluster.settle()
    assert (cluster.serving(), soaked(cluster)) == (new, ("Unknown", "Soaking"))
    assert "is judged once spec.suspend is false" in cluster.condition("Soaked")["message"]
    assert ("Deployment", old) in cluster.objects
    assert cluster.started("snapshot") == started
    cluster.edit(suspend=False)
    cluster.settle()
    assert cluster.serving() == new
    assert soaked(cluster)[1] != "Soaking"


def test_what_was_undone_is_not_tried_again(cluster: Cluster) -> None:
    clients(cluster).failing = 0.5
    promoted(cluster)
    cluster.settle()
    story = list(cluster.story)
    clients(cluster).failing = 0.0
    cluster.run(100)
    cluster.edit(**asking(replicas=3))
    cluster.edit(suspend=True)
    cluster.settle()
    cluster.edit(suspend=False)
    cluster.settle()
    assert (cluster.story, summary(cluster)) == (story, UNDONE)
    assert [each["spec"]["replicas"] for each in cluster.of_kind("Deployment")] == [3]


@pytest.mark.parametrize("how", ["the spec", "a retry"])
def test_a_change_tries_it_again_and_converts_nothing(cluster: Cluster, how: str) -> None:
    clients(cluster).failing = 0.5
    _, new = promoted(cluster)
    cluster.settle()
    jobs = len(cluster.story)
    clients(cluster).failing = 0.0
    if how == "a retry":
        cluster.retry()
    else:
        cluster.edit(**asking(SOAK | {"maxErrorPercent": 2}))
    cluster.settle()
    assert (cluster.serving(), soaked(cluster), summary(cluster)) == (new, ("True", "SoakPassed"), KEPT)
    assert {each.split()[0] for each in cluster.story[jobs:]} <= {"server", "promotion", "snapshot"}


def test_another_source_is_another_try(cluster: Cluster) -> None:
    clients(cluster).failing = 0.5
    old, _ = promoted(cluster)
    cluster.settle()
    clients(cluster).failing = 0.0
    cluster.edit(another_source())
    cluster.settle()
    assert (cluster.serving() != old, soaked(cluster), summary(cluster)) == (True, ("True", "SoakPassed"), KEPT)


def test_a_spec_that_is_taken_back_is_ready_at_once(cluster: Cluster) -> None:
    clients(cluster).failing = 0.5
    old, _ = promoted(cluster)
    cluster.settle()
    jobs = len(cluster.story)
    cluster.edit(the_usual_batch())
    cluster.settle()
    assert (cluster.serving(), summary(cluster), cluster.story[jobs:]) == (old, KEPT, [])
    cluster.edit(a_wider_batch())
    cluster.settle()
    assert (cluster.serving(), summary(cluster)) == (old, UNDONE)


def test_a_restart_undoes_at_once(cluster: Cluster) -> None:
    old, new = promoted(cluster)
    cluster.run(5)
    (pod,) = [name for kind, name in cluster.objects if kind == "Pod" and name.startswith(new)]
    cluster.restart(pod)
    cluster.act()
    assert cluster.serving() == old
    cluster.settle()
    assert (summary(cluster), servers(cluster)) == (UNDONE, {old})
    assert f"tritonserver in pod {pod} ended" in cluster.condition("Soaked")["message"]


def test_a_restart_before_the_flip_is_no_restart_of_the_soak(cluster: Cluster) -> None:
    cluster.scripts = when("measure", Script(hangs=True))
    old = cluster.serving()
    cluster.edit(a_wider_batch())
    cluster.until_active("measure")
    (pod,) = [name for kind, name in cluster.objects if kind == "Pod" and _is_target(cluster, name, old or "")]
    cluster.restart(pod)
    cluster.run(3)
    cluster.scripts = lambda *_: GOOD
    cluster.settle()
    assert (cluster.serving() != old, soaked(cluster)) == (True, ("True", "SoakPassed"))


def _is_target(cluster: Cluster, pod: str, old: str) -> bool:
    return any(pod.startswith(name) for name in servers(cluster) - {old})


@pytest.mark.parametrize("failing", [0.0, 1.0])
def test_twelve_requests_are_no_verdict(cluster: Cluster, failing: float) -> None:
    clients(cluster).rate, clients(cluster).failing = 0.4, failing
    old, new = promoted(cluster, **CONTINUE)
    cluster.settle()
    assert (cluster.serving(), servers(cluster)) == (new, {new})
    assert (soaked(cluster), summary(cluster)) == (("Unknown", "SoakInconclusive"), KEPT)
    assert "and minRequests is 100" in cluster.condition("Soaked")["message"]
    assert old not in servers(cluster)


def test_counters_that_cannot_be_read_are_no_verdict(cluster: Cluster) -> None:
    words = "the metrics of pod digits-0 at 10.0.0.1:8002 cannot be read: timed out"
    cluster.scripts = when("snapshot", Script(exit_code=1, reason=Reason.SERVER_UNREACHABLE, message=words))
    _, new = promoted(cluster, **CONTINUE)
    cluster.settle()
    assert (cluster.serving(), soaked(cluster), summary(cluster)) == (new, ("Unknown", "SoakInconclusive"), KEPT)
    assert words in cluster.condition("Soaked")["message"]


def test_a_job_that_hangs_ends_with_its_deadline(cluster: Cluster) -> None:
    cluster.scripts = when("snapshot", Script(hangs=True))
    _, new = promoted(cluster, **CONTINUE)
    cluster.settle()
    assert (servers(cluster), soaked(cluster)) == ({new}, ("Unknown", "SoakInconclusive"))
    message = cluster.condition("Soaked")["message"]
    assert "ran for more than 120 s" in message
    assert "activeDeadlineSeconds" not in message, "no field sets it"


def test_a_job_that_finds_no_node_is_not_waited_for_forever(cluster: Cluster) -> None:
    cluster.scripts = when(
        "snapshot", Script(pending=without_a_node("0/1 nodes are available: 1 node(s) were unschedulable."))
    )
    old, new = promoted(cluster, **CONTINUE)
    cluster.run(WINDOW)
    assert (servers(cluster), soaked(cluster)) == ({old, new}, ("Unknown", "Soaking"))
    cluster.settle()
    assert (servers(cluster), soaked(cluster)) == ({new}, ("Unknown", "SoakInconclusive"))
    assert "0/1 nodes are available" in cluster.condition("Soaked")["message"]


def test_the_worst_pod_counts(before: Cluster) -> None:
    cluster = deepcopy(before)
    cluster.edit(**asking(replicas=3))
    cluster.run(5)
    ask(cluster, failing=0.02, only=lambda pod: int(pod.rpartition("-")[2]) % 3 == 0)
    promoted(cluster)
    cluster.settle()
    assert summary(cluster) == UNDONE
    assert "requests failed in pod" in cluster.condition("Soaked")["message"]


def test_the_record_outlives_the_jobs_and_the_operator(cluster: Cluster) -> None:
    clients(cluster).failing = 0.5
    old, _ = promoted(cluster)
    for _ in range(WINDOW):
        cluster.run(1)
        for job in cluster.of_kind("Job"):
            if job["status"].get("shown") == 3 and job["metadata"]["labels"]["triton-operator.dev/stage"] == "snapshot":
                cluster.act()
                cluster.delete("Job", job["metadata"]["name"])
    cluster.settle()
    assert (cluster.serving(), summary(cluster)) == (old, UNDONE)
    assert cluster.started("snapshot") == 3


@pytest.mark.parametrize("is_ready", [True, False])
@pytest.mark.parametrize("writes", range(0, 6, 2))
def test_an_operator_that_dies_as_it_undoes_goes_on_where_it_was(cluster: Cluster, writes: int, is_ready: bool) -> None:
    """Also if it comes back before the pod of the revision that it goes back to."""
    clients(cluster).failing = 0.5
    told = cluster.status["serving"]
    old, _ = promoted(cluster)
    while not any("SoakFailed" in each for each in results(cluster)):
        wanted = cluster.intent()
        if any("SoakFailed" in text for each in wanted.objects for text in each.get("data", {}).values()):
            for body in wanted.objects[: len(wanted.objects) - writes]:
                cluster.apply(body)
            break
        cluster.run(1)
    if not is_ready:
        cluster.starts = lambda name: name != old
        cluster.step()
        cluster.run(3)
        cluster.starts = lambda name: True
    cluster.settle()
    assert (cluster.serving(), servers(cluster), summary(cluster)) == (old, {old}, UNDONE)
    assert cluster.status["serving"] == told


def results(cluster: Cluster) -> list[str]:
    return [text for name, text in cluster.objects["ConfigMap", "digits-results"]["data"].items() if "soak." in name]


def test_a_verdict_is_on_one_deployment_and_not_on_the_next_of_its_name(cluster: Cluster) -> None:
    clients(cluster).failing = 0.5
    _, new = promoted(cluster)
    cluster.settle()
    cluster.edit(serving={})
    cluster.settle()
    assert cluster.serving() == new
    cluster.edit(**asking())
    cluster.settle()
    assert (cluster.serving(), soaked(cluster), summary(cluster)) == (new, ("Unknown", "Waiting"), KEPT)


def test_without_a_spare_gpu_nothing_is_soaked() -> None:
    cluster = (
        a_deployment().one_candidate().asking(gpu={"count": 1}).asking(**asking()).where(gpus=1).settled().cluster()
    )
    ask(cluster, failing=0.5)
    cluster.edit(a_wider_batch())
    cluster.settle()
    assert (soaked(cluster), summary(cluster)) == (("False", "NoSpareGpu"), KEPT)
    assert len(servers(cluster)) == 1


def test_a_third_revision_ends_the_soak(cluster: Cluster) -> None:
    old, new = promoted(cluster)
    cluster.run(2)
    cluster.edit(a_narrower_batch())
    cluster.until(lambda cluster: len(servers(cluster) - {old, new}) != 0)
    cluster.act()
    cluster.act()
    assert cluster.serving() == new
    assert old not in servers(cluster)
    cluster.settle()
    assert (cluster.serving() not in (old, new), soaked(cluster)) == (True, ("True", "SoakPassed"))


def test_while_another_version_is_converted_the_soak_goes_on(cluster: Cluster) -> None:
    clients(cluster).failing = 0.5
    old, new = promoted(cluster)
    cluster.scripts = when("convert", Script(hangs=True))
    cluster.edit(another_source())
    cluster.run(8)
    assert (servers(cluster), soaked(cluster)) == ({old, new}, ("Unknown", "Soaking"))
    cluster.run(WINDOW)
    assert (cluster.serving(), servers(cluster)) == (old, {old})
    assert cluster.condition("Available")["status"] == "True"


@pytest.mark.parametrize("policy", ["Hold", "Undo"])
def test_what_fails_is_undone_once_the_previous_revision_answers(cluster: Cluster, policy: str) -> None:
    """A pod that is not ready in the pass of the verdict changes no verdict."""
    clients(cluster).failing = 0.5
    old, new = promoted(cluster, rollout={"onInconclusive": policy})
    cluster.starts = lambda name: name != old
    cluster.settle()
    assert (cluster.serving(), servers(cluster), summary(cluster)) == (new, {old, new}, UNDONE)
    message = cluster.condition("Soaked")["message"]
    assert f"Deployment {new} failed and stays until {old}, which was active before, answers" in message
    assert cluster.condition("UpToDate")["status"] == "False"
    # Whatever the replicas are meanwhile.
    for count in (0, 2):
        cluster.edit(**asking(replicas=count))
        cluster.settle()
        wanted = {each["metadata"]["name"]: each["spec"]["replicas"] for each in cluster.of_kind("Deployment")}
        assert wanted == {old: count, new: count}
    cluster.starts, began = lambda name: True, cluster.now
    cluster.until(lambda _: cluster.serving() == old)
    assert (cluster.now - began).total_seconds() < 60
    cluster.settle()
    assert (cluster.serving(), servers(cluster), summary(cluster)) == (old, {old}, UNDONE)
    assert cluster.condition("Soaked")["message"].startswith(f"Deployment {old} is active again; revision ")


def down(name: str) -> Callable[[str], bool]:
    """No pod of that Deployment gets ready."""
    return lambda other: other != name


@pytest.mark.parametrize("policy", ["Hold", "Continue"])
def test_a_revision_that_stops_answering_is_undone(cluster: Cluster, policy: str) -> None:
    """Its pods find no node, or no image, and none of them was started again."""
    old, new = promoted(cluster, rollout={"onInconclusive": policy})
    cluster.run(3)
    cluster.starts, began = down(new), cluster.now
    cluster.until(lambda _: cluster.serving() == old, most=400)
    assert 600 <= (cluster.now - began).total_seconds() < 660
    cluster.settle()
    assert (servers(cluster), summary(cluster)) == ({old}, UNDONE)
    assert "none of its pods has been ready for 600 s" in cluster.condition("Soaked")["message"]


def test_a_revision_that_stops_answering_for_a_moment_is_judged_once_it_does_again(cluster: Cluster) -> None:
    old, new = promoted(cluster, **CONTINUE)
    cluster.run(3)
    cluster.starts = down(new)
    cluster.run(200)
    assert (cluster.serving(), servers(cluster)) == (new, {old, new})
    message = cluster.condition("Soaked")["message"]
    assert f"if that lasts for 600 s, {old} becomes active again" in message
    assert 0 < (cluster.intent().requeue_after or 0) <= 30
    cluster.starts = lambda name: True
    cluster.settle()
    assert (servers(cluster), soaked(cluster)[1]) == ({new}, "SoakPassed")


def test_time_in_which_the_operator_was_away_is_no_outage(cluster: Cluster) -> None:
    """The new revision is not ready in its last look and in its first one, and answered in between."""
    _, new = promoted(cluster)
    for _ in range(2):
        cluster.starts = down(new)
        cluster.step()
        cluster.act()
        cluster.starts = lambda name: True
        cluster.step()
        cluster.now += timedelta(minutes=20)
    cluster.settle()
    assert (servers(cluster), soaked(cluster)[1]) == ({new}, "SoakPassed")


def test_an_edit_does_not_delete_the_only_revision_that_answers(cluster: Cluster) -> None:
    """The user corrects what stopped answering: the previous one is back before the third has started."""
    old, new = promoted(cluster)
    cluster.run(3)
    cluster.starts = lambda name: name == old
    cluster.edit(a_narrower_batch())
    cluster.until(lambda _: cluster.serving() == old, most=400)
    cluster.starts = down(new)
    cluster.settle()
    assert (cluster.serving() not in (old, new), summary(cluster)) == (True, KEPT)


@pytest.mark.parametrize("failing", [0.0, 0.5])
def test_a_soak_is_judged_while_the_spec_is_refused(cluster: Cluster, failing: float) -> None:
    clients(cluster).failing = failing
    old, new = promoted(cluster)
    cluster.run(3)
    cluster.edit(conversion={"parallelism": 99})
    cluster.run(WINDOW)
    assert cluster.serving() == (old if failing else new)
    assert cluster.condition("Ready")["reason"] == "InvalidSpec"
    cluster.edit(conversion={})
    cluster.settle()
    assert soaked(cluster)[1] == ("SoakFailed" if failing else "SoakPassed")


def test_an_undo_that_had_to_wait_is_told_while_the_spec_is_refused(cluster: Cluster) -> None:
    def told() -> tuple[str, str]:
        return cluster.status["serving"]["revision"], cluster.status["serving"]["selector"]

    before = told()
    clients(cluster).failing = 0.5
    old, _ = promoted(cluster)
    cluster.run(3)
    cluster.edit(conversion={"parallelism": 99})
    cluster.starts = down(old)
    cluster.run(WINDOW)
    assert told() != before
    cluster.starts = lambda name: True
    cluster.run(10)
    assert (cluster.serving(), told()) == (old, before)


def test_what_failed_while_the_spec_was_refused_is_not_tried_again_by_the_same_spec(cluster: Cluster) -> None:
    clients(cluster).failing = 0.5
    old, _ = promoted(cluster)
    cluster.run(3)
    cluster.edit(conversion={"parallelism": 99})
    cluster.run(WINDOW)
    assert cluster.serving() == old
    moves = cluster.story.count("promotion")
    cluster.edit(conversion={})
    cluster.settle()
    assert (cluster.serving(), cluster.story.count("promotion"), summary(cluster)) == (old, moves, UNDONE)


@pytest.mark.parametrize("is_refused", [True, False])
def test_available_tells_what_is_observed_whatever_the_spec_is(cluster: Cluster, is_refused: bool) -> None:
    cluster.edit(conversion={"parallelism": 99} if is_refused else {})
    cluster.run(1)
    assert cluster.condition("Available")["status"] == "True"
    cluster.starts = lambda name: False
    cluster.run(2)
    assert cluster.condition("Available")["status"] == "False"
    cluster.starts = lambda name: True
    cluster.run(2)
    assert cluster.condition("Available")["status"] == "True"


def test_what_fails_is_kept_by_a_user_who_asks_for_no_soak(cluster: Cluster) -> None:
    clients(cluster).failing = 0.5
    old, new = promoted(cluster)
    cluster.starts = lambda name: name != old
    cluster.settle()
    cluster.edit(serving={})
    cluster.settle()
    assert (cluster.serving(), servers(cluster), summary(cluster)) == (new, {new}, KEPT)


def test_nothing_goes_back_to_a_server_that_is_gone(cluster: Cluster) -> None:
    clients(cluster).failing = 0.5
    old, new = promoted(cluster)
    cluster.run(2)
    cluster.delete("Deployment", old)
    cluster.settle()
    assert (cluster.serving(), servers(cluster)) == (new, {new})
    assert (soaked(cluster), summary(cluster)) == (("Unknown", "SoakInconclusive"), KEPT)


class Lacking(ApiServer):
    """The store lacks an object that is there until something of it is written: its label went, or it found no room."""

    hidden: tuple[str, str] = ("", "")

    def children(self, key: Key) -> list[Body]:
        return [each for each in super().children(key) if (each["kind"], each["metadata"]["name"]) != self.hidden]

    def put(self, kind: ApiKind, body: Body) -> None:
        if (kind.kind, body["metadata"]["name"]) == self.hidden:
            self.hidden = ("", "")


@pytest.mark.parametrize("what", ["results", "new", "previous", "service"])
@pytest.mark.parametrize("passes", [1, 3])
def test_what_the_store_lacks_for_a_while_loses_nothing(cluster: Cluster, what: str, passes: int) -> None:
    clients(cluster).failing = 0.5
    old, new = promoted(cluster)
    cluster.run(4)
    before = set(cluster.objects["ConfigMap", "digits-results"]["data"])
    api = Lacking(cluster)
    hidden = {"results": ("ConfigMap", "digits-results"), "service": ("Service", "digits")}
    api.hidden = (hidden | {"new": ("Deployment", new), "previous": ("Deployment", old)})[what]
    operator = Reconciler(api, api, cluster.settings, METRICS, lambda: cluster.now)
    for _ in range(passes):
        operator.reconcile(KEY)
    assert before <= set(cluster.objects["ConfigMap", "digits-results"]["data"])
    assert servers(cluster) == {old, new}
    cluster.settle()
    assert (cluster.serving(), summary(cluster)) == (old, UNDONE)


def test_a_soak_that_is_no_longer_asked_for_ends(cluster: Cluster) -> None:
    _, new = promoted(cluster)
    cluster.run(2)
    cluster.edit(serving={})
    cluster.settle()
    assert servers(cluster) == {new}
    assert all(each["type"] != "Soaked" for each in cluster.status["conditions"])


def test_no_replicas_end_the_soak(cluster: Cluster) -> None:
    _, new = promoted(cluster)
    cluster.run(2)
    cluster.edit(**asking(replicas=0))
    cluster.settle()
    assert (servers(cluster), soaked(cluster)) == ({new}, ("Unknown", "SoakInconclusive"))


def test_asking_for_a_soak_changes_no_key_no_pin_and_no_server(serving: Cluster) -> None:
    before = deepcopy({key: body for key, body in serving.objects.items() if key[0] in ("Deployment", "Pod")})
    story, images = list(serving.story), serving.status["images"]
    serving.edit(**asking())
    serving.settle()
    assert serving.story == [*story, "snapshot"]
    assert {key: body for key, body in serving.objects.items() if key in before} == before
    assert serving.status["images"] == images
    assert summary(serving) == KEPT


def test_a_job_that_reads_counters_reaches_metrics_and_nothing_else(before: Cluster) -> None:
    policy = before.objects["NetworkPolicy", "digits-snapshot"]["spec"]
    stage = {"triton-operator.dev/deployment": "digits", "triton-operator.dev/stage": "snapshot"}
    assert policy["podSelector"] == {"matchLabels": stage}
    (rule,) = policy["egress"]
    assert [each["port"] for each in rule["ports"]] == [8002]
    assert policy["ingress"] == []
    ingress = before.objects["NetworkPolicy", "digits-servers"]["spec"]["ingress"]
    ours = [each for each in ingress if each.get("from") == [{"podSelector": {"matchLabels": stage}}]]
    assert [[port["port"] for port in each["ports"]] for each in ours] == [[8002]]


def test_the_history_has_a_revision_on_trial_before_its_verdict(cluster: Cluster) -> None:
    def history() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(cluster.objects["ConfigMap", "digits-results"]["data"]["history"])
        return found

    before = history()
    clients(cluster).failing = 0.5
    _, new = promoted(cluster)
    cluster.run(8)
    tried = history()
    assert (tried.pop("trial")["revision"]["server"], tried) == (new, before)
    cluster.settle()
    assert history() == before
    assert "snapshot." not in json.dumps(before)


def test_a_first_snapshot_that_failed_leaves_the_latency_open(before: Cluster) -> None:
    cluster = a_deployment().one_candidate().asking(**asking()).faring(when("snapshot", FINAL)).settled().cluster()
    cluster.scripts = lambda *_: GOOD
    ask(cluster)
    promoted(cluster, **CONTINUE)
    cluster.settle()
    assert soaked(cluster) == ("Unknown", "SoakInconclusive")
    assert "the requests to the previous revision are not known" in cluster.condition("Soaked")["message"]


def test_a_pass_computes_a_soak_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Mock(wraps=trial.soak)
    monkeypatch.setattr(trial, "soak", counted)
    a_deployment().asking(serving={"soak": {"duration": "1m"}}).cluster().intent()
    assert counted.call_count == 1
