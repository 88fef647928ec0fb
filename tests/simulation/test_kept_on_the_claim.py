"""What serves stays on the claim, though its results were lost: the real clean program runs on what is recorded."""

from pathlib import Path

import pytest

from tests.converters.test_clean import CONVERTED, REQUEST, converted, grow_old, mark
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_spec
from tests.simulation.test_failures import named_claim
from tests.simulation.test_rollback import GONE, RESULTS, active, history, keys, one_candidate, roll_back, version
from tests.simulation.test_rollout import answering
from triton_converters.contract import layout
from triton_converters.contract.records import ACTIVE
from triton_converters.stages.clean import run as clean
from triton_operator.observed.history import History


def served(count: int) -> Cluster:
    """Sources that served, one after the other."""
    cluster = Cluster(one_candidate(**version(1)))
    cluster.settle()
    for number in range(2, count + 1):
        cluster.edit(**version(number))
        cluster.settle()
    return cluster


def is_kept(cluster: Cluster, key: str, home: Path, without: str = "") -> bool:
    """Whether a neighbour's clean Job leaves the revision's directory. ``without``: an entry that it does not know."""
    root, marks = home / "claim", home / "marks"
    converted(root, key, "c" * 16)
    grow_old(root)
    mark(marks, "neighbour", "convert", "a" * 16, CONVERTED)
    (marks / "digits").mkdir()
    for name, text in cluster.objects[RESULTS]["data"].items():
        if name != without:
            (marks / "digits" / name).write_text(text)
    clean(REQUEST, root, marks)
    return layout.revision_directory(key, root).exists()


def test_a_revision_that_is_held_stays_and_is_ready(tmp_path: Path) -> None:
    cluster = served(3)
    before = keys(cluster)[1]
    roll_back(cluster, before)
    cluster.settle()
    del cluster.objects[RESULTS]
    story = len(cluster.story)
    for _ in range(5):
        cluster.act()
        assert cluster.condition("Ready")["status"] == "True"
        cluster.step()
    cluster.settle()
    assert (active(cluster), answering(cluster), cluster.story[story:]) == (before, 1, [])
    assert keys(cluster) == [before], "the history is completed with what serves"
    assert is_kept(cluster, before, tmp_path)


def test_what_is_held_is_known_after_another_edit_too() -> None:
    cluster = served(2)
    before = keys(cluster)[1]
    roll_back(cluster, before)
    cluster.settle()
    del cluster.objects[RESULTS]
    cluster.edit(revisionHistoryLimit=4)
    cluster.settle()
    assert (active(cluster), cluster.condition("Ready")["status"]) == (before, "True")


def lost_with_its_source() -> Cluster:
    """What serves has no results any more, and nothing from which they could be made."""
    cluster = served(2)
    cluster.scripts = GONE
    cluster.edit(source={"uri": "pvc://models/v2", "version": "2"})
    cluster.run(20)
    for name in [name for kind, name in cluster.objects if kind == "Job"]:
        cluster.delete("Job", name)
    del cluster.objects[RESULTS]
    cluster.run(20)
    return cluster


def test_what_serves_stays_though_its_source_is_gone_too(tmp_path: Path) -> None:
    cluster = lost_with_its_source()
    assert f"convert.{active(cluster)}" not in cluster.objects[RESULTS]["data"]
    assert is_kept(cluster, active(cluster), tmp_path)


def test_a_clean_job_of_an_older_image_leaves_it_too(tmp_path: Path) -> None:
    """Such a Job does not look at the entry of what is active; the history names the directory."""
    cluster = lost_with_its_source()
    assert ACTIVE in cluster.objects[RESULTS]["data"]
    assert is_kept(cluster, active(cluster), tmp_path, without=ACTIVE)


def test_the_same_revision_is_recorded_whole_once_its_source_is_back() -> None:
    cluster = lost_with_its_source()
    serves = active(cluster)
    cluster.scripts = Cluster(a_spec()).scripts
    cluster.edit(source={"uri": "pvc://models/v2"})
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    (state,) = history(cluster).served
    assert active(cluster) == serves
    assert state.profile in state.records, "what was lost was measured again"


@pytest.mark.parametrize("name", ["shared", "digits-repository"])
def test_what_lies_on_another_claim_is_not_kept_on_this_one(name: str) -> None:
    cluster = served(1)
    serving = cluster.serving()
    cluster.step()
    named_claim(cluster, name)
    cluster.edit(repository={"claimName": name})
    for _ in range(3):
        cluster.act()
    assert (cluster.serving(), history(cluster)) == (serving, History())


REFUSED = {"conversion": {"parallelism": 99}}


def test_an_object_that_is_refused_from_the_start_does_not_stop_others_cleaning() -> None:
    """Their clean Jobs mount its record, so there is one: empty, because nothing of it is on the claim."""
    cluster = Cluster(a_spec() | REFUSED)
    cluster.run(2)
    assert cluster.has("InvalidSpec", "Stalled")
    assert cluster.objects[RESULTS]["data"] == {}


def test_a_lost_record_of_what_serves_is_not_replaced_by_an_empty_one() -> None:
    """A clean Job of another object would take an empty one for the truth, and delete what serves."""
    cluster = served(1)
    del cluster.objects[RESULTS]
    cluster.edit(**REFUSED)
    cluster.run(2)
    assert cluster.has("InvalidSpec", "Stalled")
    assert RESULTS not in cluster.objects
    cluster.delete("Deployment", cluster.serving() or "")
    cluster.run(1)
    assert RESULTS not in cluster.objects
