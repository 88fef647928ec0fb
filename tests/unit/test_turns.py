"""Who measures next: what the queue of an installation decides, and what it knows of the Jobs of all objects."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.simulation.deployments import candidate
from tests.states.deployment import a_deployment
from triton_operator import names
from triton_operator.kube.kinds import JOB, POD
from triton_operator.observed.turn import Measurement, Turn
from triton_operator.resources.job import keeps_off
from triton_operator.resources.room import may_take
from triton_operator.runtime.known_jobs import KnownJobs
from triton_operator.runtime.store_facts import facts_of
from triton_operator.runtime.turns import GRACE_SECONDS, HELD_UP_SECONDS, LONGEST_PAUSE_SECONDS, Turns, Wish

NOW = datetime(2026, 12, 1, tzinfo=UTC)
A, B, C = ("vision", "a"), ("vision", "b"), ("audio", "c")
BESIDE = Measurement(("text", "d"), frozenset({"node-0"}))

PROFILE = Wish("profile", frozenset(), is_urgent=False)


def measure(node: str, *, urgent: bool = False) -> Wish:
    """A measurement through the Service, of a server on that node."""
    return Wish("measure", frozenset({node}), urgent)


def ask(
    turns: Turns,
    key: tuple[str, str],
    *beside: Measurement,
    at: float = 0.0,
    most: int = 1,
    others: bool | None = False,
    wish: Wish = PROFILE,
) -> Turn:
    """Ask for a turn, some seconds after the beginning, beside these Jobs."""
    now = NOW + timedelta(seconds=at)
    return turns.ask(key, wish, now, most, lambda: beside, lambda besides: others)


def test_alone_an_object_may_measure_anywhere() -> None:
    assert ask(Turns(), A) == Turn()


def test_beside_another_it_needs_another_node() -> None:
    assert ask(Turns(), A, BESIDE, others=True) == Turn(taken=frozenset({"node-0"}))
    for unknown in (False, None):
        turn = ask(Turns(), A, BESIDE, others=unknown)
        assert turn.waits_for.startswith("waits for its turn to be measured, place 1 of 1: text/d on node node-0")


def test_beside_one_without_a_node_it_waits_for_that() -> None:
    turn = ask(Turns(), A, Measurement(BESIDE.owner, frozenset(), False), others=True)
    assert turn.waits_for.endswith("text/d is about to be measured")


def test_a_node_takes_as_many_as_the_installation_says() -> None:
    assert ask(Turns(), A, BESIDE, most=2) == Turn()
    two = (BESIDE, Measurement(("text", "e"), frozenset({"node-0"})))
    assert ask(Turns(), A, *two, most=2).waits_for
    elsewhere = (BESIDE, Measurement(("text", "e"), frozenset({"node-1"})))
    assert ask(Turns(), A, *elsewhere, most=2, others=True) == Turn()


def test_a_server_is_measured_once_its_own_node_is_free() -> None:
    assert ask(Turns(), A, BESIDE, wish=measure("node-0"), others=True).waits_for
    assert ask(Turns(), A, BESIDE, wish=measure("node-1")) == Turn(taken=frozenset({"node-0"}))


def test_two_passes_at_once_get_one_place() -> None:
    turns = Turns()
    assert ask(turns, A) == Turn()
    assert ask(turns, C).waits_for.endswith("vision/a is about to be measured")
    turns.passed(A, tuple)
    assert ask(turns, C) == Turn(), "the pass made no Job"


def test_namespaces_take_turns() -> None:
    turns = Turns()
    ask(turns, A)
    turns.passed(A, tuple)
    assert ask(turns, B, BESIDE).waits_for
    assert "place 1 of 2" in ask(turns, C, BESIDE).waits_for
    assert "place 2 of 2" in ask(turns, B, BESIDE, at=5).waits_for
    assert ask(turns, C, at=6) == Turn()
    turns.passed(C, tuple)
    assert ask(turns, B, at=7) == Turn()


def test_what_only_another_node_takes_passes_those_that_wait_for_theirs() -> None:
    turns, on_gpus = Turns(), Wish("profile", frozenset(), is_urgent=False, pod="gpu")
    assert "place 1 of 1: text/d on node node-0" in ask(turns, A, BESIDE, wish=on_gpus).waits_for
    alike = ask(turns, B, BESIDE, wish=on_gpus, others=True)
    assert "place 2 of 2: text/d on node node-0" in alike.waits_for, "what A found is true for B, and nothing is asked"
    assert ask(turns, C, BESIDE, others=True) == Turn(taken=frozenset({"node-0"}))
    turns.passed(C, tuple)
    elsewhere = Measurement(BESIDE.owner, frozenset({"node-1"}))
    assert "others" in ask(turns, C, elsewhere, at=1, others=True).waits_for, "A's node is free"


def test_what_servers_made_room_for_comes_first() -> None:
    turns = Turns()
    ask(turns, C, BESIDE)
    ask(turns, A, BESIDE)
    assert "place 1 of 3" in ask(turns, B, BESIDE, wish=measure("node-0", urgent=True)).waits_for


def test_who_asks_no_more_has_left_the_queue() -> None:
    turns = Turns()
    ask(turns, A, BESIDE)
    assert "place 2 of 2" in ask(turns, B, BESIDE, at=1).waits_for
    assert ask(turns, B, at=6 + GRACE_SECONDS) == Turn()
    assert ask(turns, A, at=10 + LONGEST_PAUSE_SECONDS).waits_for, "it may come again"


def test_an_object_that_measures_nothing_keeps_nobody_waiting() -> None:
    turns = Turns()
    ask(turns, A, BESIDE)
    ask(turns, B, BESIDE)
    turns.leave(A)
    assert ask(turns, B, at=1) == Turn()


def test_the_next_one_is_woken_once_the_job_has_ended() -> None:
    woken: list[tuple[str, str]] = []
    turns = Turns(woken.append)
    ask(turns, A)
    turns.passed(A, lambda: [Measurement(A, frozenset({"node-0"}))])
    ask(turns, B, BESIDE)
    assert woken == []
    turns.passed(C, tuple)
    assert woken == [], "it had no turn"
    turns.passed(A, tuple)
    turns.passed(A, tuple)
    assert woken == [B]


def test_a_job_that_does_not_begin_gives_its_place_to_one_that_waits() -> None:
    turns = Turns()

    def hold(at: float) -> Turn:
        return turns.hold(A, "a-profile-1", NOW + timedelta(seconds=at), keeps_off=False)

    assert not hold(0).withdrawn
    assert not hold(2 * HELD_UP_SECONDS).withdrawn, "nobody waits"
    ask(turns, B, BESIDE, at=2 * HELD_UP_SECONDS)
    turn = hold(2 * HELD_UP_SECONDS)
    assert turn.withdrawn == "a-profile-1"
    assert not turn.lets("a-profile-1")
    assert "place 2 of 2" in ask(turns, A, BESIDE, at=2 * HELD_UP_SECONDS + 1).waits_for


def a_job(**fields: Any) -> dict[str, Any]:
    labels = {names.MEASURES_LABEL: "true", names.STAGE_LABEL: "profile"}
    body = {"metadata": {"name": "a-profile-1", "uid": "uid-1", "labels": labels}, "spec": {}, "status": {}}
    return body | fields


def a_pod(node: str, **fields: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "a-profile-1-x", "labels": {names.STAGE_LABEL: "profile"}}
    metadata |= {"ownerReferences": [{"kind": "Job", "uid": "uid-1"}]}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": {"phase": "Running"}} | fields


ENDED = {"conditions": [{"type": "Complete", "status": "True"}]}


@pytest.mark.parametrize(
    ("job", "pods", "found"),
    [
        (a_job(), [], Measurement(A, frozenset(), is_placed=False)),
        (a_job(), [a_pod("")], Measurement(A, frozenset(), is_placed=False)),
        (a_job(), [a_pod("node-0")], Measurement(A, frozenset({"node-0"}))),
        (a_job(spec={"suspend": True}), [], None),
        (a_job(spec={"suspend": True}), [a_pod("node-0")], Measurement(A, frozenset({"node-0"}))),
        (a_job(status=ENDED), [], None),
        (a_job(status=ENDED), [a_pod("node-0", status={"phase": "Succeeded"})], None),
        (a_job(metadata={"name": "a-convert-1", "uid": "uid-1"}), [], None),
    ],
)
def test_what_holds_a_place(job: dict[str, Any], pods: list[dict[str, Any]], found: Measurement | None) -> None:
    known = KnownJobs()
    known.put(A, JOB, job["metadata"]["name"], facts_of(JOB, job).load)
    for pod in pods:
        known.put(A, POD, pod["metadata"]["name"], facts_of(POD, pod).load)
    assert known.measuring() == ([] if found is None else [found])
    known.remove(A, JOB, job["metadata"]["name"])
    for pod in pods:
        known.remove(A, POD, pod["metadata"]["name"])
    assert known.measuring() == []


def test_a_measurement_through_the_service_loads_the_nodes_of_the_servers() -> None:
    known, job = KnownJobs(), a_job()
    job["metadata"]["labels"][names.STAGE_LABEL] = "measure"
    server = {"metadata": {"name": "server"}, "spec": {"nodeName": "node-1"}, "status": {"phase": "Running"}}
    known.put(A, JOB, "a-measure-1", facts_of(JOB, job).load)
    known.put(A, POD, "server", facts_of(POD, server).load)
    assert known.measuring() == [Measurement(A, frozenset({"node-1"}), is_placed=False)]


@pytest.mark.parametrize(
    ("taint", "toleration", "tolerated"),
    [
        ({"key": "gpu", "effect": "NoSchedule"}, {}, False),
        ({"key": "gpu", "effect": "PreferNoSchedule"}, {}, True),
        ({"key": "gpu", "effect": "NoSchedule"}, {"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "effect": "NoSchedule"}, {"operator": "Exists"}, True),
        ({"key": "gpu", "value": "a", "effect": "NoExecute"}, {"key": "gpu", "value": "a"}, True),
        ({"key": "gpu", "value": "a", "effect": "NoExecute"}, {"key": "gpu", "value": "b"}, False),
        ({"key": "gpu", "effect": "NoExecute"}, {"key": "gpu", "effect": "NoSchedule", "operator": "Exists"}, False),
    ],
)
def test_which_taints_keep_a_pod_away(taint: dict[str, str], toleration: dict[str, str], tolerated: bool) -> None:
    assert may_take({"spec": {"taints": [taint]}}, {"tolerations": [toleration] if toleration else []}) is tolerated


@pytest.mark.parametrize(
    ("resources", "fits"),
    [
        ({}, True),
        ({"requests": {"cpu": "500m", "memory": "8Gi"}, "limits": {"memory": "64Gi"}}, True),
        ({"requests": {"cpu": "2500m"}}, False),
        ({"limits": {"memory": "9Gi"}}, False),
        ({"limits": {"nvidia.com/gpu": 1}}, False),
    ],
)
@pytest.mark.parametrize("containers", ["initContainers", "containers"])
def test_a_node_that_lacks_what_a_container_requests_takes_no_pod(
    containers: str, resources: dict[str, Any], fits: bool
) -> None:
    node = {"spec": {}, "status": {"allocatable": {"cpu": "2", "memory": "8Gi"}}}
    assert may_take(node, {containers: [{"resources": resources}]}) is fits


def test_a_job_keeps_off_taken_nodes_beside_what_the_spec_asks_for_and_has_the_same_name() -> None:
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [zone]}}
    pod = {"serving": {"pod": {"affinity": {"nodeAffinity": required}}}}
    found = []
    for taken in (False, True):
        cluster = a_deployment().one_candidate(candidate("onnx-fp32")["name"]).asking(**pod).cluster()
        if taken:
            cluster.measured_beside, cluster.measuring_nodes = lambda: [BESIDE], ["node-0", "node-1"]
        cluster.until_active("profile")
        found += [each for each in cluster.of_kind("Job") if each["metadata"]["labels"][names.STAGE_LABEL] == "profile"]
    one, other = found
    assert one["metadata"]["name"] == other["metadata"]["name"]
    assert [keeps_off(each) for each in found] == [False, True]
    terms = other["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": ["node-0"]}]
    assert terms == {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{**zone, "matchFields": fields}]}
    }
