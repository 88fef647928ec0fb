"""Checks that the status of a ready object contains everything that its spec asks for."""

from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.candidates.candidate import candidates_of

ENDS = {"Selected", "Passed", "Failed", "Skipped"}
"""The final states of a candidate."""


def failures(status: TritonDeploymentStatus) -> list[str]:
    """Return one sentence for each candidate that failed."""
    return [
        f"candidate {candidate.name} failed: {candidate.reason}: {candidate.message}"
        for candidate in status.candidates
        if candidate.state == "Failed"
    ]


def faults(spec: TritonDeploymentSpec, status: TritonDeploymentStatus) -> list[str]:
    """Return one sentence for each thing that is missing or unfinished. A failed candidate is not a fault."""
    missing = {wanted.name for wanted in candidates_of(spec)} - {seen.name for seen in status.candidates}
    found = [f"candidate {name} is not in the status" for name in sorted(missing)]
    found += [
        f"candidate {candidate.name} is {candidate.state}: {candidate.reason or 'no reason'}"
        for candidate in status.candidates
        if candidate.state not in ENDS or not candidate.reason
    ]
    found += [
        f"metric {row.metric} is {row.served}; the threshold is {row.threshold}"
        for row in status.accuracy
        if not row.passed
    ]
    measured = {row.metric for row in status.accuracy}
    found += [
        f"metric {threshold.metric} was not measured"
        for threshold in spec.accuracy.thresholds
        if threshold.metric not in measured
    ]
    return found + _missing_rows(spec, status)


def _missing_rows(spec: TritonDeploymentSpec, status: TritonDeploymentStatus) -> list[str]:
    performance = status.performance
    found = []
    if spec.performance.offline:
        batches = {row.batch_size for row in performance.offline} if performance else set()
        found += [
            f"no offline measurement at batch size {b}"
            for b in spec.performance.offline.batch_sizes
            if b not in batches
        ]
    if spec.performance.online:
        loads = {row.concurrency for row in performance.online} if performance else set()
        sweep = spec.performance.online.concurrency
        # Without an end, a sweep ends where the server is saturated.
        asked = sweep.concurrencies() if sweep.end is not None else [sweep.start]
        found += [f"no online measurement at concurrency {load}" for load in asked if load not in loads]
    return found
