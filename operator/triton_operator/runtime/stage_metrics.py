"""How the Jobs of each stage end, and how long they take, as metrics."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram

from triton_converters.contract.stages import STAGES
from triton_operator.observed.job import JobView
from triton_operator.runtime.store import Key

SUCCEEDED = "Succeeded"
"""The reason of a Job that ended with a result. Every other reason is one of contract/reasons.py."""
SECONDS = (1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400)
"""Upper bounds of the histogram's buckets, in seconds: from a Job that reads a small source to a search for hours."""


class Ended(NamedTuple):
    """A Job that ended since the pass before."""

    job: JobView
    reason: str
    seconds: float


class StageMetrics:
    """Counts each Job once: in the pass that sees its end after another pass saw it running.

    So a Job whose end no pass of this process saw, because another replica led or none ran, is not counted.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "triton_operator_stage_seconds",
            "Duration of the stage's Jobs, from their start to their end, with all tries.",
            ["stage"],
            buckets=SECONDS,
            registry=registry,
        )
        self._outcomes = Counter(
            "triton_operator_stage_outcomes",
            "Jobs that ended, by stage and reason: Succeeded, or the reason of the failure.",
            ["stage", "reason"],
            registry=registry,
        )
        for stage in STAGES:
            self._seconds.labels(stage)
            self._outcomes.labels(stage, SUCCEEDED)
        self._running: dict[Key, frozenset[str]] = {}

    def seen(self, key: Key, jobs: Collection[JobView], now: datetime) -> list[Ended]:
        """Count the Jobs of a TritonDeployment that ended since the last time; return them.

        A Job whose label names no stage is not the operator's, and is not counted.
        """
        before = self._running.get(key, frozenset())
        ended = [
            Ended(job, reason, _seconds(job, now))
            for job in jobs
            if job.uid in before and job.stage in STAGES and (reason := _reason(job))
        ]
        for each in ended:
            self._outcomes.labels(each.job.stage, each.reason).inc()
            self._seconds.labels(each.job.stage).observe(each.seconds)
        self._remember(key, (job.uid for job in jobs if not _reason(job)))
        return ended

    def forget(self, key: Key) -> None:
        """Forget a TritonDeployment that is gone."""
        self._running.pop(key, None)

    def clear(self) -> None:
        """Forget all TritonDeployments."""
        self._running.clear()

    def _remember(self, key: Key, running: Iterable[str]) -> None:
        if found := frozenset(running):
            self._running[key] = found
        else:
            self._running.pop(key, None)


def _reason(job: JobView) -> str:
    """How a Job ended; empty: it goes on, or its end is not seen yet."""
    if job.record is not None or job.cut:
        return SUCCEEDED
    return str(job.failure.reason) if job.failure is not None else ""


def _seconds(job: JobView, now: datetime) -> float:
    start = job.body.get("status", {}).get("startTime") or job.body["metadata"]["creationTimestamp"]
    end = job.record.finished_at if job.record is not None else ""
    return max(0.0, ((datetime.fromisoformat(end) if end else now) - datetime.fromisoformat(start)).total_seconds())
