"""The revisions that served, and which one a rollback takes."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from tests.report.subjects import expected, golden
from triton_operator.observed.history import History, State
from triton_operator.observed.revision import Revision
from triton_plugin import __main__
from triton_plugin.errors import SubjectError
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling.history import figures_before, latest_effect, notes, rollback_revision, table

NEWEST, BEFORE, OLDEST = "0" * 16, "1" * 16, "2" * 16
DAYS = {NEWEST: 23, BEFORE: 22, OLDEST: 21}


def revision(
    key: str,
    candidate: str = "onnx-fp32",
    server: str = "registry.example:5000/server:1",
    day: int = 0,
    accuracy: object = (),
) -> Revision:
    images = {"check": "example/converter:1", "tritonserver": server}
    containers = [{"name": name, "image": image} for name, image in images.items()]
    told = {
        "accuracy": accuracy,
        "performance": {"measuredAt": f"2026-11-{day or DAYS[key]}T00:00:00Z"},
        "source": {"digest": f"sha256:{key * 4}", "version": "nightly" if key == NEWEST else ""},
    }
    return Revision.of(key, candidate, "digits", f"digits-{key}", {"spec": {"containers": containers}}, told)


def subject(*revisions: Revision, named: str = "") -> Subject:
    """An object whose first revision is active."""
    body, results = copy.deepcopy(golden("ready"))
    body["status"] = expected("ready")
    body["status"]["serving"]["revision"] = NEWEST
    body["status"]["performance"]["measuredAt"] = f"2026-11-{DAYS[NEWEST]}T00:00:00Z"
    body["spec"] |= {"rollout": {"revision": named}} if named else {}
    history = History(tuple(State((str(number),), revision=each) for number, each in enumerate(revisions)))
    results["data"] = {"history": history.to_json()}
    return parse(body, results)


def test_a_version_that_was_followed_has_its_own_name() -> None:
    known = revision(NEWEST)
    serving = {"version": "fraud/7@0", "label": "version 7 (champion)", "foundAt": "2026-11-23T00:00:00Z"}
    told = {**known.status, "source": known.status["source"] | {"serving": serving}}
    followed = Revision.of(NEWEST, "onnx-fp32", "digits", known.server, known.template or {}, told)
    sources = [row[-3] for row in table(subject(followed, revision(BEFORE))).rows]
    assert sources == ["version 7 (champion)", "sha256:11111111"]


def test_the_anchor_is_marked_and_what_that_means_is_told() -> None:
    found = subject(revision(NEWEST), revision(BEFORE))
    state = State(("1",), revision=revision(BEFORE))
    found = replace(found, history=replace(found.history, anchor=state))
    assert [row[-1] for row in table(found).rows] == ["active", "anchor"]
    (note,) = notes(found)
    assert note.startswith("anchor: new models are held against it, besides the last one; ")


def test_the_history_names_key_candidate_time_source_image_and_state() -> None:
    pinned = f"nvcr.io/nvidia/tritonserver@sha256:{'ab' * 32}"
    found = table(subject(revision(NEWEST), revision(BEFORE, "onnx-fp16", pinned), named=BEFORE))
    assert [tuple(row) for row in found.rows] == [
        (NEWEST, "onnx-fp32", "2026-11-23 00:00", "nightly", "server:1", "active"),
        (BEFORE, "onnx-fp16", "2026-11-22 00:00", "sha256:11111111", "sha256:abababab", "held"),
    ]
    assert all(found.headings)


@pytest.mark.parametrize("width", [100, 120])
def test_the_history_needs_one_line_a_revision(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    pinned = f"nvcr.io/nvidia/tritonserver@sha256:{'ab' * 32}"
    Console(width=width).print(table(subject(revision(NEWEST, server=pinned), revision(BEFORE), named=NEWEST)))
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()][-2:]
    assert [row[0] for row in rows] == [NEWEST, BEFORE]
    assert rows[0][-3:] == ["sha256:abababab", "active,", "held"]


def metric(name: str, served: str, threshold: str = "") -> dict[str, Any]:
    return {"metric": name, "framework": "0.98", "served": served, "samples": 9, "threshold": threshold, "passed": True}


def test_the_history_shows_first_the_metrics_that_have_a_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    judged = metric("top1", "0.97", "at least 0.9")
    newest = revision(NEWEST, accuracy=[metric("seen", "0.1"), judged])
    before = revision(BEFORE, accuracy=[metric("f1", "0.5", "at least 0.1")])
    found = table(subject(newest, before, revision(OLDEST)))
    assert tuple(found.headings[3:6]) == ("top1", "f1", "seen")
    assert [tuple(row[3:6]) for row in found.rows] == [("0.97", "", "0.1"), ("", "0.5", ""), ("", "", "")]
    Console(width=100).print(found)
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()][-3:]
    assert [row[0] for row in rows] == [NEWEST, BEFORE, OLDEST]


def test_the_history_names_the_metrics_for_which_it_has_no_column() -> None:
    judged, others = metric("top1", "0.97", "at least 0.9"), [metric(each, "0.1") for each in "abcd"]
    found = subject(revision(NEWEST, accuracy=[*others, judged]))
    assert tuple(table(found).headings[3:-3]) == ("top1", "a", "b", "c")
    assert notes(found) == ["without a column, as they have no threshold: d"]
    many = [metric(f"m{number}", "0.1", "at least 0") for number in range(6)]
    found = subject(revision(NEWEST, accuracy=[*many, *others]))
    assert tuple(table(found).headings[3:-3]) == ("m0", "m1", "m2", "m3", "m4", "m5")
    assert notes(found) == ["without a column, as they have no threshold: a, b, c, d"]


def judging(found: Subject, accuracy: list[dict[str, Any]], *bounded: str) -> Subject:
    """An object whose active revision has these metrics, and whose spec has a threshold for some."""
    body, _ = golden("ready")
    body["status"] = {**expected("ready"), "accuracy": accuracy}
    body["spec"]["accuracy"] = {"thresholds": [{"metric": each, "min": 0} for each in bounded]}
    seen = parse(body, None)
    status = found.status.model_copy(update={"accuracy": seen.status.accuracy})
    return replace(found, status=status, spec=found.spec.model_copy(update={"accuracy": seen.spec.accuracy}))


FELL = f"top1 0.258741; revision {BEFORE}, which served before, had 0.958042 when it was measured."
BACK = f"If the earlier one is better, serve it again: kubectl triton rollback digits {BEFORE} --namespace vision"


def no_threshold(name: str) -> str:
    return f"No threshold bounds {name}, so any figure is served: set spec.accuracy.thresholds."


def test_figures_that_differ_from_those_before_are_said_and_not_judged() -> None:
    served = [metric("top1", "0.258741"), metric("f1", "0.5"), metric("new", "1")]
    before = revision(BEFORE, accuracy=[metric("top1", "0.958042"), metric("f1", "0.5"), metric("gone", "1")])
    found = subject(revision(NEWEST), before, revision(OLDEST, accuracy=[metric("f1", "0.4")]))
    assert figures_before(judging(found, served)) == [FELL, BACK, no_threshold("top1, f1, new")]
    assert figures_before(judging(found, served, "f1")) == [FELL, BACK, no_threshold("top1")]
    assert figures_before(judging(found, served, "top1")) == [FELL, BACK]
    assert figures_before(judging(found, [metric("top1", "0.958042")], "top1")) == []
    not_recorded = judging(subject(before), served, "top1")
    assert figures_before(not_recorded) == [FELL, BACK], "the results may be written after the status"


def test_no_rollback_is_named_where_it_would_not_help() -> None:
    served, before = [metric("top1", "0.258741")], revision(BEFORE, accuracy=[metric("top1", "0.958042")])
    held = subject(revision(NEWEST), before, named=NEWEST)
    assert figures_before(judging(held, served, "top1")) == [FELL]
    damaged = replace(subject(revision(NEWEST), before), damaged=frozenset({BEFORE}))
    assert figures_before(judging(damaged, served, "top1")) == [FELL]


def test_without_a_revision_before_only_a_missing_threshold_is_said() -> None:
    assert figures_before(judging(subject(revision(NEWEST)), [metric("top1", "0.9")])) == [no_threshold("top1")]
    assert figures_before(judging(subject(revision(NEWEST)), [])) == []


def test_the_history_of_an_object_shows_what_its_status_told() -> None:
    found = table(parse(*golden("ready")))
    assert [row[found.headings.index("accuracy")] for row in found.rows] == ["0.98"]


def test_what_somebody_wrote_into_the_history_does_not_reach_the_terminal() -> None:
    evil = "\x1b[2J"
    judged = [{"metric": evil, "served": evil, "threshold": evil}]
    found = table(subject(revision(NEWEST, evil, accuracy=judged)))
    assert r"\u001b" not in json.dumps([found.headings, *map(list, found.rows)])
    before = revision(BEFORE, accuracy=[metric("top1", f"{evil}\nto do: nothing")])
    (line,) = figures_before(judging(subject(revision(NEWEST), before), [metric("top1", "0.9")], "top1"))[:1]
    assert r"\u001b" not in json.dumps(line)
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    ("containers", "told"),
    [
        ([3], {}),
        (3, {"performance": [], "source": 3}),
        ({"name": {}}, {"performance": {"measuredAt": {}}}),
        ([], {"accuracy": 3}),
        ([], {"accuracy": [3, {"threshold": "x", "metric": {}}]}),
    ],
)
def test_a_record_of_another_shape_is_listed_and_not_chosen(containers: Any, told: dict[str, Any]) -> None:
    odd = Revision.of(BEFORE, "onnx-fp32", "digits", "digits-odd", {"spec": {"containers": containers}}, told)
    found = subject(revision(NEWEST), odd)
    assert [row[0] for row in table(found).rows] == [NEWEST, BEFORE]
    assert rollback_revision(found, BEFORE) == BEFORE
    with pytest.raises(SubjectError):
        rollback_revision(found, None)


def test_a_history_that_an_older_version_did_not_write_is_not_said_to_be_of_nothing() -> None:
    with pytest.raises(SubjectError, match="ConfigMap digits-results is missing"):
        table(subject())


def test_without_a_key_it_is_the_one_before_the_active_one() -> None:
    assert rollback_revision(subject(revision(NEWEST), revision(BEFORE), revision(OLDEST)), None) == BEFORE


@pytest.mark.parametrize(
    ("key", "words"),
    [(None, f"older than the active one, {NEWEST}, is recorded"), (OLDEST, f"these: {NEWEST}")],
)
def test_what_is_not_recorded_is_refused(key: str | None, words: str) -> None:
    with pytest.raises(SubjectError, match=words):
        rollback_revision(subject(revision(NEWEST)), key)


def test_of_two_servers_of_the_active_key_the_other_one_is_chosen() -> None:
    newest, before = revision(NEWEST), replace(revision(NEWEST, day=22), server="digits-0a1b2c3d4e")
    found = subject(newest, before, revision(BEFORE))
    assert rollback_revision(found, None) == f"{NEWEST}.0a1b2c3d4e"
    with pytest.raises(SubjectError, match=f"name the server too: {NEWEST}.{NEWEST} .active., {NEWEST}.0a1b2c3d4e$"):
        rollback_revision(found, NEWEST)
    names = [(row[0], row[-1]) for row in table(found).rows]
    assert names == [(f"{NEWEST}.{NEWEST}", "active"), (f"{NEWEST}.0a1b2c3d4e", ""), (BEFORE, "")]


def test_the_active_server_is_the_one_that_is_recorded() -> None:
    served = replace(revision(NEWEST), server="digits-0a1b2c3d4e")
    found = replace(subject(revision(NEWEST), served), server=served.server)
    assert [row[-1] for row in table(found).rows] == ["", "active"]


def test_a_damaged_revision_is_marked_and_not_chosen_by_itself() -> None:
    found = replace(subject(revision(NEWEST), revision(BEFORE), revision("2" * 16)), damaged=frozenset({BEFORE}))
    assert rollback_revision(found, None) == "2" * 16
    assert rollback_revision(found, BEFORE) == BEFORE
    assert [row[-1] for row in table(found).rows] == ["active", "damaged", ""]


class FakeCluster:
    """Holds one object; notes what is asked of it."""

    patched: tuple[Any, ...] = ()

    def __init__(self, *_: str | None) -> None:
        """There is always a cluster."""

    named = NEWEST

    def subject(self, name: str) -> Subject:
        return replace(subject(revision(NEWEST), revision(BEFORE), named=self.named), version="7")

    def patch_spec(self, name: str, version: str, spec: dict[str, Any]) -> None:
        type(self).patched = (name, version, spec)


@pytest.mark.parametrize(
    ("arguments", "wanted"), [([], BEFORE), ([NEWEST], NEWEST), (["--to-latest"], None), (["2" * 16], "refused")]
)
def test_a_rollback_sets_the_field_and_says_what_git_must_have(
    arguments: list[str], wanted: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FakeCluster, "patched", ())
    monkeypatch.setattr("triton_plugin.commands.arguments.Cluster", FakeCluster)
    status = __main__.main(["rollback", "digits", *arguments])
    out, err = capsys.readouterr()
    if wanted == "refused":
        assert (status, FakeCluster.patched) == (1, ())
        assert f"name one of these: {NEWEST}, {BEFORE}" in err
        return
    assert (status, FakeCluster.patched) == (0, ("digits", "7", {"rollout": {"revision": wanted}}))
    assert "make the same change in Git" in out
    assert ("Revisions that served" in out) == (wanted is not None), "the list is shown with a choice"


def test_the_end_of_no_rollback_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FakeCluster, "patched", ())
    monkeypatch.setattr(FakeCluster, "named", "")
    monkeypatch.setattr("triton_plugin.commands.arguments.Cluster", FakeCluster)
    assert __main__.main(["rollback", "digits", "--to-latest"]) == 0
    words = "TritonDeployment digits: spec.rollout.revision is not set; nothing is changed\n"
    assert (FakeCluster.patched, capsys.readouterr().out) == ((), words)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            {"sha256": BEFORE * 4},
            f"revision {BEFORE} (source sha256:11111111). It serves again as soon as its",
        ),
        ({"sha256": OLDEST * 4}, f"revision {OLDEST} (source sha256:22222222). It serves again"),
        ({}, f"revision {BEFORE} (source sha256:11111111). It serves again"),
        ({"sha256": NEWEST * 4}, "No other revision of the source that the spec names (sha256:00000000) is recorded"),
        ({"version": "mended"}, "the spec names (mended) is recorded, so the active one serves until"),
    ],
)
def test_the_end_of_a_rollback_says_what_serves_then(source: dict[str, str], words: str) -> None:
    """What the rollback left needs no verdict any more, so it serves at once, wrong as it may be."""
    found = subject(revision(NEWEST), revision(BEFORE), revision(OLDEST), named=NEWEST)
    spec = found.spec.model_copy(update={"source": found.spec.source.model_copy(update=source)})
    assert words in latest_effect(replace(found, spec=spec))


def test_the_end_of_a_rollback_that_has_not_moved_the_service_yet_serves_what_it_left() -> None:
    """The active revision is the one that is left, so it is no news that nothing else has its source."""
    found = subject(revision(NEWEST), revision(BEFORE), named=BEFORE)
    spec = found.spec.model_copy(update={"source": found.spec.source.model_copy(update={"sha256": NEWEST * 4})})
    assert f"unless it was edited since: revision {NEWEST} (source nightly)" in latest_effect(replace(found, spec=spec))


def test_a_line_end_in_the_history_makes_no_row() -> None:
    found = table(subject(revision(NEWEST, f"onnx\r\n{BEFORE}  onnx\u2028active")))
    assert [len(cell.splitlines()) for cell in found.rows[0]] == [1] * 6
    assert len(found.rows) == 1


@pytest.mark.parametrize("template", [{"a": 1}, {"spec": 1}, {"spec": {"containers": ["x"]}}], ids=str)
@pytest.mark.parametrize("told", [{}, {"performance": "x"}, {"performance": {"measuredAt": [1]}}], ids=str)
def test_a_forged_history_is_listed(template: dict[str, Any], told: dict[str, Any]) -> None:
    forged = Revision.of(NEWEST, "onnx", "digits", "digits-1", template, told)
    assert [tuple(row) for row in table(subject(forged)).rows] == [(NEWEST, "onnx", "", "", "", "active")]
