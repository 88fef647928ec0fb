"""What has no verdict is held: a soak and a canary without traffic, without counters, and on a node that restarts."""

from copy import deepcopy
from datetime import timedelta

import pytest

from tests.simulation.answers import GOOD, Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.edits import a_narrower_batch, a_wider_batch
from tests.simulation.moving import move
from tests.simulation.test_canary import SHARES, begun, serving
from tests.simulation.test_soak import (
    CONTINUE,
    KEPT,
    UNDONE,
    WINDOW,
    ask,
    clients,
    promoted,
    servers,
    soaked,
    summary,
    with_clients,
)
from tests.states.deployment import a_deployment
from triton_converters.contract.reasons import Reason


@pytest.fixture
def cluster() -> Cluster:
    return with_clients()


@pytest.fixture(scope="module")
def active_by_route() -> Cluster:
    """One that asks for a canary; not to be changed."""
    return a_deployment().one_candidate().asking(**serving()).where(has_gateway_api=True).settled().cluster()


@pytest.fixture
def routed(active_by_route: Cluster) -> Cluster:
    """The same, with clients."""
    copy = deepcopy(active_by_route)
    ask(copy)
    return copy


def told(cluster: Cluster) -> list[str]:
    return [each.type for each in cluster.events if each.reason == Reason.ROLLOUT_HELD]


def reached(cluster: Cluster, reason: str) -> None:
    """Go on until the soak has the reason."""
    cluster.until(lambda _: soaked(cluster)[1] == reason, 1500)


def test_without_traffic_a_soak_is_held_and_a_person_is_told_once(cluster: Cluster) -> None:
    clients(cluster).rate = 0.0
    old, new = promoted(cluster)
    cluster.run(WINDOW)
    assert (cluster.serving(), servers(cluster), soaked(cluster)) == (new, {old, new}, ("Unknown", "Soaking"))
    assert summary(cluster) == [("True", "Ready"), ("True", "Progressing"), ("False", "NoStall")]
    message = cluster.condition("Soaked")["message"]
    assert "there is no verdict yet, because it answered 0 requests, and minRequests is 100" in message
    assert told(cluster) == []
    began = cluster.now
    reached(cluster, "RolloutHeld")
    assert 1700 < (cluster.now - began).total_seconds() < 1800
    cluster.run(2 * WINDOW)
    assert told(cluster) == ["Warning"]
    assert (cluster.serving(), servers(cluster)) == (new, {old, new})
    assert (
        f"Deployment {old} still runs, because {new} is held after its soak" in cluster.condition("Soaked")["message"]
    )
    assert cluster.condition("UpToDate")["reason"] == "RolloutHeld"


@pytest.mark.parametrize(("failing", "verdict"), [(0.0, "SoakPassed"), (0.5, "SoakFailed")])
def test_what_is_held_is_judged_by_the_requests_that_come_later(cluster: Cluster, failing: float, verdict: str) -> None:
    clients(cluster).until = cluster.now
    old, new = promoted(cluster)
    cluster.run(3 * WINDOW)
    assert soaked(cluster) == ("Unknown", "Soaking")
    clients(cluster).until, clients(cluster).failing = None, failing
    cluster.settle()
    assert soaked(cluster)[1] == verdict
    assert servers(cluster) == {new if verdict == "SoakPassed" else old}


@pytest.mark.parametrize("asked", ["Continue", "Undo"])
def test_a_user_ends_a_soak_that_is_held(cluster: Cluster, asked: str) -> None:
    clients(cluster).rate = 0.0
    old, new = promoted(cluster)
    cluster.run(2 * WINDOW)
    cluster.edit(rollout={"onInconclusive": asked})
    cluster.act()
    assert cluster.serving() == (new if asked == "Continue" else old), "at once"
    cluster.settle()
    message = cluster.condition("Soaked")["message"]
    if asked == "Continue":
        assert (servers(cluster), soaked(cluster), summary(cluster)) == ({new}, ("Unknown", "SoakInconclusive"), KEPT)
    else:
        assert (servers(cluster), soaked(cluster), summary(cluster)) == ({old}, ("False", "SoakFailed"), UNDONE)
        assert "it was not judged, because it answered 0 requests" in message


