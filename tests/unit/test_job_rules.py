"""Which rule decides what a Job's facts mean: the table, and that their order is what decides between two."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from triton_converters.contract.envelope import Outcome
from triton_converters.contract.results import SnapshotResult
from triton_operator import names
from triton_operator.observed.job_facts import JobFacts, job_facts
from triton_operator.observed.job_rules import (
    BACKOFF_LIMIT,
    RULES,
    SEARCH_RESTARTS,
    TRIES_USED_UP,
    answer_cut,
    answered,
    evicted_in_a_row,
    failed,
    finding,
    lingers,
    queued,
    ran_late,
    runs,
    succeeded_without_result,
    tries_again,
    without_pod,
)
from triton_operator.observed.pod import CHECK, SERVER, Container, End, PodView, Waiting, pod_view
from triton_operator.observed.record import Record

STAGE = "convert"
AT = "2026-11-21T00:00:09Z"
RECORD = Record(Outcome(STAGE, "k", result=SnapshotResult(())), "{}", AT)
DISRUPTED = {"DisruptionTarget": {"status": "True", "reason": "PreemptionByScheduler", "message": "preempted"}}


def a_container(name: str, code: int | None = None, restarts: int = 0, last: End | None = None) -> Container:
    end = None if code is None else End(code, "Error", "", AT)
    return Container(name, "", restarts, None, end, last, has_begun=True)


def a_pod(phase: str = "Running", *containers: Container, **fields: Any) -> PodView:
    pod = pod_view({"metadata": {"name": "p", "creationTimestamp": AT}})
    return replace(replace(pod, phase=phase, containers=containers, deadline_seconds=60), **fields)


def a_job(*pods: PodView, said: str = "", reason: str = "", suspend: bool = False, **fields: Any) -> JobFacts:
    labels = {names.STAGE_LABEL: STAGE, names.KEY_LABEL: "k"}
    conditions = [{"type": said, "status": "True", "reason": reason}] if said else []
    body: Mapping[str, Any] = {
        "kind": "Job",
        "metadata": {"name": "j", "uid": "u", "labels": labels},
        "spec": {"suspend": suspend},
        "status": {"conditions": conditions},
    }
    return replace(job_facts(body, (), ()), pods=pods, **fields)


RUNS = a_pod("Running", a_container(STAGE))
FAILED = a_pod("Failed", a_container(STAGE, 1))
FINAL = a_pod("Failed", a_container(STAGE, 42))
LATE = a_pod("Failed", a_container(STAGE, 137), reason="DeadlineExceeded")
UNPULLED = replace(
    LATE, containers=(replace(a_container(STAGE), waiting=Waiting("ImagePullBackOff", "503"), has_begun=False),)
)
EVICTED = a_pod("Failed", a_container(STAGE, 137), reason="Evicted", message="it used too much")
KEPT = a_pod("Running", a_container(STAGE, 1), a_container("istio-proxy"))
KEPT_FOR_GOOD = a_pod("Running", a_container(STAGE, 42), a_container("istio-proxy"))
DONE = a_pod("Succeeded", a_container(STAGE, 0))
DRAINED = a_pod("Failed", a_container(STAGE, 137), conditions=DISRUPTED)

TABLE = (
    # A result counts, whatever else is seen.
    (answered, a_job(record=RECORD), "", ""),
    (answered, a_job(LATE, said="Failed", record=RECORD), "", ""),
    (answered, a_job(EVICTED, EVICTED, EVICTED, record=RECORD, suspend=True), "", ""),
    (answer_cut, a_job(DONE, said="Complete", cut=DONE), "ResultMissing", ""),
    (answer_cut, a_job(LATE, cut=LATE), "ResultMissing", ""),
    (succeeded_without_result, a_job(DONE, said="Complete"), "ResultMissing", ""),
    (succeeded_without_result, a_job(said="Complete"), "", ""),
    # The pod may still be seen running when its Job has ended.
    (runs, a_job(RUNS, said="Complete"), "", ""),
    (runs, a_job(RUNS, said="Failed"), "", ""),
    (ran_late, a_job(LATE), "DeadlineExceeded", ""),
    (ran_late, a_job(UNPULLED), "ImagePullFailed", ""),
    (ran_late, a_job(LATE, RUNS), "DeadlineExceeded", ""),
    (ran_late, a_job(LATE, EVICTED, EVICTED, EVICTED, suspend=True), "DeadlineExceeded", ""),
    (failed, a_job(LATE, FINAL, said="Failed"), "Crashed", ""),
    (evicted_in_a_row, a_job(EVICTED, EVICTED, EVICTED), "Evicted", ""),
    (evicted_in_a_row, a_job(EVICTED, EVICTED, EVICTED, RUNS, suspend=True), "Evicted", ""),
    (tries_again, a_job(EVICTED, FAILED, EVICTED, EVICTED), "", "Evicted"),
    (queued, a_job(suspend=True), "", "Queued"),
    (queued, a_job(RUNS, suspend=True), "", "Queued"),
    (queued, a_job(KEPT, suspend=True), "", "Queued"),
    (queued, a_job(said="Failed", reason=TRIES_USED_UP, suspend=True), "", "Queued"),
    (failed, a_job(said="Failed", reason="PodFailurePolicy", suspend=True), "Crashed", ""),
    (failed, a_job(said="Failed"), "Crashed", ""),
    (failed, a_job(FAILED, said="Failed"), "Crashed", ""),
    (failed, a_job(EVICTED, EVICTED, said="Failed"), "Evicted", ""),
    (without_pod, a_job(), "", ""),
    (tries_again, a_job(FAILED), "", "Crashed"),
    (tries_again, a_job(FINAL), "", ""),
    (tries_again, a_job(EVICTED), "", "Evicted"),
    (tries_again, a_job(DRAINED), "", "Evicted"),
    (tries_again, a_job(EVICTED, EVICTED, FAILED), "", "Crashed"),
    (lingers, a_job(KEPT), "", "Crashed"),
    (lingers, a_job(KEPT_FOR_GOOD), "Crashed", ""),
    (
        lingers,
        a_job(replace(KEPT, containers=(a_container(STAGE, 0), a_container("istio-proxy")))),
        "",
        "ResultMissing",
    ),
    (runs, a_job(RUNS), "", ""),
    (runs, a_job(EVICTED, RUNS), "", "Running"),
    (runs, a_job(replace(KEPT, conditions=DISRUPTED)), "", "Evicted"),
)


@pytest.mark.parametrize(("rule", "job", "failure", "pending"), TABLE)
def test_the_first_rule_that_applies_decides(rule: Any, job: JobFacts, failure: str, pending: str) -> None:
    first = next(each for each in RULES if each(job) is not None)
    found = finding(job)
    assert first.__name__ == rule.__name__
    assert [each.reason if each else "" for each in (found.failure, found.pending)] == [failure, pending]


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
    pod = a_pod("Running", a_container(stage), initial=(a_container(CHECK, 0), sidecar), sidecars=frozenset({SERVER}))
    found = finding(a_job(pod, stage=stage))
    assert [each.reason if each else "" for each in (found.failure, found.pending)] == [failure, pending]
