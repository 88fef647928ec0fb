"""What is kept of the states that served, and what KEY and KEY.SERVER stand for."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.cluster import SETTINGS, Cluster, pulled
from tests.simulation.deployments import UNANCHORED
from tests.simulation.edits import merged
from tests.simulation.test_rollback import active, history, keys, made, one_candidate, roll_back, servers, version
from tests.simulation.test_soak import ask, asking, clients, promoted, soaked, swept
from triton_operator.observed.history import History

BAD = "example/server:bad"


def image(cluster: Cluster) -> str:
    return str(made(cluster)["spec"]["containers"][0]["image"])


@pytest.fixture(scope="module")
def two_servers() -> Cluster:
    """A second source with two servers of its key, and a first one; not to be changed."""
    cluster = Cluster(one_candidate(**version(1)))
    cluster.settle()
    cluster.edit(**version(2))
    cluster.settle()
    cluster.edit(serving={"image": BAD})
    cluster.settle()
    return cluster


@pytest.fixture
def cluster(two_servers: Cluster) -> Cluster:
    return deepcopy(two_servers)


def test_servers_of_one_key_are_told_apart(cluster: Cluster) -> None:
    newest, before, first = history(cluster).revisions.items()
    assert newest[1].key == before[1].key == active(cluster)
    assert [newest[1].server, first[0]] == [cluster.serving(), first[1].key], "one server of a key needs no more"
    assert [name for name, _ in (newest, before)] == [
        f"{each.key}.{each.server.removeprefix('digits-')}" for _, each in (newest, before)
    ]


def test_an_edit_of_the_server_alone_is_taken_back(cluster: Cluster) -> None:
    newest, before, _ = keys(cluster)
    source, story = cluster.status["source"], len(cluster.story)
    roll_back(cluster, before)
    cluster.settle()
    assert (image(cluster), cluster.status["source"]) == (pulled(SETTINGS.server_image), source)
    assert cluster.story[story:] == ["server", "promotion"]
    assert cluster.condition("Ready")["status"] == "True"
    assert f"spec.rollout.revision holds revision {before} " in cluster.condition("Selected")["message"]
    assert keys(cluster)[:2] == [before, newest]
    roll_back(cluster, newest)
    cluster.settle()
    assert image(cluster).startswith(BAD.rpartition(":")[0])


def test_new_images_of_the_server_alone_are_taken_back() -> None:
    cluster = Cluster(one_candidate())
    cluster.settle()
    key = active(cluster)
    cluster.settings = replace(SETTINGS, server_image="example/server:2")
    cluster.updates += 1
    cluster.settle()
    assert (active(cluster), image(cluster)) == (key, pulled("example/server:2"))
    roll_back(cluster, keys(cluster)[1])
    cluster.settle()
    assert (active(cluster), image(cluster)) == (key, pulled(SETTINGS.server_image))


def test_a_key_alone_stands_for_what_serves_by_it(cluster: Cluster) -> None:
    serving, story = cluster.serving(), len(cluster.story)
    roll_back(cluster, active(cluster))
    cluster.settle()
    assert (cluster.serving(), cluster.story[story:]) == (serving, [])
    assert cluster.condition("Ready")["status"] == "True"


def test_a_key_alone_of_another_version_stands_for_its_last_server(cluster: Cluster) -> None:
    last, _, first = keys(cluster)
    key, _, digits = last.partition(".")
    roll_back(cluster, first)
    cluster.settle()
    assert active(cluster) == first
    roll_back(cluster, key)
    cluster.settle()
    assert cluster.serving() == f"digits-{digits}"
    cluster.settle()
    assert servers(cluster) == {f"digits-{digits}"}, "it goes on to mean the same"


def test_a_server_that_never_had_the_key_is_unknown(cluster: Cluster) -> None:
    last, before, first = keys(cluster)
    roll_back(cluster, f"{first}.{last.partition('.')[2]}")
    cluster.settle()
    message = cluster.condition("Ready")["message"]
    assert cluster.condition("Ready")["reason"] == "RevisionUnknown"
    assert all(f"{name} (onnx-fp32)" in message for name in (last, before, first)), message


def test_the_limit_counts_servers_and_not_edits_of_what_is_measured() -> None:
    cluster = Cluster(one_candidate(**version(1)))
    cluster.settle()
    cluster.edit(**version(2))
    cluster.settle()
    wanted = keys(cluster)
    for sizes in ([1, 2], [1, 2, 4], [1, 4]):
        cluster.edit(performance={"offline": {"batchSizes": sizes}})
        cluster.settle()
    assert keys(cluster) == wanted
    (now, _), rows = history(cluster).served, cluster.status["performance"]["offline"]
    assert now.revision is not None
    assert now.revision.status["performance"]["offline"] == rows, "the newest state of each is kept"


def test_the_states_of_one_server_that_an_older_version_kept_become_one() -> None:
    cluster = Cluster(one_candidate())
    cluster.settle()
    (state,) = history(cluster).served
    older = History((replace(state, records=("a",)), replace(state, records=("b",)), replace(state, revision=None)))
    assert older.with_served(state, 3) == History((state,), anchor=state)


# With a soak -------------------------------------------------------------------------------------------------------


def held(**fields: Any) -> Cluster:
    """The second source serves, and its soak has no verdict. ``fields``: what its spec asks for besides."""
    cluster = Cluster(one_candidate(**version(1), **fields) | asking(), counters=swept)
    cluster.settle()
    ask(cluster)
    clients(cluster).rate = 0.0
    promoted(cluster, merged("source", **version(2)["source"]))
    cluster.run(60)
    return cluster


def test_a_revision_that_was_held_is_kept_once_another_takes_its_place() -> None:
    cluster = held()
    second, source = active(cluster), cluster.status["source"]
    cluster.edit(**version(3))
    cluster.run(60)
    assert active(cluster) != second
    assert keys(cluster)[1] == second
    roll_back(cluster, second)
    cluster.settle()
    assert (active(cluster), cluster.status["source"]) == (second, source)
    assert cluster.condition("Ready")["status"] == "True"


def test_what_is_on_trial_may_be_named_and_drops_nothing() -> None:
    cluster = held(**UNANCHORED)
    first, second = history(cluster).served[0].revision, active(cluster)
    assert first is not None
    cluster.edit(revisionHistoryLimit=0)
    cluster.run(60)
    assert keys(cluster) == [second, first.key]
    assert first.server in servers(cluster), "it may come back"
    assert cluster.started("clean") == 0
    roll_back(cluster, second)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert (keys(cluster), cluster.started("clean")) == ([second], 1), "it serves for good"


def test_what_a_soak_undid_is_not_kept() -> None:
    cluster = held()
    first, second = history(cluster).served[0].revision, active(cluster)
    assert first is not None
    clients(cluster).rate, clients(cluster).failing = 10.0, 0.5
    cluster.settle()
    assert soaked(cluster) == ("False", "SoakFailed")
    assert (active(cluster), keys(cluster)) == (first.key, [first.key])
    assert second not in str(history(cluster))


def test_the_active_one_may_be_named_while_its_soak_goes_on() -> None:
    cluster = Cluster(one_candidate(**version(1)) | asking(), counters=swept)
    cluster.settle()
    ask(cluster)
    promoted(cluster, merged("source", **version(2)["source"]))
    cluster.run(3)
    second = active(cluster)
    roll_back(cluster, second)
    cluster.settle()
    assert (active(cluster), cluster.condition("Ready")["status"]) == (second, "True")
