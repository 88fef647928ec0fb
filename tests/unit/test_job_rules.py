"""Which rule decides what a Job's facts mean: the table, and that their order is what decides between two."""

from dataclasses import replace
from typing import Any

import pytest

from tests.states.pods import a_job, a_pod
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.results import SnapshotResult
from triton_operator.observed.job_facts import JobFacts, job_facts
from triton_operator.observed.job_rules import (
    BACKOFF_LIMIT,
    RULES,
    SEARCH_RESTARTS,
    TRIES_USED_UP,
    cut_answer,
    ended_pod,
    failed_job,
    finding,
    lingering_pod,
    missed_deadline,
    missing_pod,
    missing_result,
    repeated_eviction,
    running_pod,
    suspended_job,
    valid_result,
)
from triton_operator.observed.node_fault import LOST
from triton_operator.observed.pod import CHECK, SERVER, Container, End, PodView, Waiting, pod_view
from triton_operator.observed.record import Record

STAGE = "convert"
AT = "2026-11-21T00:00:09Z"
RECORD = Record(Outcome(STAGE, "k", result=SnapshotResult(())), "{}", AT)
DISRUPTED = {"DisruptionTarget": {"status": "True", "reason": "PreemptionByScheduler", "message": "preempted"}}


def a_container(name: str, code: int | None = None, restarts: int = 0, last: End | None = None) -> Container:
    end = None if code is None else End(code, "Error", "", AT)
    return Container(name, "", restarts, None, end, last, has_begun=True)


def seen(phase: str = "Running", *containers: Container, **fields: Any) -> PodView:
    """The pod of a conversion with such containers, as the operator sees it."""
    return replace(pod_view(a_pod(phase)), containers=containers, **fields)


def facts(*pods: PodView, said: str = "", reason: str = "", suspend: bool = False, **fields: Any) -> JobFacts:
    """What is known of a conversion's Job with such pods. ``said``: its condition that holds; empty: none does."""
    job = a_job(*([{"type": said, "status": "True", "reason": reason}] if said else []))
    job["spec"]["suspend"] = suspend
    return replace(job_facts(job, (), ()), pods=pods, **fields)


RUNS = seen("Running", a_container(STAGE))
FAILED = seen("Failed", a_container(STAGE, 1))
FINAL = seen("Failed", a_container(STAGE, 42))
LATE = seen("Failed", a_container(STAGE, 137), reason="DeadlineExceeded")
UNPULLED = replace(
    LATE, containers=(replace(a_container(STAGE), waiting=Waiting("ImagePullBackOff", "503"), has_begun=False),)
)
EVICTED = seen("Failed", a_container(STAGE, 137), reason="Evicted", message="it used too much")
KEPT = seen("Running", a_container(STAGE, 1), a_container("istio-proxy"))
KEPT_FOR_GOOD = seen("Running", a_container(STAGE, 42), a_container("istio-proxy"))
DONE = seen("Succeeded", a_container(STAGE, 0))
DRAINED = seen("Failed", a_container(STAGE, 137), conditions=DISRUPTED)

TABLE = (
    # A result counts, whatever else is seen.
    (valid_result, facts(record=RECORD), "", ""),
    (valid_result, facts(LATE, said="Failed", record=RECORD), "", ""),
    (valid_result, facts(EVICTED, EVICTED, EVICTED, record=RECORD, suspend=True), "", ""),
    (cut_answer, facts(DONE, said="Complete", cut_pod=DONE), "ResultMissing", ""),
    (cut_answer, facts(LATE, cut_pod=LATE), "ResultMissing", ""),
    (missing_result, facts(DONE, said="Complete"), "ResultMissing", ""),
    (missing_result, facts(said="Complete"), "", ""),
    # The pod may still be seen running when its Job has ended.
    (running_pod, facts(RUNS, said="Complete"), "", ""),
    (running_pod, facts(RUNS, said="Failed"), "", ""),
    (missed_deadline, facts(LATE), "DeadlineExceeded", ""),
    (missed_deadline, facts(UNPULLED), "ImagePullFailed", ""),
    (missed_deadline, facts(LATE, RUNS), "DeadlineExceeded", ""),
    (missed_deadline, facts(LATE, EVICTED, EVICTED, EVICTED, suspend=True), "DeadlineExceeded", ""),
    (failed_job, facts(LATE, FINAL, said="Failed"), "Crashed", ""),
    (repeated_eviction, facts(EVICTED, EVICTED, EVICTED), "Evicted", ""),
    (repeated_eviction, facts(EVICTED, EVICTED, EVICTED, RUNS, suspend=True), "Evicted", ""),
    (ended_pod, facts(EVICTED, FAILED, EVICTED, EVICTED), "", "Evicted"),
    (suspended_job, facts(suspend=True), "", "Queued"),
    (suspended_job, facts(RUNS, suspend=True), "", "Queued"),
    (suspended_job, facts(KEPT, suspend=True), "", "Queued"),
    (suspended_job, facts(said="Failed", reason=TRIES_USED_UP, suspend=True), "", "Queued"),
    (failed_job, facts(said="Failed", reason="PodFailurePolicy", suspend=True), "Crashed", ""),
    (failed_job, facts(said="Failed"), "Crashed", ""),
    (failed_job, facts(FAILED, said="Failed"), "Crashed", ""),
    (failed_job, facts(EVICTED, EVICTED, said="Failed"), "Evicted", ""),
    (missing_pod, facts(), "", ""),
    (ended_pod, facts(FAILED), "", "Crashed"),
    (ended_pod, facts(FINAL), "", ""),
    (ended_pod, facts(EVICTED), "", "Evicted"),
    (ended_pod, facts(DRAINED), "", "Evicted"),
    (ended_pod, facts(EVICTED, EVICTED, FAILED), "", "Crashed"),
    (lingering_pod, facts(KEPT), "", "Crashed"),
    (lingering_pod, facts(KEPT_FOR_GOOD), "Crashed", ""),
    (
        lingering_pod,
        facts(replace(KEPT, containers=(a_container(STAGE, 0), a_container("istio-proxy")))),
        "",
        "ResultMissing",
    ),
    (running_pod, facts(RUNS), "", ""),
    (running_pod, facts(EVICTED, RUNS), "", "Running"),
    (running_pod, facts(replace(KEPT, conditions=DISRUPTED)), "", "Evicted"),
)


