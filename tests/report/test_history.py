"""The revisions that served, and which one a rollback takes."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.report.subjects import expected, golden
from triton_operator import names
from triton_operator.observed.history import History, State
from triton_operator.observed.revision import Revision
from triton_plugin import __main__
from triton_plugin.history import chosen, table
from triton_plugin.subject import Subject, SubjectError, parse

NEWEST, BEFORE = "0" * 16, "1" * 16


def revision(key: str, candidate: str = "onnx-fp32") -> Revision:
    images = {"check": "example/converter:1", "tritonserver": "example/server:1"}
    containers = [{"name": name, "image": image} for name, image in images.items()]
    told = {"performance": {"measuredAt": "2026-11-21T00:00:00Z"}}
    return Revision.of(key, candidate, "digits", f"digits-{key}", {"spec": {"containers": containers}}, told)


def subject(*revisions: Revision, named: str = "") -> Subject:
    """An object whose first revision is active."""
    body, results = copy.deepcopy(golden("ready"))
    body["status"] = expected("ready")
    body["status"]["serving"]["revision"] = NEWEST
    body["spec"] |= {"rollout": {"revision": named}} if named else {}
    history = History(tuple(State((str(number),), revision=each) for number, each in enumerate(revisions)))
    results["data"]["history"] = history.to_json()
    return parse(body, results)


def test_the_history_names_key_candidate_time_and_image() -> None:
    found = table(subject(revision(NEWEST), revision(BEFORE, "onnx-fp16"), named=BEFORE))
    assert [tuple(row) for row in found.rows] == [
        (NEWEST, "onnx-fp32", "2026-11-21T00:00:00Z", "example/server:1", "active"),
        (BEFORE, "onnx-fp16", "2026-11-21T00:00:00Z", "example/server:1", "named by spec.rollout.revision"),
    ]


def test_what_somebody_wrote_into_the_history_does_not_reach_the_terminal() -> None:
    found = table(subject(revision(NEWEST, "\x1b[2J")))
    assert "\x1b" not in json.dumps([list(row) for row in found.rows])


def test_without_a_key_it_is_the_one_before_the_active_one() -> None:
    assert chosen(subject(revision(NEWEST), revision(BEFORE), revision("2" * 16)), None) == BEFORE


@pytest.mark.parametrize(
    ("key", "words"), [(None, "no revision of TritonDeployment digits served before"), ("2" * 16, f"these: {NEWEST}")]
)
def test_what_is_not_recorded_is_refused(key: str | None, words: str) -> None:
    with pytest.raises(SubjectError, match=words):
        chosen(subject(revision(NEWEST)), key)


def test_of_two_servers_of_the_active_key_the_other_one_is_chosen() -> None:
    newest, before = revision(NEWEST), replace(revision(NEWEST), server="digits-0a1b2c3d4e")
    found = subject(newest, before, revision(BEFORE))
    assert chosen(found, None) == f"{NEWEST}.0a1b2c3d4e"
    assert chosen(found, NEWEST) == NEWEST, "the key alone stands for the active one"
    names = [(row[0], row[-1]) for row in table(found).rows]
    assert names == [(f"{NEWEST}.{NEWEST}", "active"), (f"{NEWEST}.0a1b2c3d4e", ""), (BEFORE, "")]


def test_the_active_server_is_the_one_that_the_status_selects() -> None:
    served = replace(revision(NEWEST), server="digits-0a1b2c3d4e")
    found = subject(revision(NEWEST), served)
    assert found.status.serving is not None
    serving = found.status.serving.model_copy(update={"selector": names.selector("digits", served.server)})
    found = replace(found, status=found.status.model_copy(update={"serving": serving}))
    assert chosen(found, None) == f"{NEWEST}.{NEWEST}"


def test_a_damaged_revision_is_marked_and_not_chosen_by_itself() -> None:
    found = replace(subject(revision(NEWEST), revision(BEFORE), revision("2" * 16)), damaged=frozenset({BEFORE}))
    assert chosen(found, None) == "2" * 16
    assert chosen(found, BEFORE) == BEFORE
    assert [row[-1] for row in table(found).rows] == ["active", "damaged", ""]


class FakeCluster:
    """Holds one object; notes what is asked of it."""

    patched: tuple[Any, ...] = ()

    def __init__(self, context: str | None, namespace: str | None) -> None:
        """There is always a cluster."""

    def subject(self, name: str) -> Subject:
        return subject(revision(NEWEST), revision(BEFORE))

    def patch(self, name: str, change: dict[str, Any]) -> None:
        type(self).patched = (name, change)


@pytest.mark.parametrize(
    ("arguments", "wanted"), [([], BEFORE), ([NEWEST], NEWEST), (["--to-latest"], None), (["2" * 16], "refused")]
)
def test_a_rollback_sets_the_field_and_says_what_git_must_have(
    arguments: list[str], wanted: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FakeCluster, "patched", ())
    monkeypatch.setattr(__main__, "Cluster", FakeCluster)
    status = __main__.main(["rollback", "digits", *arguments])
    out, err = capsys.readouterr()
    if wanted == "refused":
        assert (status, FakeCluster.patched) == (1, ())
        assert f"name one of these: {NEWEST}, {BEFORE}" in err
        return
    assert (status, FakeCluster.patched) == (0, ("digits", {"spec": {"rollout": {"revision": wanted}}}))
    assert "make the same change in Git" in out
    assert (BEFORE in out) == (wanted is not None), "the list is shown with a choice"
