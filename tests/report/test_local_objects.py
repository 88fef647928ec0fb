"""Nothing that is printed about an object that was checked on one machine leads to a cluster that does not know it."""

import copy
import re
from typing import Any

import pytest

from tests.report.subjects import expected, golden
from triton_operator.api.source import FollowedSource
from triton_plugin.__main__ import main
from triton_plugin.exits import Exit
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling.advice import advice, known
from triton_plugin.telling.explain import explain
from triton_plugin.telling.request import first_request

OF_A_CLUSTER = re.compile(
    r"kubectl(?! triton (?:check|validate|explain objects)\b)|Helm|wait an hour|the operator tries"
)
NEVER_HERE = {
    *("AddOnMissing", "ClaimTerminating", "Contested", "NodeNotReady"),
    # Everything is allowed, and each run takes the images that there are.
    *("NotAllowed", "NewImages"),
    # Nothing has served before.
    "WorseThanBefore",
}
"""Reasons that only a cluster has: what they are about is no part of this machine."""
LOCAL = {
    "type": "Local",
    "status": "True",
    "reason": "Local",
    "message": "by processes",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-11-30T00:00:00Z",
}


def local(case: str) -> Subject:
    """A case of tests/golden as if it had been checked on one machine."""
    body, results = copy.deepcopy(golden(case))
    status: dict[str, Any] = expected(case)
    body["status"] = {**status, "conditions": [*status["conditions"], LOCAL]}
    return parse(body, results)


def test_the_advice_for_each_reason_holds_without_a_cluster() -> None:
    said = {reason: advice(reason, "digits", "--namespace default", is_local=True) for reason in known()}
    assert {reason for reason, text in said.items() if OF_A_CLUSTER.search(text)} == NEVER_HERE
    assert "run the same kubectl triton check again" in said["ServerCrashed"]
    assert "then check again; if the source is downloaded, set a new spec.source.version" in said["DataloaderInvalid"]


def test_a_model_whose_digest_the_command_writes_is_only_checked_again() -> None:
    said = advice(
        "DataloaderInvalid", "digits", source=FollowedSource(uri="pvc://models/digits", sha256="0" * 64), is_local=True
    )
    assert said.startswith(
        "Correct the dataloader, then check again; if the object's file sets spec.source.sha256, set the new digest"
    )


@pytest.mark.parametrize("case", ["undone", "no-candidate-meets-the-constraint", "ready"])
def test_what_explains_an_object_names_no_command_of_a_cluster(case: str) -> None:
    text = explain(local(case))
    assert OF_A_CLUSTER.findall(text) == []
    assert (
        "nothing goes on by itself; do what is said below, and run the same kubectl triton check again" in text
    ) == (case != "ready")


@pytest.mark.parametrize(("case", "is_in_progress"), [("profiling", True), ("undone", False), ("ready", False)])
def test_a_check_that_is_in_progress_may_have_ended(case: str, is_in_progress: bool) -> None:
    assert ("once that has ended, run the same kubectl triton check again" in explain(local(case))) == is_in_progress


def test_a_first_request_goes_to_the_ports_of_the_command_that_serves() -> None:
    text = first_request(local("ready"))
    assert "port-forward" not in text
    assert "http://localhost:8000/v2/models/digits" in text


def test_the_log_of_a_check_is_a_file_of_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    place = "pods/POD/CONTAINER.log"
    assert place in advice("UserCodeFailed", "digits", is_local=True)
    assert main(["logs", "digits-check/objects.json"]) == Exit.FAILED
    assert f"digits-check/{place}" in capsys.readouterr().err