@pytest.mark.parametrize(("rule", "job", "failure", "pending"), TABLE)
def test_the_first_rule_that_applies_decides(rule: Any, job: JobFacts, failure: str, pending: str) -> None:
    first = next(each for each in RULES if each(job) is not None)
    found = finding(job)
    assert first.__name__ == rule.__name__
    assert [each.reason if each else "" for each in (found.failure, found.pending)] == [failure, pending]


SILENT = {"involvedObject": {"uid": RUNS.uid}, "reason": "NodeNotReady", "lastTimestamp": "2026-11-21T00:00:07Z"}
VAIN = SILENT | {"reason": "FailedAttachVolume", "message": "Multi-Attach error"}
UNMOUNTED = replace(LATE, containers=(replace(a_container(STAGE), has_begun=False),))
NEVER_STARTED = replace(LATE, containers=(replace(a_container(STAGE, 137), end=End(137, LOST[0], "", AT)),))
REBOOTED = replace(FAILED, containers=(replace(a_container(STAGE, 255), end=End(255, LOST[1], "", AT)),))
UNADMITTED = seen("Failed", reason="UnexpectedAdmissionError", message="no device plugin")
UNFIT = seen("Failed", reason="OutOfnvidia.com/gpu")
KILLED = replace(FAILED, containers=(replace(a_container(STAGE, 137), end=End(137, "OOMKilled", "", AT)),))


@pytest.mark.parametrize(
    ("job", "failure"),
    [
        (facts(UNADMITTED, said="Failed"), "NodeNotReady"),
        (facts(UNFIT, said="Failed"), "NodeNotReady"),
        (facts(REBOOTED, said="Failed"), "NodeNotReady"),
        (facts(FAILED, said="Failed", events=[SILENT]), "NodeNotReady"),
        (facts(DONE, said="Complete", events=[SILENT]), "NodeNotReady"),
        (facts(LATE, events=[SILENT]), "NodeNotReady"),
        (facts(UNMOUNTED, events=[VAIN]), "NodeNotReady"),
        (facts(NEVER_STARTED, events=[VAIN]), "NodeNotReady"),
        # What somebody has to change stays what it is, whatever the node did.
        (facts(KILLED, said="Failed", events=[SILENT]), "OutOfMemory"),
        (facts(FINAL, said="Failed", events=[SILENT]), "Crashed"),
        (facts(UNPULLED), "ImagePullFailed"),
        (facts(NEVER_STARTED), "DeadlineExceeded"),
        (facts(LATE, events=[VAIN]), "DeadlineExceeded"),
        # Only the last try counts, because it would have done on a sound node.
        (facts(REBOOTED, FAILED, said="Failed"), "Crashed"),
        (facts(FAILED, said="Failed", events=[SILENT | {"involvedObject": {"uid": "another"}}]), "Crashed"),
        (facts(DONE, cut_pod=DONE, events=[SILENT]), "ResultMissing"),
        (facts(said="Failed"), "Crashed"),
    ],
)
def test_a_failure_that_the_node_caused_is_told_as_the_nodes(job: JobFacts, failure: str) -> None:
    found = finding(job).failure
    assert found is not None
    assert found.reason == failure
    assert ("is tried again later. Last seen: " in found.message) == (failure == "NodeNotReady")


def test_each_rule_decides_somewhere() -> None:
    assert {rule for rule, *_ in TABLE} == set(RULES)


CRASH = End(139, "Error", "Signal (11) received.", AT)
REFUSED = End(1, "Error", "error: creating server: Internal - failed to load all models", AT)


@pytest.mark.parametrize(
    ("stage", "last", "restarts", "failure", "pending"),
    [
        (STAGE, CRASH, BACKOFF_LIMIT, "", "ServerCrashed"),
        (STAGE, CRASH, BACKOFF_LIMIT + 1, "ServerCrashed", "ServerCrashed"),
        (STAGE, REFUSED, 1, "ModelLoadFailed", "ModelLoadFailed"),
        ("search", CRASH, SEARCH_RESTARTS, "", ""),
        ("search", CRASH, SEARCH_RESTARTS + 1, "ServerCrashed", "ServerCrashed"),
        ("search", REFUSED, 1, "ModelLoadFailed", "ModelLoadFailed"),
    ],
)
def test_a_server_that_crashed_starts_again_as_often_as_that_may_help(
    stage: str, last: End, restarts: int, failure: str, pending: str
) -> None:
    sidecar = a_container(SERVER, restarts=restarts, last=last)
    pod = seen("Running", a_container(stage), initial=(a_container(CHECK, 0), sidecar), sidecars=frozenset({SERVER}))
    found = finding(facts(pod, stage=stage))
    assert [each.reason if each else "" for each in (found.failure, found.pending)] == [failure, pending]
