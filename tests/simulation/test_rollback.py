"""A revision that served before, served again by its key, whatever became of the source."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.simulation.answers import FINAL, Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_model, candidate
from tests.simulation.edits import a_narrower_batch
from tests.simulation.test_canary import Gateway, begun, serving
from tests.simulation.test_rollout import answering, on_gpus
from tests.simulation.test_soak import KEPT, UNDONE, ask, clients, soaked, summary
from tests.states.deployment import a_deployment
from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.api.triton_deployment import parse as parse_object
from triton_operator.observed.history import History
from triton_operator.observed.snapshot import observe
from triton_operator.planning.plan import Plan
from triton_operator.runtime.object_metrics import Sample, samples
from triton_operator.runtime.store import Key
from triton_plugin.reading.subject import parse
from triton_plugin.telling.request import first_request

RESULTS = ("ConfigMap", "digits-results")
GONE = when("source", Script(exit_code=1, reason=Reason.SOURCE_NOT_FOUND, message="there is nothing"))


def one_candidate(**fields: Any) -> dict[str, Any]:
    """The spec of an object with one candidate."""
    return a_deployment().one_candidate().asking(**fields).cluster().spec


def version(number: int) -> dict[str, Any]:
    return {"source": {"uri": f"pvc://models/v{number}"}}


def three_served() -> Cluster:
    """Three sources served, one after the other."""
    first = a_deployment().one_candidate().asking(**version(1)).settled()
    return first.edited(**version(2)).settled().edited(**version(3)).settled().cluster()


@pytest.fixture
def cluster() -> Cluster:
    return three_served()


def history(cluster: Cluster) -> History:
    return observe("digits", cluster.objects.values()).history


def keys(cluster: Cluster) -> list[str]:
    """The keys to which one can go back; the first one is active."""
    return list(history(cluster).revisions)


def roll_back(cluster: Cluster, key: str | None) -> None:
    cluster.edit(rollout={"revision": key} if key else {})


def active(cluster: Cluster) -> str:
    return str(cluster.status["serving"]["revision"])


def reasons(cluster: Cluster, *kinds: str) -> list[tuple[str, str]]:
    return [(cluster.condition(each)["status"], cluster.condition(each)["reason"]) for each in kinds]


def made(cluster: Cluster) -> dict[str, Any]:
    """The template of the active Deployment's pods."""
    template: dict[str, Any] = cluster.objects["Deployment", cluster.serving() or ""]["spec"]["template"]
    return template


def servers(cluster: Cluster) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.of_kind("Deployment")}


def test_the_one_before_serves_again_though_its_source_is_gone(cluster: Cluster) -> None:
    newest, before, _ = keys(cluster)
    told = history(cluster).revisions[before].status
    story = len(cluster.story)
    cluster.scripts = GONE
    roll_back(cluster, before)
    cluster.settle()
    assert cluster.story[story:] == ["server", "promotion"], "nothing is read, converted or measured"
    assert (active(cluster), len(servers(cluster))) == (before, 1)
    assert reasons(cluster, "Ready", "Reconciling", "Stalled", "Selected") == [
        ("True", "Ready"),
        ("False", "Ready"),
        ("False", "NoStall"),
        ("True", "RolledBack"),
    ]
    assert f"spec.rollout.revision holds revision {before}" in cluster.condition("Selected")["message"]
    assert cluster.status["performance"] == told["performance"]
    assert cluster.status["source"] == told["source"] != newest
    assert "target" not in cluster.status


def test_it_is_served_as_it_was_made(cluster: Cluster) -> None:
    """Images, arguments and all else of its pods are the record's, whatever the spec says by now."""
    first = a_deployment().one_candidate().asking(**version(1)).settled().cluster()
    cluster.edit(serving={"arguments": ["--log-verbose=1"], "image": "example/server:9"})
    roll_back(cluster, keys(cluster)[-1])
    cluster.settle()
    assert made(cluster) == made(first)


def test_a_newer_source_that_fails_does_not_matter(cluster: Cluster) -> None:
    _, before, _ = keys(cluster)
    cluster.scripts = when("convert", FINAL)
    cluster.edit(**version(4))
    cluster.settle()
    assert cluster.condition("Stalled")["status"] == "True"
    roll_back(cluster, before)
    cluster.settle()
    assert active(cluster) == before
    assert reasons(cluster, "Ready", "Stalled") == [("True", "Ready"), ("False", "NoStall")]
    started = cluster.started("convert")
    roll_back(cluster, None)
    cluster.settle()
    assert cluster.condition("Stalled")["reason"] == "AllCandidatesFailed"
    assert cluster.started("convert") == started, "its failure is still known"
    assert active(cluster) == before, "what serves goes on"


def test_nothing_is_repeated_when_the_field_is_cleared(cluster: Cluster) -> None:
    newest, before, _ = keys(cluster)
    roll_back(cluster, before)
    cluster.settle()
    assert keys(cluster)[:2] == [before, newest]
    story = len(cluster.story)
    roll_back(cluster, None)
    cluster.settle()
    assert cluster.story[story:] == ["server", "promotion"]
    assert (active(cluster), cluster.condition("Selected")["reason"]) == (newest, "Selected")
    assert keys(cluster)[:2] == [newest, before]


