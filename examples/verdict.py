"""Whether a ready object shows all that its spec asked for."""

from triton_operator.api.performance import ConcurrencyRange
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.candidates.combination import combinations


def concurrencies(sweep: ConcurrencyRange) -> list[int]:
    """Every concurrency of the range, its end included."""
    return list(range(sweep.start, sweep.end + 1, sweep.step))


ENDS = {"Selected", "Passed", "Failed", "Skipped"}
"""States of a candidate that is done with."""


def failures(status: TritonDeploymentStatus) -> list[str]:
    """Candidates that failed, one sentence each."""
    return [
        f"candidate {candidate.name} failed: {candidate.reason}: {candidate.message}"
        for candidate in status.candidates
        if candidate.state == "Failed"
    ]


def faults(spec: TritonDeploymentSpec, status: TritonDeploymentStatus) -> list[str]:
    """What is missing or unfinished, one sentence each; nothing where all is well. A candidate may fail."""
    missing = {wanted.name for wanted in combinations(spec)} - {seen.name for seen in status.candidates}
    found = [f"candidate {name} is not in the status" for name in sorted(missing)]
    found += [
        f"candidate {candidate.name} is {candidate.state}: {candidate.reason or 'no reason'}"
        for candidate in status.candidates
        if candidate.state not in ENDS or not candidate.reason
    ]
    found += [
        f"metric {row.metric} is {row.served}, asked was {row.threshold}" for row in status.accuracy if not row.passed
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
        found += [f"no offline row of batch size {b}" for b in spec.performance.offline.batch_sizes if b not in batches]
    if spec.performance.online:
        loads = {row.concurrency for row in performance.online} if performance else set()
        asked = concurrencies(spec.performance.online.concurrency)
        found += [f"no online row of concurrency {load}" for load in asked if load not in loads]
    return found
