"""What Ready and UpToDate say: of an edit of the spec, and of files that move while the spec stays as it is."""

import json
from collections.abc import Callable

import pytest

from tests.simulation.answers import FINAL, Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.edits import a_wider_batch, another_source, the_usual_batch
from tests.simulation.moving import NEW_FILES, move
from tests.simulation.test_soak import clients, promoted, with_clients
from tests.states.deployment import a_deployment
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import ACTIVE
from triton_operator.api.triton_deployment import parse

DONE = {"Ready": "True", "UpToDate": "True", "Reconciling": "False", "Stalled": "False"}
BEHIND = DONE | {"UpToDate": "False"}
WORKS_ON_IT = {"Ready": "False", "UpToDate": "False", "Reconciling": "True", "Stalled": "False"}
STALLED = {"Ready": "False", "UpToDate": "False", "Reconciling": "False", "Stalled": "True"}


def summary(cluster: Cluster) -> dict[str, str]:
    """The statuses of the conditions that summarize."""
    return {kind: cluster.condition(kind)["status"] for kind in DONE}


def passed(cluster: Cluster, over: Callable[[], bool] | None = None, steps: int = 300) -> list[dict[str, str]]:
    """The summaries after each pass, without repetitions, until something holds or nothing changes any more."""
    seen: list[dict[str, str]] = []
    quiet = 0
    for _ in range(steps):
        writes = cluster.act()
        if not seen or seen[-1] != summary(cluster):
            seen.append(summary(cluster))
        if over is not None and over():
            return seen
        quiet = quiet + 1 if writes + cluster.step() == 0 else 0
        if quiet == 2 and cluster.intent().requeue_after is None:
            return seen
    raise AssertionError(f"no end after {steps} steps: {seen}")


def test_ready_stays_true_while_newer_files_are_worked_on(serving: Cluster) -> None:
    first, told = serving.status["serving"]["revision"], len(serving.events)
    move(serving)
    assert passed(serving) == [BEHIND, DONE]
    assert serving.status["serving"]["revision"] != first
    events = [(each.type, each.message) for each in serving.events[told:] if "UpToDate" in each.message]
    assert events == [("Normal", "UpToDate: nothing newer is wanted than the active revision")]


def test_both_conditions_say_which_revision_serves_and_what_the_newer_one_waits_for(serving: Cluster) -> None:
    first = serving.status["serving"]["revision"]
    move(serving)
    serving.until_active("convert")
    assert f"revision {first} serves" in serving.condition("Ready")["message"]
    newer = serving.condition("UpToDate")
    assert (newer["reason"], "convert" in newer["message"]) == ("Running", True)


def test_newer_files_that_fail_stall_nothing_and_one_event_warns(serving: Cluster) -> None:
    first, told = serving.status["serving"], len(serving.events)
    move(serving, when("convert", FINAL))
    assert passed(serving) == [BEHIND]
    assert serving.condition("UpToDate")["reason"] == Reason.ALL_CANDIDATES_FAILED
    assert serving.status["serving"] == first
    (warning,) = [each for each in serving.events[told:] if each.message.startswith("UpToDate")]
    assert (warning.type, warning.reason) == ("Warning", Reason.ALL_CANDIDATES_FAILED)
    assert not [each for each in serving.events[told:] if each.message.startswith("Stalled")]
    move(serving, files=Script(content="mended"))
    assert passed(serving) == [BEHIND, DONE]


def test_a_revision_that_says_look_again_asks_for_nothing_else(serving: Cluster) -> None:
    serving.scripts = when("source", NEW_FILES)
    serving.edit(source={**serving.spec["source"], "version": "tonight"})
    assert passed(serving) == [BEHIND, DONE]


def test_a_revision_of_the_hub_asks_for_other_files(serving: Cluster) -> None:
    serving.edit(source={"uri": "hf://acme/digits", "version": "v1"})
    passed(serving)
    serving.edit(source={"uri": "hf://acme/digits", "version": "v2"})
    assert passed(serving) == [WORKS_ON_IT, DONE]


def test_an_edit_is_not_ready_until_it_serves(serving: Cluster) -> None:
    serving.edit(a_wider_batch())
    assert passed(serving) == [WORKS_ON_IT, DONE]


def test_an_edit_that_fails_is_stalled_and_its_undoing_is_ready_at_once(serving: Cluster) -> None:
    models = serving.spec["models"]
    serving.scripts = when("convert", FINAL)
    serving.edit(another_source())
    assert passed(serving) == [WORKS_ON_IT, STALLED]
    assert serving.condition("UpToDate")["reason"] == serving.condition("Ready")["reason"]
    serving.edit(source={"uri": "pvc://models/digits"}, models=models)
    serving.act()
    assert summary(serving) == DONE


def test_no_new_object_is_ready_before_it_serves() -> None:
    assert passed(a_deployment().cluster()) == [WORKS_ON_IT, DONE]


@pytest.mark.parametrize("fields", [{"serving": {"replicas": 3}}, {"serving": {"replicas": 1}}])
def test_an_autoscaler_that_scales_meanwhile_changes_nothing_of_it(serving: Cluster, fields: dict[str, object]) -> None:
    move(serving)
    serving.run(8)
    serving.edit(**fields)
    assert passed(serving) == [BEHIND, DONE]


def test_a_suspended_object_stays_ready(serving: Cluster) -> None:
    move(serving)
    serving.run(8)
    serving.edit(suspend=True)
    assert passed(serving) == [BEHIND]
    assert serving.condition("UpToDate")["reason"] == "Suspended"
    serving.edit(suspend=False)
    assert passed(serving) == [BEHIND, DONE]