@pytest.mark.parametrize("verdict", ["passes", "fails"])
def test_a_new_source_that_clears_the_field_leaves_the_kept_revision_until_it_passed(
    cluster: Cluster, verdict: str
) -> None:
    """`kubectl triton run --update --to-latest` makes both changes in one write."""
    newest, before, _ = keys(cluster)
    roll_back(cluster, before)
    cluster.settle()
    if verdict == "fails":
        cluster.scripts = when("convert", FINAL)
    cluster.edit(**version(4), rollout={})
    for _ in cluster.passes(until=lambda found: active(found) != before or found.has("AllCandidatesFailed", "Stalled")):
        assert history(cluster).revisions[newest].server not in servers(cluster), "it is not even started"
    assert (active(cluster) == before) == (verdict == "fails")
    assert active(cluster) != newest


def test_the_active_revision_can_be_held(cluster: Cluster) -> None:
    newest, story = keys(cluster)[0], len(cluster.story)
    roll_back(cluster, newest)
    cluster.settle()
    cluster.edit(**version(4))
    cluster.settle()
    assert (active(cluster), cluster.story[story:]) == (newest, [])
    assert cluster.condition("Ready")["status"] == "True"


def test_an_unknown_key_is_refused_with_those_that_may_be_named(cluster: Cluster) -> None:
    serving, story = cluster.status["serving"], len(cluster.story)
    roll_back(cluster, "0123456789abcdef")
    cluster.settle()
    assert (cluster.status["serving"], cluster.story[story:]) == (serving, [])
    assert reasons(cluster, "Ready", "Stalled", "Available") == [
        ("False", "RevisionUnknown"),
        ("True", "RevisionUnknown"),
        ("True", "Available"),
    ]
    message = cluster.condition("Ready")["message"]
    assert "0123456789abcdef is not among the revisions that served" in message
    assert all(f"{key} (onnx-fp32)" in message for key in keys(cluster))
    roll_back(cluster, None)
    cluster.settle()
    assert (cluster.condition("Ready")["status"], cluster.story[story:]) == ("True", [])


def test_a_state_without_its_server_is_refused_with_that_reason(cluster: Cluster) -> None:
    _, before, _ = keys(cluster)
    recorded = json.loads(cluster.objects[RESULTS]["data"]["history"])
    recorded["revisions"] = [recorded["revisions"][0], None, None]
    cluster.objects[RESULTS]["data"]["history"] = json.dumps(recorded)
    roll_back(cluster, before)
    cluster.settle()
    assert cluster.condition("Ready")["reason"] == "RevisionUnknown"
    assert "has no record of its server: it never served" in cluster.condition("Ready")["message"]


def test_a_revision_that_the_history_dropped_is_unknown(cluster: Cluster) -> None:
    *_, dropped, anchor = keys(cluster)
    cluster.edit(revisionHistoryLimit=1, **version(4))
    cluster.settle()
    assert keys(cluster)[-1] == anchor
    roll_back(cluster, dropped)
    cluster.settle()
    assert cluster.condition("Ready")["reason"] == "RevisionUnknown"


def test_what_is_named_is_cleaned_by_no_limit(cluster: Cluster) -> None:
    *_, oldest = keys(cluster)
    needed = history(cluster).state(history(cluster).revisions[oldest]).records
    cluster.edit(revisionHistoryLimit=0)
    roll_back(cluster, oldest)
    cluster.settle()
    assert active(cluster) == oldest
    recorded = observe("digits", cluster.objects.values()).records.keys()
    assert set(needed) == {each for each in recorded if not each.startswith("clean.")}, "and no Job brings others back"


def test_with_one_gpu_the_newer_one_makes_way() -> None:
    cluster = on_gpus(1, 1)
    first = active(cluster)
    cluster.edit(**version(2))
    cluster.settle()
    assert active(cluster) != first
    roll_back(cluster, first)
    cluster.settle()
    assert (active(cluster), answering(cluster), len(servers(cluster))) == (first, 1, 1)
    assert cluster.condition("Ready")["status"] == "True"


def test_a_server_that_does_not_start_leaves_what_serves(cluster: Cluster) -> None:
    newest, before, _ = keys(cluster)
    serving = cluster.serving()
    cluster.starts = lambda name: name == serving
    roll_back(cluster, before)
    cluster.run(400)
    assert (cluster.serving(), active(cluster)) == (serving, newest)
    assert reasons(cluster, "Ready", "Stalled") == [
        ("False", "ProgressDeadlineExceeded"),
        ("True", "ProgressDeadlineExceeded"),
    ]


def moves(wanted: Plan, old: str) -> bool:
    """Whether the pass moves the Service."""
    (service,) = [each for each in wanted.objects if (each["kind"], each["metadata"]["name"]) == ("Service", "digits")]
    return bool(service["spec"]["selector"][names.SERVER_LABEL] != old)


