"""The canary of a new revision: its shares, its verdicts, and that no request can come to pods that are gone."""

from collections import deque
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from tests.simulation.answers import Script, when
from tests.simulation.api_server import ApiServer
from tests.simulation.cluster import Cluster
from tests.simulation.edits import Edit, a_narrower_batch, a_wider_batch, another_source, the_usual_batch
from tests.simulation.test_route import ROUTE, backends
from tests.simulation.test_soak import CONTINUE, Clients, ask, clients, servers, soaked, summary
from tests.states.deployment import a_deployment
from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.api.serving import Serving

SHARES = [5, 25, 50]
LAG = 5
"""Steps of two seconds within which a gateway may still know an older state of the route or of a Service."""
UNDONE = [("False", "SoakFailed"), ("False", "SoakFailed"), ("True", "SoakFailed")]


def serving(canary: list[int] | None = None, **fields: Any) -> dict[str, Any]:
    shares = SHARES if canary is None else canary
    soak = {"duration": "30s", "minRequests": 100}
    return {"serving": {"soak": soak, "route": ROUTE | {"canary": shares}, **fields}}


class Gateway:
    """Watches that each Service of which it may know has pods that answer, whatever the order of what it learns."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.shares: deque[int] = deque(maxlen=LAG)
        self.selected: dict[str, deque[str]] = {name: deque(maxlen=LAG) for name in ("digits", "digits-preview")}
        self.seen: list[int] = []
        """The shares of the preview Service, each time that it changed."""

    def run(self, steps: int) -> None:
        changes = 1
        for _ in range(steps):
            self.cluster.act_on(changes)
            self.look()
            changes = self.cluster.step()

    def settle(self) -> None:
        quiet, changes = 0, 1
        for _ in range(400):
            writes = self.cluster.act_on(changes)
            self.look()
            changes = self.cluster.step()
            quiet = quiet + 1 if writes + changes == 0 else 0
            if quiet == 2 and self.cluster.intent().requeue_after is None:
                return
        raise AssertionError(f"no end: {self.cluster.status['conditions']}")

    def look(self) -> None:
        share = max((weight for name, _, weight in backends(self.cluster) if name == "digits-preview"), default=0)
        if not self.seen or self.seen[-1] != share:
            self.seen.append(share)
        self.shares.append(share)
        for name, selected in self.selected.items():
            selected.append(self.cluster.objects["Service", name]["spec"]["selector"][names.SERVER_LABEL])
            if name == "digits" or max(self.shares):
                for server in set(selected):
                    assert self.answers(server), f"requests to {name} may still come to {server}"

    def answers(self, server: str) -> bool:
        found = self.cluster.objects.get(("Deployment", server))
        return found is not None and found["status"].get("readyReplicas", 0) > 0


@pytest.fixture(scope="module")
def before() -> Cluster:
    """An object whose first revision is active, and that asks for a canary; not to be changed."""
    return a_deployment().one_candidate().asking(**serving()).where(has_gateway_api=True).settled().cluster()


@pytest.fixture
def cluster(before: Cluster) -> Cluster:
    copy = deepcopy(before)
    ask(copy)
    return copy


def begun(cluster: Cluster, edit: Edit | None = None, share: int = 5, rollout: Any = None) -> tuple[str, str, Gateway]:
    """Edit the object, by default to a wider batch, up to the canary's step.

    Returns the names of the Deployments, and what watches them.
    """
    old, gateway = cluster.serving() or "", Gateway(cluster)
    cluster.edit(edit or a_wider_batch(), rollout=rollout or {})
    for _ in range(300):
        gateway.run(1)
        if gateway.seen[-1] == share:
            (new,) = servers(cluster) - {old}
            return old, new, gateway
    raise AssertionError(f"no canary: {cluster.status['conditions']}")


def test_a_good_revision_takes_each_step_and_becomes_active(cluster: Cluster) -> None:
    old, new, gateway = begun(cluster)
    assert (cluster.serving(), soaked(cluster)) == (old, ("Unknown", "Canary"))
    assert summary(cluster) == [("False", "Canary"), ("True", "Progressing"), ("False", "NoStall")]
    assert cluster.status["target"]["revision"] != cluster.status["serving"]["revision"]
    assert "step 1 of 3" in cluster.condition("Soaked")["message"]
    gateway.settle()
    assert gateway.seen == [0, *SHARES, 0]
    assert (cluster.serving(), servers(cluster), soaked(cluster)) == (new, {new}, ("True", "SoakPassed"))
    message = cluster.condition("Soaked")["message"]
    assert "its canary before that: 5 %: passed, 25 %: passed, 50 %: passed" in message
    # One when the first became active, four around the steps, two of the soak.
    assert cluster.started("snapshot") == 1 + len(SHARES) + 1 + 2


def test_the_share_stays_until_the_service_has_moved(cluster: Cluster) -> None:
    old, new, gateway = begun(cluster, share=50)
    while cluster.serving() == old:
        gateway.run(1)
    assert (cluster.serving(), gateway.seen[-1]) == (new, 50)
    gateway.run(1)
    assert (gateway.seen[-1], servers(cluster)) == (0, {old, new})


def watching_the_preview(cluster: Cluster) -> Gateway:
    """One that asks only the preview Service, whose pods are to answer as long as the share may last."""
    gateway = Gateway(cluster)
    del gateway.selected["digits"]
    gateway.look()
    return gateway


@pytest.mark.parametrize("what_fails", ["nothing", "the route"])
def test_an_edit_after_the_move_sends_no_share_to_a_server_that_starts(cluster: Cluster, what_fails: str) -> None:
    """That of a revision that was measured before, so that nothing but its start is waited for."""
    cluster.edit(a_narrower_batch())
    cluster.settle()
    cluster.edit(the_usual_batch())
    cluster.settle()
    old, new, _ = begun(cluster, share=50)
    cluster.refuses = {("apply", "HTTPRoute")} if what_fails == "the route" else set()
    cluster.until(lambda _: cluster.serving() != old)
    if what_fails == "the route":
        cluster.until(lambda _: soaked(cluster)[1] == "SoakPassed")
    gateway = watching_the_preview(cluster)
    cluster.edit(a_narrower_batch())
    gateway.run(60)
    cluster.refuses = set()
    gateway.settle()
    assert (gateway.seen[-1], cluster.serving() in (old, new)) == (0, False)


def test_a_move_that_was_recorded_and_not_made_is_taken_back_without_losing_a_request(cluster: Cluster) -> None:
    old, new, _ = begun(cluster, share=50)
    while any(f'"server":"{new}"' in each and "by_route" in each for each in soaks(cluster)):
        cluster.report(ApiServer(cluster, broken={"Service"}))
        cluster.step()
    assert cluster.serving() == old
    gateway = watching_the_preview(cluster)
    cluster.edit(the_usual_batch())
    gateway.settle()
    assert (cluster.serving(), servers(cluster)) == (old, {old})


def soaks(cluster: Cluster) -> list[str]:
    data = cluster.objects["ConfigMap", "digits-results"]["data"]
    return [text for name, text in data.items() if name.startswith("soak.")]


@pytest.mark.parametrize(
    ("ills", "words"),
    [({"failing": 0.05}, "requests failed in"), ({"slower": 1.5}, "50 % more, and maxLatencyPercent is 40")],
)
def test_a_revision_that_does_worse_never_gets_more_than_the_first_share(
    cluster: Cluster, ills: dict[str, float], words: str
) -> None:
    told = cluster.status["serving"], cluster.status["performance"]
    vars(clients(cluster)).update(ills)
    old, new, gateway = begun(cluster)
    gateway.settle()
    assert gateway.seen == [0, 5, 0]
    assert (cluster.serving(), servers(cluster)) == (old, {old})
    assert (soaked(cluster), summary(cluster)) == (("False", "SoakFailed"), UNDONE)
    message = cluster.condition("Stalled")["message"]
    assert words in message
    assert new in message
    assert (cluster.status["serving"], cluster.status["performance"]) == told


def test_latencies_are_those_of_the_same_time(cluster: Cluster) -> None:
    """What slows both revisions undoes none."""
    _, new, gateway = begun(cluster)
    cluster.counters = lambda pod: Clients(cluster, "none", slower=3.0)(pod)  # noqa: PLW0108 - anew for each pod
    gateway.settle()
    assert (cluster.serving(), gateway.seen) == (new, [0, *SHARES, 0])


def test_a_revision_that_fails_at_a_later_step_is_undone_there(cluster: Cluster) -> None:
    old, _, gateway = begun(cluster, share=25)
    clients(cluster).failing = 0.5
    gateway.settle()
    assert (cluster.serving(), gateway.seen) == (old, [0, 5, 25, 0])
    assert "with 25 % of the requests" in cluster.condition("Stalled")["message"]


def test_a_restart_undoes_at_once(cluster: Cluster) -> None:
    old, new, gateway = begun(cluster)
    (pod,) = [name for kind, name in cluster.objects if kind == "Pod" and name.startswith(new)]
    gateway.run(3)
    cluster.restart(pod)
    gateway.run(1)
    assert (gateway.seen, summary(cluster)) == ([0, 5, 0], UNDONE)
    gateway.settle()
    assert servers(cluster) == {old}


def test_little_traffic_is_no_verdict_and_stops_nothing_where_the_spec_says_so(cluster: Cluster) -> None:
    clients(cluster).rate = 0.4
    _, new, gateway = begun(cluster, rollout=CONTINUE["rollout"])
    gateway.settle()
    assert (cluster.serving(), gateway.seen) == (new, [0, *SHARES, 0])
    assert (soaked(cluster), summary(cluster)[0]) == (("Unknown", "SoakInconclusive"), ("True", "Ready"))
    assert "5 %: inconclusive, it answered" in cluster.condition("Soaked")["message"]


def test_what_was_undone_is_not_tried_again_until_a_change(cluster: Cluster) -> None:
    clients(cluster).failing = 0.5
    _, _, gateway = begun(cluster)
    gateway.settle()
    clients(cluster).failing = 0.0
    story = list(cluster.story)
    cluster.edit(**serving(replicas=2))
    gateway.settle()
    assert (cluster.story, summary(cluster)) == (story, UNDONE)
    cluster.retry()
    gateway.settle()
    assert (soaked(cluster), gateway.seen) == (("True", "SoakPassed"), [0, 5, 0, *SHARES, 0])


@pytest.mark.parametrize("edit", [the_usual_batch(), a_narrower_batch()], ids=["the active one", "a third one"])
def test_a_spec_that_changes_ends_a_canary_without_losing_a_request(cluster: Cluster, edit: Edit) -> None:
    _, new, gateway = begun(cluster)
    cluster.edit(edit)
    gateway.run(1)
    assert (gateway.seen, new in servers(cluster)) == ([0, 5, 0], True)
    gateway.settle()
    assert new not in servers(cluster)
    assert summary(cluster)[0] == ("True", "Ready")


def test_a_target_that_is_unknown_for_a_while_ends_it_too(cluster: Cluster) -> None:
    _, _, gateway = begun(cluster)
    cluster.scripts = when("source", Script(hangs=True))
    cluster.edit(another_source())
    gateway.run(20)
    assert (gateway.seen, len(servers(cluster))) == ([0, 5, 0], 1)


def test_pods_stay_while_a_gateway_does_not_know_that_the_share_ended(cluster: Cluster) -> None:
    _, new, gateway = begun(cluster)
    stale = cluster.objects["HTTPRoute", "digits"]["status"]["parents"]
    cluster.gateway = lambda route: stale
    cluster.edit(the_usual_batch())
    gateway.run(30)
    assert new in servers(cluster)
    gateway.settle()
    assert new not in servers(cluster)


def test_a_list_that_is_taken_away_lets_the_service_move(cluster: Cluster) -> None:
    _, new, gateway = begun(cluster)
    cluster.edit(**serving([]))
    gateway.run(1)
    assert cluster.serving() == new
    gateway.settle()
    assert summary(cluster)[0] == ("True", "Ready")


def test_pods_that_are_not_ready_get_no_share(cluster: Cluster) -> None:
    _, new, gateway = begun(cluster)
    cluster.starts = lambda name: name != new
    cluster.step()
    cluster.act()
    assert max(weight for name, _, weight in backends(cluster) if name == "digits-preview") == 0
    cluster.starts = lambda name: True
    cluster.step()
    cluster.act()
    gateway.selected = Gateway(cluster).selected
    gateway.settle()
    assert cluster.serving() == new


@pytest.mark.parametrize("moment", ["before it begins", "in its first step"])
def test_an_active_revision_that_is_not_ready_for_a_moment_skips_no_step(cluster: Cluster, moment: str) -> None:
    clients(cluster).failing = 0.5
    old = cluster.serving()
    if moment == "before it begins":
        cluster.edit(a_wider_batch())
        cluster.until_active("measure")
    else:
        begun(cluster)
    cluster.starts = lambda name: name != old
    cluster.run(8)
    cluster.starts = lambda name: True
    for _ in cluster.passes(until=lambda _: soaked(cluster)[1] == "SoakFailed"):
        assert cluster.serving() == old
    assert "with 5 % of the requests" in cluster.condition("Soaked")["message"]


def test_a_target_that_is_not_ready_for_a_moment_is_not_late(cluster: Cluster) -> None:
    """Its deadline begins anew, however long ago it was made."""
    clients(cluster).rate = 0.0
    old, new, _ = begun(cluster)
    cluster.run(40)
    cluster.now += timedelta(hours=1)
    cluster.run(3)
    cluster.starts = lambda name: name != new
    cluster.run(3)
    assert cluster.condition("Stalled")["status"] == "False", cluster.condition("Stalled")["message"]
    cluster.starts = lambda name: True
    cluster.run(5)
    assert (cluster.serving(), servers(cluster), soaked(cluster)[1]) == (old, {old, new}, "RolloutHeld")


def test_a_refused_spec_ends_a_canary(cluster: Cluster) -> None:
    old, new, _ = begun(cluster)
    cluster.edit(conversion={"parallelism": 99})
    cluster.run(2)
    preview = cluster.objects["Service", "digits-preview"]["spec"]["selector"][names.SERVER_LABEL]
    assert (cluster.serving(), preview) == (old, old), "no request comes to the new revision"
    cluster.now += timedelta(hours=1)
    cluster.edit(conversion={})
    cluster.run(20)
    assert cluster.serving() == old
    cluster.until(lambda _: soaked(cluster)[1] == "SoakPassed")
    assert cluster.serving() == new


def test_an_outage_of_the_active_revision_ends_with_the_canary(cluster: Cluster) -> None:
    clients(cluster).rate = 0.0
    old, new, _ = begun(cluster)
    cluster.starts = lambda name: name != old
    began = cluster.now
    cluster.until(lambda _: cluster.serving() == new, most=400)
    outage = (cluster.now - began).total_seconds() - Serving().progress_deadline_seconds
    assert 0 <= outage < 60


def test_time_in_which_the_operator_was_away_is_no_outage(cluster: Cluster) -> None:
    """The active revision is not ready in its last look and in its first one, and answered in between."""
    old, _, _ = begun(cluster)
    for _ in range(2):
        cluster.starts = lambda name: name != old
        cluster.step()
        cluster.act()
        cluster.starts = lambda name: True
        cluster.step()
        cluster.now += timedelta(minutes=20)
    cluster.run(2)
    assert cluster.serving() == old, "a revision that nobody judged gets all requests"


def test_a_suspended_object_stays_at_its_step(cluster: Cluster) -> None:
    old, new, gateway = begun(cluster)
    cluster.edit(suspend=True)
    gateway.run(60)
    assert (cluster.serving(), gateway.seen) == (old, [0, 5])
    assert "spec.suspend is true" in cluster.condition("Soaked")["message"]
    cluster.edit(suspend=False)
    gateway.settle()
    assert cluster.serving() == new


def test_more_replicas_in_the_middle_change_no_share(cluster: Cluster) -> None:
    _, new, gateway = begun(cluster)
    cluster.edit(**serving(replicas=3))
    gateway.settle()
    assert (cluster.serving(), gateway.seen) == (new, [0, *SHARES, 0])


def test_without_replicas_it_ends(cluster: Cluster) -> None:
    _, new, _ = begun(cluster)
    cluster.edit(**serving(replicas=0))
    cluster.settle()
    assert (new in servers(cluster), max(weight for name, _, weight in backends(cluster) if "preview" in name)) == (
        False,
        0,
    )


def test_without_the_gateway_api_the_service_moves_as_without_a_canary(cluster: Cluster) -> None:
    cluster.has_gateway_api = False
    del cluster.objects["HTTPRoute", "digits"]
    old = cluster.serving()
    cluster.edit(a_wider_batch())
    cluster.settle()
    assert (cluster.serving() != old, soaked(cluster)) == (True, ("True", "SoakPassed"))
    assert "canary" not in cluster.condition("Soaked")["message"]


def test_counters_that_cannot_be_read_are_no_verdict(cluster: Cluster) -> None:
    words = "the metrics of pod digits-0 at 10.0.0.1:8002 cannot be read: timed out"
    cluster.scripts = when("snapshot", Script(exit_code=1, reason=Reason.SERVER_UNREACHABLE, message=words))
    _, new, gateway = begun(cluster, rollout=CONTINUE["rollout"])
    gateway.settle()
    assert (cluster.serving(), soaked(cluster)) == (new, ("Unknown", "SoakInconclusive"))


def test_an_autoscaler_leaves_the_replicas_alone_meanwhile(before: Cluster) -> None:
    cluster = deepcopy(before)
    cluster.has_keda = True
    cluster.edit(**serving(autoscaling={"maxReplicas": 6}))
    cluster.settle()
    ask(cluster)
    _, _, gateway = begun(cluster)
    cluster.act()
    assert cluster.condition("Autoscaling")["reason"] == "ScalingPaused"
    assert "canary" in cluster.condition("Autoscaling")["message"]
    gateway.settle()
    assert cluster.condition("Autoscaling")["reason"] == "Scaling"


@pytest.mark.parametrize("writes", range(8))
def test_an_operator_that_dies_as_it_undoes_goes_on_where_it_was(cluster: Cluster, writes: int) -> None:
    clients(cluster).failing = 0.5
    old, _, gateway = begun(cluster)
    while not any("SoakFailed" in text for text in cluster.objects["ConfigMap", "digits-results"]["data"].values()):
        wanted = cluster.intent()
        if any("SoakFailed" in text for each in wanted.objects for text in each.get("data", {}).values()):
            for body in wanted.objects[: len(wanted.objects) - writes]:
                cluster.apply(body)
            break
        gateway.run(1)
    gateway.settle()
    assert (cluster.serving(), servers(cluster), summary(cluster)) == (old, {old}, UNDONE)