def test_what_was_never_judged_is_undone_where_the_spec_says_so(cluster: Cluster) -> None:
    clients(cluster).rate = 0.0
    old, _ = promoted(cluster, rollout={"onInconclusive": "Undo"})
    cluster.settle()
    assert (cluster.serving(), servers(cluster), summary(cluster)) == (old, {old}, UNDONE)


def test_a_node_that_restarts_begins_the_soak_anew(cluster: Cluster) -> None:
    old, new = promoted(cluster)
    cluster.run(5)
    for name in [name for kind, name in cluster.objects if kind == "Pod" and name.startswith((old, new))]:
        cluster.restart(name)
    cluster.run(3)
    assert (cluster.serving(), servers(cluster), soaked(cluster)) == (new, {old, new}, ("Unknown", "Soaking"))
    assert "look for what became of the node" in cluster.condition("Soaked")["message"]
    cluster.settle()
    assert (servers(cluster), soaked(cluster)) == ({new}, ("True", "SoakPassed"))


def test_counters_that_were_not_read_are_read_again(cluster: Cluster) -> None:
    words = "the metrics of pod digits-0 at 10.0.0.1:8002 cannot be read: timed out"
    cluster.scripts = when("snapshot", Script(exit_code=1, reason=Reason.SERVER_UNREACHABLE, message=words))
    old, new = promoted(cluster)
    cluster.run(3 * WINDOW)
    assert (servers(cluster), soaked(cluster)) == ({old, new}, ("Unknown", "Soaking"))
    assert words in cluster.condition("Soaked")["message"]
    cluster.scripts = lambda *_: GOOD
    cluster.settle()
    assert (servers(cluster), soaked(cluster)) == ({new}, ("True", "SoakPassed"))


@pytest.mark.parametrize(("policy", "failing"), [("Continue", 0.5), ("Undo", 0.0)])
@pytest.mark.parametrize("halted", ["suspended", "suspended at once", "the operator away", "the Jobs suspended"])
def test_time_in_which_nobody_could_read_counters_decides_no_soak(
    cluster: Cluster, halted: str, policy: str, failing: float
) -> None:
    clients(cluster).failing = failing
    old, new = promoted(cluster, rollout={"onInconclusive": policy})
    halt(cluster, halted)
    cluster.until(lambda _: soaked(cluster)[1] != "Soaking").act()
    assert cluster.serving() == (old if failing else new), cluster.condition("Soaked")["message"]


@pytest.mark.parametrize(("policy", "failing"), [("Continue", 0.5), ("Undo", 0.0)])
@pytest.mark.parametrize("halted", ["suspended", "suspended at once", "the operator away", "the Jobs suspended"])
def test_time_in_which_nobody_could_read_counters_decides_no_canary(
    routed: Cluster, halted: str, policy: str, failing: float
) -> None:
    clients(routed).failing = failing
    begun(routed, rollout={"onInconclusive": policy})
    halt(routed, halted)
    routed.until(lambda _: soaked(routed)[1] != "Canary" or "5 %: " in routed.condition("Soaked")["message"])
    message = routed.condition("Soaked")["message"]
    assert ("SoakFailed" if failing else "5 %: passed") in f"{soaked(routed)[1]} {message}"


def halt(cluster: Cluster, halted: str) -> None:
    """Let a soak or a step end while nobody may read its counters, long ago."""
    if halted != "suspended at once":
        cluster.run(8)
    if halted == "the Jobs suspended":
        cluster.until_active("snapshot")
    cluster.edit(suspend=halted.startswith("suspended"))
    jobs = cluster.of_kind("Job") if halted == "the Jobs suspended" else []
    for each in jobs:
        each["spec"]["suspend"] = not each["status"].get("shown")
    for _ in range(3):
        cluster.step() if halted == "the operator away" else cluster.run(1)
    cluster.now += timedelta(minutes=20)
    for each in jobs:
        each["spec"]["suspend"] = False
    cluster.edit(suspend=False)


@pytest.mark.parametrize("trial", ["a soak", "a canary"])
def test_what_waits_for_a_claim_that_is_being_deleted_says_so(cluster: Cluster, routed: Cluster, trial: str) -> None:
    """The servers use it, so that it stays for as long as they do."""
    tried = cluster if trial == "a soak" else routed
    promoted(tried) if trial == "a soak" else begun(tried)
    tried.run(4)
    claim = tried.objects["PersistentVolumeClaim", "digits-repository"]
    claim["metadata"]["deletionTimestamp"] = "2026-11-21T00:05:00Z"
    tried.run(2 * WINDOW)
    words = "are read once PersistentVolumeClaim digits-repository, which is being deleted, is made anew"
    assert words in tried.condition("Soaked")["message"]