@pytest.mark.parametrize("died", range(8))
def test_an_operator_that_dies_as_the_service_moves_goes_on(cluster: Cluster, died: int) -> None:
    _, before, _ = keys(cluster)
    roll_back(cluster, before)
    old = cluster.serving()
    cluster.until(lambda cluster: moves(cluster.intent(), old or ""))
    wanted = cluster.intent()
    for body in wanted.objects[: len(wanted.objects) - died]:
        cluster.apply(body)
    cluster.settle()
    assert (active(cluster), cluster.serving() != old) == (before, True)
    assert cluster.condition("Ready")["status"] == "True"


def test_a_model_that_was_renamed_answers_by_its_former_name() -> None:
    cluster = a_deployment().one_candidate().settled().cluster()
    first = active(cluster)
    cluster.edit(models=[a_model(name="renamed", candidates=[candidate("onnx-fp32")])])
    cluster.settle()
    roll_back(cluster, first)
    cluster.settle()
    recorded = observe("digits", cluster.objects.values()).active_record
    assert recorded is not None
    assert (active(cluster), recorded.model, cluster.status["serving"]["model"]) == (first, "digits", "digits")
    assert "/v2/models/digits/" in first_request(parse(cluster.body(), cluster.objects[RESULTS]))
    found = {labels[2] for _, labels, _ in of_object(cluster) if len(labels) > 3}
    assert found == {"digits"}, "so the measured series and the servers' own have one label"
    roll_back(cluster, None)
    cluster.settle()
    assert "model" not in cluster.status["serving"], "the spec has it"


def of_object(cluster: Cluster) -> Iterator[Sample]:
    deployment = parse_object(cluster.body())
    return samples(Key("vision", "digits"), deployment.spec, deployment.status)


def test_the_history_of_many_states_leaves_room_for_the_records() -> None:
    cluster = a_deployment().one_candidate().asking(revisionHistoryLimit=9, **version(0)).settled().cluster()
    for number in range(1, 10):
        cluster.edit(**version(number))
        cluster.settle()
    assert len(keys(cluster)) == 10
    assert len(cluster.objects[RESULTS]["data"]["history"]) < 100_000
    assert not history(cluster).records - observe("digits", cluster.objects.values()).records.keys()


# With a soak and a canary -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def soaked_twice() -> Cluster:
    """An object that asks for a soak and a canary, and whose second revision passed both; not to be changed."""
    cluster = a_deployment().one_candidate().asking(**serving()).where(has_gateway_api=True).settled().cluster()
    ask(cluster)
    begun(cluster)[2].settle()
    assert soaked(cluster) == ("True", "SoakPassed")
    return cluster


def test_a_rollback_waits_for_no_verdict(soaked_twice: Cluster) -> None:
    cluster = deepcopy(soaked_twice)
    _, before = keys(cluster)
    story = len(cluster.story)
    roll_back(cluster, before)
    cluster.settle()
    assert (active(cluster), summary(cluster)) == (before, KEPT)
    assert soaked(cluster) == ("Unknown", "Waiting")
    assert cluster.story[story:] == ["server", "promotion", "snapshot"], "its counters are read for the one after it"


def test_what_comes_after_a_rollback_is_judged_beside_it(soaked_twice: Cluster) -> None:
    cluster = deepcopy(soaked_twice)
    newest, before = keys(cluster)
    roll_back(cluster, before)
    cluster.settle()
    cluster.run(15)
    roll_back(cluster, None)
    Gateway(cluster).settle()
    assert (active(cluster), soaked(cluster)) == (newest, ("True", "SoakPassed"))


def test_a_rollback_ends_a_canary_whose_pods_stay_for_the_gateways(soaked_twice: Cluster) -> None:
    cluster = deepcopy(soaked_twice)
    _, before = keys(cluster)
    _, new, gateway = begun(cluster, a_narrower_batch())
    roll_back(cluster, before)
    gateway.run(1)
    assert (gateway.seen, new in servers(cluster)) == ([0, 5, 0], True)
    cluster.settle()
    assert (active(cluster), len(servers(cluster)), summary(cluster)) == (before, 1, KEPT)


def test_holding_the_active_revision_ends_a_canary(soaked_twice: Cluster) -> None:
    cluster = deepcopy(soaked_twice)
    newest, _ = keys(cluster)
    _, new, gateway = begun(cluster, a_narrower_batch())
    roll_back(cluster, newest)
    gateway.settle()
    assert (active(cluster), gateway.seen, new in servers(cluster)) == (newest, [0, 5, 0], False)


def test_a_revision_that_was_undone_is_not_tried_again_for_a_rollback(soaked_twice: Cluster) -> None:
    cluster = deepcopy(soaked_twice)
    newest, before = keys(cluster)
    clients(cluster).failing = 0.5
    begun(cluster, a_narrower_batch())[2].settle()
    assert summary(cluster) == UNDONE
    roll_back(cluster, before)
    cluster.settle()
    assert summary(cluster) == KEPT
    roll_back(cluster, None)
    cluster.settle()
    assert (active(cluster), summary(cluster)) == (before, UNDONE), newest
