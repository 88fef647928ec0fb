import copy
from dataclasses import replace
from typing import Any

import pytest

from tests.report.subjects import expected, golden
from triton_plugin.__main__ import main
from triton_plugin.errors import SubjectError
from triton_plugin.exits import Exit
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling.approval import accepted, approved_revision


def subject(case: str = "awaiting-approval") -> Subject:
    return parse(*golden(case))


def passed(found: Subject) -> list[Any]:
    return [each for each in found.status.candidates if each.state == "Passed"]


def test_the_one_that_would_be_selected_is_approved_unless_another_is_named() -> None:
    found = subject()
    best = min(passed(found), key=lambda each: each.rank)
    other = next(each for each in passed(found) if each is not best)
    assert approved_revision(found, None) is best
    assert approved_revision(found, other.name) is other
    assert approved_revision(found, other.revision) is other
    condition = found.condition("Selected")
    assert condition is not None
    assert f"approvedRevision: {best.revision} " in condition.message


def test_a_staged_version_is_approved_though_the_spec_asks_for_no_approval() -> None:
    body, results = copy.deepcopy(golden("newer-version-staged"))
    found = parse(body | {"status": expected("newer-version-staged")}, results)
    assert found.spec.selection.approval == "Automatic"
    (waiting,) = found.status.candidates
    assert approved_revision(found, None) is waiting


def test_a_candidate_that_has_the_key_of_another_for_its_name_is_not_approved_in_its_place() -> None:
    body, results = copy.deepcopy(golden("awaiting-approval"))
    first, second = (each for each in body["status"]["candidates"] if each["state"] == "Passed")
    first["name"] = second["revision"]
    found = parse(body, results)
    with pytest.raises(SubjectError, match=f"whose revision is {first['revision']}, in spec"):
        approved_revision(found, second["revision"])
    assert approved_revision(found, first["revision"]).revision == first["revision"]


def test_what_failed_or_is_unknown_is_not_approved() -> None:
    with pytest.raises(SubjectError, match="has no candidate nix that passed; name one of these: "):
        approved_revision(subject(), "nix")


def test_an_object_without_approval_or_without_something_to_approve_says_so() -> None:
    with pytest.raises(SubjectError, match="TritonDeployment digits needs no approval: spec"):
        approved_revision(subject("ready"), None)
    body, results = copy.deepcopy(golden("ready"))
    body["spec"]["selection"] = {**body["spec"].get("selection", {}), "approval": "Manual"}
    with pytest.raises(SubjectError, match="does not wait for an approval: it is at "):
        approved_revision(parse(body, results), None)


def test_a_candidate_that_is_worse_than_before_is_approved_and_what_that_accepts_is_told() -> None:
    found = subject("newer-files-are-worse")
    assert found.spec.selection.approval == "Automatic"
    worse = [each for each in found.status.candidates if each.reason == "WorseThanBefore"]
    assert len(worse) == 4
    assert approved_revision(found, worse[1].name) is worse[1]
    assert approved_revision(found, worse[1].revision) is worse[1]
    with pytest.raises(SubjectError, match="does not wait for an approval: it is at WorseThanBefore"):
        approved_revision(found, None)
    assert accepted(worse[1]) == " That accepts accuracy 0.98, before 0.99; later ones are held against it."
    assert accepted(passed(subject())[0]) == ""


def test_the_only_candidate_that_is_worse_needs_no_name() -> None:
    body, results = copy.deepcopy(golden("newer-files-are-worse"))
    body["status"]["candidates"] = body["status"]["candidates"][:1]
    found = parse(body, results)
    assert approved_revision(found, None) is found.status.candidates[0]


class FakeCluster:
    """Holds one object; notes what is asked of it."""

    patched: tuple[Any, ...] = ()

    def __init__(self, *_: str | None) -> None:
        """There is always a cluster."""

    def subject(self, name: str) -> Subject:
        return replace(subject(), version="7")

    def patch_spec(self, name: str, version: str, spec: dict[str, Any]) -> None:
        type(self).patched = (name, version, spec)


def test_the_command_sets_the_field_and_says_what_git_must_have(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("triton_plugin.commands.arguments.Cluster", FakeCluster)
    monkeypatch.setattr(FakeCluster, "patched", ())
    assert main(["approve", "digits"]) == Exit.OK
    key = approved_revision(subject(), None).revision
    assert FakeCluster.patched == ("digits", "7", {"selection": {"approvedRevision": key}})
    assert f"is approved: spec.selection.approvedRevision is set to {key}. If a GitOps tool" in capsys.readouterr().out