def lose(cluster: Cluster, lost: str, active: str) -> None:
    """Somebody deletes what a soak needs."""
    if lost == "the Deployment":
        cluster.delete("Deployment", active)
    elif lost == "all results":
        cluster.delete("ConfigMap", "digits-results")
    else:
        data = cluster.objects["ConfigMap", "digits-results"]["data"]
        for name in [name for name in data if name.startswith("soak.")]:
            del data[name]


@pytest.mark.parametrize("policy", ["Hold", "Continue", "Undo"])
@pytest.mark.parametrize("failing", [0.0, 0.5])
@pytest.mark.parametrize("lost", ["the Deployment", "the records"])
def test_what_somebody_deletes_ends_no_soak(cluster: Cluster, lost: str, failing: float, policy: str) -> None:
    """The Deployment is made again, and the soak begins anew: it is judged as if nothing had been deleted."""
    clients(cluster).failing = failing
    old, new = promoted(cluster, rollout={"onInconclusive": policy})
    cluster.run(6)
    lose(cluster, lost, new)
    cluster.run(2)
    assert (servers(cluster), soaked(cluster)) == ({old, new}, ("Unknown", "Soaking"))
    cluster.settle()
    verdict = ("False", "SoakFailed") if failing else ("True", "SoakPassed")
    assert (servers(cluster), soaked(cluster)) == ({old if failing else new}, verdict)


@pytest.mark.parametrize("lost", ["the Deployment", "the records", "all results"])
def test_what_somebody_deletes_frees_nothing_that_is_held(cluster: Cluster, lost: str) -> None:
    """It is held on, and undone by the requests that come later, which may fail."""
    usual, clients(cluster).rate = clients(cluster).rate, 0.0
    old, new = promoted(cluster)
    reached(cluster, "RolloutHeld")
    lose(cluster, lost, new)
    cluster.run(2 * WINDOW)
    assert (cluster.serving(), servers(cluster)) == (new, {old, new})
    assert soaked(cluster)[1] in ("Soaking", "RolloutHeld")
    assert "there is no verdict yet" in cluster.condition("Soaked")["message"]
    clients(cluster).rate, clients(cluster).failing = usual, 0.5
    cluster.settle()
    assert (cluster.serving(), servers(cluster), summary(cluster)) == (old, {old}, UNDONE)


def test_a_third_revision_ends_what_is_held(cluster: Cluster) -> None:
    usual, clients(cluster).rate = clients(cluster).rate, 0.0
    old, new = promoted(cluster)
    cluster.run(2 * WINDOW)
    cluster.edit(a_narrower_batch())
    clients(cluster).rate = usual
    cluster.settle()
    assert cluster.serving() not in (old, new)


WAIT = 60
"""Steps of two seconds, in which an object could take every step of its canary."""


def test_without_traffic_a_canary_stays_at_its_step(routed: Cluster) -> None:
    usual, clients(routed).rate = clients(routed).rate, 0.0
    old, new, gateway = begun(routed)
    gateway.run(WAIT)
    assert (routed.serving(), gateway.seen, servers(routed)) == (old, [0, 5], {old, new})
    assert soaked(routed) == ("Unknown", "Canary")
    assert "there is no verdict yet, because it answered 0 requests" in routed.condition("Soaked")["message"]
    clients(routed).rate = usual
    gateway.settle()
    assert (gateway.seen, servers(routed), soaked(routed)) == ([0, *SHARES, 0], {new}, ("True", "SoakPassed"))


def test_a_step_counts_no_request_of_a_step_that_was_held(routed: Cluster) -> None:
    """The revision fails only while the first step is held, after which its counters were read."""
    clients(routed).rate = 0.0
    old, _, gateway = begun(routed)
    gateway.run(WAIT)
    routed.edit(**CONTINUE)
    gateway.run(1)
    routed.edit(rollout={})
    clients(routed).rate, clients(routed).failing = 10.0, 0.5
    gateway.run(1)
    assert (routed.serving(), gateway.seen) == (old, [0, 5, 25])
    gateway.settle()
    assert gateway.seen == [0, 5, 25, 0]
    assert "with 25 % of the requests" in routed.condition("Stalled")["message"]