def test_the_loss_of_all_records_changes_nothing_of_it(serving: Cluster) -> None:
    move(serving)
    serving.run(8)
    serving.delete("ConfigMap", "digits-results")
    assert passed(serving) == [BEHIND, DONE]


def test_what_serves_is_not_ready_while_it_does_not_answer(serving: Cluster) -> None:
    move(serving, when("convert", Script(hangs=True)))
    serving.run(8)
    assert summary(serving) == BEHIND
    serving.starts = lambda deployment: False
    for pod in serving.pods_of(serving.serving() or ""):
        del serving.objects["Pod", pod["metadata"]["name"]]
    serving.run(4)
    assert summary(serving) == WORKS_ON_IT
    assert serving.condition("Ready")["reason"] == serving.condition("Available")["reason"] == "RollingOut"
    assert serving.condition("Reconciling")["message"] != serving.condition("Ready")["message"]
    serving.starts = lambda deployment: True
    serving.run(4)
    assert summary(serving) == BEHIND


def test_an_object_of_an_older_version_is_as_ready_as_it_was(serving: Cluster) -> None:
    data = serving.objects["ConfigMap", "digits-results"]["data"]
    data[ACTIVE] = json.dumps({key: value for key, value in json.loads(data[ACTIVE]).items() if key != "met"})
    move(serving)
    serving.run(2)
    serving.edit(serving={"replicas": 2})
    assert passed(serving) == [BEHIND, DONE]


def test_an_object_that_an_older_version_undid_is_not_ready_though_it_said_so(serving: Cluster) -> None:
    data = serving.objects["ConfigMap", "digits-results"]["data"]
    data[ACTIVE] = json.dumps({key: value for key, value in json.loads(data[ACTIVE]).items() if key != "met"})
    serving.condition("Stalled")["status"] = "True"
    move(serving, when("convert", FINAL))
    assert passed(serving)[-1] == STALLED


@pytest.fixture
def soaking() -> Cluster:
    return with_clients()


def test_an_edit_is_in_progress_until_its_soak_is_over(soaking: Cluster) -> None:
    soaking.edit(a_wider_batch())
    assert passed(soaking) == [WORKS_ON_IT, DONE | {"UpToDate": "False", "Reconciling": "True"}, DONE]


def test_newer_files_are_up_to_date_once_their_soak_has_passed(soaking: Cluster) -> None:
    old = soaking.serving()
    move(soaking)
    passed(soaking, lambda: soaking.serving() != old)
    soaking.run(3)
    assert summary(soaking) == BEHIND
    assert (soaking.condition("UpToDate")["reason"], soaking.condition("Soaked")["reason"]) == ("Soaking", "Soaking")
    assert passed(soaking) == [BEHIND, DONE]
    assert soaking.condition("Soaked")["reason"] == "SoakPassed"


def test_a_commit_that_a_rollback_keeps_from_serving_is_not_up_to_date(serving: Cluster) -> None:
    serving.edit(rollout={"revision": serving.status["serving"]["revision"]})
    serving.settle()
    assert (summary(serving), serving.condition("UpToDate")["reason"]) == (BEHIND, "RolledBack")
    serving.edit(a_wider_batch())
    serving.settle()
    assert (summary(serving), serving.condition("UpToDate")["reason"]) == (BEHIND, "RolledBack")
    assert "no other edit is served" in serving.condition("UpToDate")["message"]


def test_an_edit_that_is_undone_is_stalled_and_not_ready(soaking: Cluster) -> None:
    clients(soaking).failing = 0.5
    soaking.edit(a_wider_batch())
    assert passed(soaking)[-1] == STALLED
    assert soaking.condition("Ready")["reason"] == "SoakFailed"
    soaking.edit(the_usual_batch())
    soaking.act()
    assert summary(soaking) == DONE


def test_newer_files_that_are_undone_leave_the_object_ready(soaking: Cluster) -> None:
    clients(soaking).failing = 0.5
    first, told = soaking.serving(), len(soaking.events)
    move(soaking)
    seen = passed(soaking)
    assert (seen[0], seen[-1], soaking.serving()) == (BEHIND, BEHIND, first)
    assert {each["Ready"] for each in seen} == {"True"}
    assert soaking.condition("UpToDate")["reason"] == "SoakFailed"
    told_back = f"UpToDate: Deployment {first} is active again; revision"
    assert [each.type for each in soaking.events[told:] if each.message.startswith(told_back)] == ["Warning"]


def test_going_back_in_the_middle_of_a_soak_is_not_ready_before_it_serves(soaking: Cluster) -> None:
    old, _ = promoted(soaking)
    soaking.run(3)
    # The stub's clients ask nobody, so a soak has no end of its own.
    soaking.edit(the_usual_batch(), rollout={"onInconclusive": "Continue"})
    seen = passed(soaking, lambda: soaking.serving() == old)
    assert seen == [WORKS_ON_IT]
    assert passed(soaking)[-1] == DONE


@pytest.mark.parametrize(
    ("fields", "asks_for_another"),
    [
        ({}, False),
        ({"serving": {"replicas": 3}}, False),
        ({"serving": {}, "pod": {}}, False),
        ({"suspend": True}, False),
        ({"serving": {"arguments": ["--log-verbose=1"]}}, True),
        ({"source": {"uri": "pvc://models/digits", "version": "v2"}}, False),
        ({"source": {"uri": "pvc://models/others"}}, True),
        ({"selection": {"approval": "Manual", "approvedRevision": "0" * 16}}, True),
    ],
    ids=str,
)
def test_what_is_another_spec(serving: Cluster, fields: dict[str, object], asks_for_another: bool) -> None:
    before = parse(serving.body()).goal_digest
    serving.edit(**fields)
    assert (parse(serving.body()).goal_digest != before) is asks_for_another
