"""Which revision a rollback without a key takes, of objects that the operator brought there."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.answers import FINAL, when
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.edits import a_narrower_batch, a_wider_batch
from tests.simulation.moving import NEW_FILES
from tests.simulation.test_canary import begun, serving
from tests.simulation.test_rollback import active, keys, made, roll_back, three_served, version
from tests.simulation.test_soak import ask, asking, clients, promoted, soaked, with_clients
from tests.states.deployment import a_deployment
from triton_operator.observed.pod import SERVER
from triton_plugin.errors import SubjectError
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling.history import rollback_effect, rollback_revision, table


def seen(cluster: Cluster) -> Subject:
    return parse(cluster.body(), cluster.objects["ConfigMap", "digits-results"])


@pytest.fixture
def cluster() -> Cluster:
    return three_served()


def test_each_rollback_goes_further_back_and_none_to_what_was_left(cluster: Cluster) -> None:
    _, before, oldest = keys(cluster)
    for wanted in (before, oldest):
        assert rollback_revision(seen(cluster), None) == wanted
        roll_back(cluster, wanted)
        cluster.settle()
        assert active(cluster) == wanted
    with pytest.raises(SubjectError, match="newer is not chosen by itself"):
        rollback_revision(seen(cluster), None)


def test_a_revert_in_git_leaves_what_was_newer_as_a_rollback_does(cluster: Cluster) -> None:
    _, before, oldest = keys(cluster)
    cluster.edit(**version(2))
    cluster.settle()
    assert active(cluster) == before
    assert rollback_revision(seen(cluster), None) == oldest


def test_after_to_latest_it_is_the_one_before_again(cluster: Cluster) -> None:
    _, before, _ = keys(cluster)
    for key in (before, None):
        roll_back(cluster, key)
        cluster.settle()
    assert rollback_revision(seen(cluster), None) == before


def refusal(cluster: Cluster) -> str:
    with pytest.raises(SubjectError) as refused:
        rollback_revision(seen(cluster), None)
    return str(refused.value)


def server_image(cluster: Cluster) -> str:
    found = {each["name"]: str(each["image"]) for each in made(cluster)["spec"]["containers"]}
    return found[SERVER]


def test_an_edit_of_serving_alone_is_taken_back_by_default(cluster: Cluster) -> None:
    key, server = active(cluster), cluster.serving()
    cluster.edit(serving={"arguments": ["--backend-config=onnxruntime,enable-global-threadpool=1"]})
    cluster.settle()
    assert [row[-1] for row in table(seen(cluster)).rows] == ["active", "", "", "anchor"]
    roll_back(cluster, rollback_revision(seen(cluster), None))
    cluster.settle()
    assert (active(cluster), cluster.serving()) == (key, server)
    assert [row[-1] for row in table(seen(cluster)).rows] == ["active, held", "", "", "anchor"]


def test_an_update_of_the_server_image_alone_is_taken_back_by_default(cluster: Cluster) -> None:
    image = server_image(cluster)
    cluster.settings = replace(SETTINGS, server_image="example/server:2")
    cluster.settle()
    cluster.updates += 1
    cluster.settle()
    assert server_image(cluster) != image
    roll_back(cluster, rollback_revision(seen(cluster), None))
    cluster.settle()
    assert server_image(cluster) == image


@pytest.fixture(scope="module")
def soaked_once() -> Cluster:
    """An object whose second revision passed its soak, with clients; not to be changed."""
    cluster = with_clients()
    cluster.edit(a_wider_batch())
    cluster.settle()
    assert soaked(cluster) == ("True", "SoakPassed")
    return cluster


def test_a_soak_that_undid_the_newest_left_nothing_to_go_back_from(soaked_once: Cluster) -> None:
    cluster = copy.deepcopy(soaked_once)
    key, before = keys(cluster)
    clients(cluster).failing = 0.5
    cluster.edit(a_narrower_batch())
    cluster.settle()
    assert active(cluster) == key
    assert refusal(cluster) == (
        f"TritonDeployment digits serves revision {key}, and what is asked for does not serve (SoakFailed). To stay"
        f" with the active revision, revert the edit, or type: kubectl triton rollback digits {key} --namespace vision;"
        f" to go further back, type: kubectl triton rollback digits {before} --namespace vision"
    )


def test_a_revision_that_is_soaked_is_gone_back_from(soaked_once: Cluster) -> None:
    cluster = copy.deepcopy(soaked_once)
    key = active(cluster)
    promoted(cluster, a_narrower_batch())
    cluster.run(5)
    assert (soaked(cluster)[1], active(cluster) != key) == ("Soaking", True)
    assert rollback_revision(seen(cluster), None) == key
    assert table(seen(cluster)).rows[0][-1] == "active"


def test_a_server_that_is_soaked_under_the_same_key_is_gone_back_from(soaked_once: Cluster) -> None:
    cluster = copy.deepcopy(soaked_once)
    key, server = active(cluster), cluster.serving()
    promoted(cluster, a_wider_batch(), serving=asking()["serving"] | {"arguments": ["--log-verbose=1"]})
    cluster.run(5)
    assert (soaked(cluster)[1], active(cluster)) == ("Soaking", key)
    roll_back(cluster, rollback_revision(seen(cluster), None))
    cluster.settle()
    assert (active(cluster), cluster.serving()) == (key, server)


def test_a_canary_is_not_what_serves() -> None:
    cluster = a_deployment().one_candidate().asking(**serving()).where(has_gateway_api=True).settled().cluster()
    ask(cluster)
    key = active(cluster)
    begun(cluster)
    words = refusal(cluster)
    assert f"revision {cluster.status['target']['revision']} is on its way (Canary)" in words
    assert words.endswith(f"revert the edit, or type: kubectl triton rollback digits {key} --namespace vision")


@pytest.mark.parametrize("nightly", [False, True], ids=["edit", "newer files"])
def test_what_failed_before_it_served_is_nothing_to_go_back_from(cluster: Cluster, nightly: bool) -> None:
    key = active(cluster)
    fails, files = when("convert", FINAL), when("source", NEW_FILES)
    cluster.scripts = lambda stage, *others: files(stage, *others) if stage == "source" else fails(stage, *others)
    change: dict[str, Any] = {"source": {**cluster.spec["source"], "version": "tonight"}} if nightly else version(4)
    cluster.edit(**change)
    cluster.settle()
    assert active(cluster) == key
    assert "what is asked for does not serve (AllCandidatesFailed)" in refusal(cluster)


def test_an_edit_that_nobody_has_looked_at_yet_is_waited_for(cluster: Cluster) -> None:
    cluster.edit(**version(4))
    assert "the operator has not looked at generation 4 of the spec yet" in refusal(cluster)


def test_a_server_that_does_not_answer_is_gone_back_from(cluster: Cluster) -> None:
    _, before, _ = keys(cluster)
    cluster.starts = lambda name: False
    for kind, name in [each for each in cluster.objects if each[0] == "Pod"]:
        del cluster.objects[kind, name]
    cluster.run(5)
    assert cluster.condition("Available")["status"] == "False"
    assert rollback_revision(seen(cluster), None) == before


def test_a_key_of_several_servers_is_refused_because_it_would_keep_the_bad_one(soaked_once: Cluster) -> None:
    cluster = copy.deepcopy(soaked_once)
    key = active(cluster)
    promoted(cluster, a_wider_batch(), serving=asking()["serving"] | {"arguments": ["--log-verbose=1"]})
    cluster.run(5)
    new, old = (each for each in keys(cluster) if each.partition(".")[0] == key)
    with pytest.raises(SubjectError) as refused:
        rollback_revision(seen(cluster), key)
    assert str(refused.value).endswith(f"name the server too: {new} (active), {old}")
    assert rollback_revision(seen(cluster), old) == old
    assert "the Service moves at once" in rollback_effect(seen(cluster), old)
    assert rollback_effect(seen(cluster), new).endswith("Its soak or canary ends without a verdict.")


def test_a_rollback_says_that_it_may_be_a_gap(cluster: Cluster) -> None:
    newest, before, _ = keys(cluster)
    assert "Where no GPU is free for them" in rollback_effect(seen(cluster), before)
    assert rollback_effect(seen(cluster), newest) == (
        f"Revision {newest} is the active one, so it stays, and what is newer is not served."
    )


def test_a_soak_that_is_held_is_gone_back_from(soaked_once: Cluster) -> None:
    cluster = copy.deepcopy(soaked_once)
    key = active(cluster)
    promoted(cluster, a_narrower_batch())
    clients(cluster).rate = 0
    cluster.until(lambda _: soaked(cluster)[1] == "RolloutHeld", 2000)
    assert active(cluster) != key
    assert rollback_revision(seen(cluster), None) == key