def test_a_person_is_told_of_a_canary_that_is_held(routed: Cluster) -> None:
    clients(routed).rate = 0.0
    _, _, gateway = begun(routed)
    gateway.run(1000)
    assert (soaked(routed), gateway.seen) == (("Unknown", "RolloutHeld"), [0, 5])
    assert [each.type for each in routed.events if each.message.startswith("Soaked: step 1")][-1:] == ["Warning"]
    assert len([each for each in routed.events if each.reason == Reason.ROLLOUT_HELD]) == 1


@pytest.mark.parametrize("asked", ["Continue", "Undo"])
def test_a_user_ends_a_canary_that_is_held(routed: Cluster, asked: str) -> None:
    clients(routed).rate = 0.0
    old, new, gateway = begun(routed)
    gateway.run(WAIT)
    routed.edit(rollout={"onInconclusive": asked})
    gateway.run(1)
    assert gateway.seen == [0, 5, 25 if asked == "Continue" else 0], "at once"
    gateway.settle()
    assert servers(routed) == {new if asked == "Continue" else old}
    if asked == "Undo":
        assert summary(routed) == UNDONE
        assert "it was not judged, because" in routed.condition("Stalled")["message"]


def test_a_node_that_restarts_begins_the_step_anew(routed: Cluster) -> None:
    old, new, gateway = begun(routed)
    gateway.run(3)
    for name in [name for kind, name in routed.objects if kind == "Pod" and name.startswith((old, new))]:
        routed.restart(name)
    gateway.run(3)
    assert (routed.serving(), gateway.seen, soaked(routed)) == (old, [0, 5], ("Unknown", "Canary"))
    gateway.settle()
    assert (gateway.seen, soaked(routed)) == ([0, *SHARES, 0], ("True", "SoakPassed"))


@pytest.mark.parametrize("moment", ["before its first step", "in a step"])
def test_a_canary_goes_on_where_somebody_deletes_what_is_active(routed: Cluster, moment: str) -> None:
    """It is made again; a revision of which no step was judged does not take its place."""
    clients(routed).failing = 0.5
    old = routed.serving() or ""
    if moment == "in a step":
        begun(routed)
        routed.run(4)
    else:
        routed.edit(a_wider_batch())
        routed.until_active("measure").run(1)
    routed.delete("Deployment", old)
    routed.settle()
    assert (routed.serving(), servers(routed), summary(routed)) == (old, {old}, UNDONE)
    assert "with 5 % of the requests" in routed.condition("Stalled")["message"]


def test_a_choice_that_is_taken_back_tries_nothing_again(cluster: Cluster) -> None:
    clients(cluster).rate = 0.0
    promoted(cluster)
    reached(cluster, "RolloutHeld")
    cluster.edit(rollout={"onInconclusive": "Undo"})
    cluster.settle()
    story = len(cluster.story)
    cluster.edit(rollout={})
    cluster.run(60)
    assert cluster.story[story:] == []


def test_the_choice_that_a_message_offers_leaves_ready_what_was_ready(routed: Cluster) -> None:
    """The canary is one of newer files: what serves is what the spec asks for."""
    clients(routed).rate = 0.0
    move(routed)
    reached(routed, "RolloutHeld")
    assert "set spec.rollout.onInconclusive to Continue or Undo" in routed.condition("Soaked")["message"]
    routed.edit(rollout={"onInconclusive": "Undo"})
    routed.settle()
    assert [routed.condition(each)["status"] for each in ("Ready", "UpToDate", "Stalled")] == ["True", "False", "False"]


def test_a_clock_that_was_ahead_for_a_moment_delays_no_verdict(cluster: Cluster) -> None:
    clients(cluster).rate = 0.0
    old, _ = promoted(cluster)
    cluster.run(WINDOW)
    ahead = timedelta(hours=1)
    cluster.now += ahead
    cluster.run(WINDOW)
    cluster.now -= ahead
    # Pauses between passes are those of another clock, which nobody sets.
    assert cluster.due is not None
    cluster.due -= ahead
    assert soaked(cluster)[0] == "Unknown"
    clients(cluster).rate, clients(cluster).failing = 10.0, 0.5
    cluster.run(2 * WINDOW)
    assert (cluster.serving(), soaked(cluster)) == (old, ("False", "SoakFailed"))
