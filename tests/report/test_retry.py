import copy
from typing import Any

import pytest

from tests.report.subjects import expected, golden
from triton_operator import names
from triton_plugin import __main__
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling.retry import retry_effect, retry_refusal


def subject(case: str) -> Subject:
    return parse(*golden(case))


def undone() -> Subject:
    body, results = copy.deepcopy(golden("undone"))
    body["status"] = expected("undone")
    return parse(body, results)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("candidate-failed", "what failed runs again: digits-convert-8574aebcd0 (UserCodeFailed)"),
        (
            "no-candidate-meets-the-constraint",
            "the candidates will be measured again; the active revision, if there is one, serves meanwhile",
        ),
        (
            "constraint-broken-in-the-preview",
            "the target revision will be measured again; the active revision, if there is one, serves meanwhile",
        ),
    ],
)
def test_a_retry_says_what_it_does(case: str, words: str) -> None:
    assert retry_effect(subject(case)) == words


def test_a_source_that_is_followed_is_looked_at_also_if_nothing_failed() -> None:
    body, results = copy.deepcopy(golden("ready"))
    body["spec"]["source"] |= {"uri": "hf://acme/ocr", "interval": "1h"}
    assert retry_effect(parse(body, results)) == "the source is looked at now"
    body["spec"]["rollout"] = {"revision": "0123456789abcdef"}
    assert retry_effect(parse(body, results)) == ""


def test_a_retry_lifts_the_bar_of_a_soak() -> None:
    assert retry_effect(undone()) == "the revision that the soak undid is tried again"


def test_what_is_newer_and_failed_runs_again_although_the_object_is_ready() -> None:
    body, results = copy.deepcopy(golden("newer-files-fail"))
    body["status"] = expected("newer-files-fail")
    found = parse(body, results)
    assert retry_effect(found).count("UserCodeFailed") == 4
    body["status"]["candidates"] = []
    assert "waits for a change (AllCandidatesFailed)" in retry_refusal(parse(body, None))


def test_while_a_rollback_serves_nothing_is_tried_again() -> None:
    body, _ = copy.deepcopy(golden("rolled-back"))
    _, failed = golden("candidate-failed")
    found = parse(body | {"status": expected("rolled-back")}, failed)
    assert (bool(found.failures), retry_effect(found)) == (True, "")
    assert "TritonDeployment digits is rolled back, so a retry would do nothing. Nothing is wrong" in retry_refusal(
        found
    )
    assert "kubectl triton rollback digits --namespace vision --to-latest" in retry_refusal(found)


def test_a_revision_that_was_damaged_too_often_is_published_again() -> None:
    body, results = copy.deepcopy(golden("ready"))
    body["status"]["candidates"][0] |= {"state": "Failed", "reason": "RepositoryDamaged"}
    assert retry_effect(parse(body, results)) == f"{body['status']['candidates'][0]['name']}: published again"


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            "ready",
            "is ready and no Job failed, so a retry would do nothing. To measure again, change spec.performance.",
        ),
        ("converting-in-parallel", "is in progress and no Job failed, so a retry would do nothing: it goes on by"),
        (
            "approval-invalid",
            "waits for a change (ApprovalInvalid), and no Job failed, so a retry would do nothing. Take",
        ),
        (
            "awaiting-approval",
            "waits for a change (AwaitingApproval), and no Job failed, so a retry would do nothing. R",
        ),
    ],
)
def test_where_nothing_failed_a_retry_says_what_to_do_instead(case: str, words: str) -> None:
    assert retry_effect(subject(case)) == ""
    assert retry_refusal(subject(case)).startswith(f"TritonDeployment digits {words}")


def test_candidates_that_failed_a_gate_would_fail_it_again() -> None:
    body, results = copy.deepcopy(golden("no-candidate-meets-the-constraint"))
    results["data"] = {name: text for name, text in results["data"].items() if not name.startswith("failure.")}
    for each in body["status"]["conditions"]:
        if each["reason"] == "ConstraintsNotMet":
            each["reason"] = "AllCandidatesFailed"
    found = parse(body, results)
    assert retry_effect(found) == ""
    assert "(AllCandidatesFailed), and no Job failed" in retry_refusal(found)
    assert "kubectl triton explain" in retry_refusal(found)


class FakeCluster:
    """Holds one object; notes what is asked of it."""

    case = ""
    retried: tuple[str, ...] = ()

    def __init__(self, *_: str | None) -> None:
        """There is always a cluster."""

    def subject(self, name: str) -> Subject:
        return subject(self.case)

    def retry(self, name: str, moment: str) -> None:
        type(self).retried = (name,)


@pytest.mark.parametrize(("case", "status"), [("candidate-failed", 0), ("ready", 1)])
def test_only_what_failed_is_asked_for(
    case: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FakeCluster, "case", case)
    monkeypatch.setattr(FakeCluster, "retried", ())
    monkeypatch.setattr("triton_plugin.commands.arguments.Cluster", FakeCluster)
    assert __main__.main(["retry", "digits"]) == status
    assert FakeCluster.retried == (("digits",) if status == 0 else ())
    out, err = capsys.readouterr()
    words: Any = out if status == 0 else err
    assert ("was asked for another try: what failed runs again" if status == 0 else "a retry would do nothing") in words
    assert names.RETRY_ANNOTATION not in words
