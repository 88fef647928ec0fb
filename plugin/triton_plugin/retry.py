"""Says what a retry of an object would do, from its status and the recorded failures. Pure."""

from collections.abc import Iterator

from triton_converters.contract.reasons import Reason
from triton_plugin.advice import advice
from triton_plugin.subject import Subject

FIGURES = {"Selected": "the candidates", "PerformanceMeasured": "the target revision"}
"""The conditions that are False because of figures, with what is then measured again."""


def asked(subject: Subject) -> str:
    """Return what a retry does, in words; empty if nothing failed that it could repeat."""
    # Of a rollback that serves, the failures of what it left are kept for the time after it.
    return "" if subject.rolled_back and subject.holds("Ready") else "; ".join(_again(subject))


def _again(subject: Subject) -> Iterator[str]:
    failed = [f"{job} ({failure.reason})" for job, failure in sorted(subject.failures.items()) if failure.uid]
    if failed:
        yield f"what failed runs again: {', '.join(failed)}"
    failures = [each for each in subject.status.candidates if each.state == "Failed"]
    damaged = [each.name for each in failures if each.reason == Reason.REPOSITORY_DAMAGED]
    if damaged:
        yield f"{', '.join(damaged)}: published again"
    stopped = subject.stopped
    if stopped is not None and stopped.reason == Reason.SOAK_FAILED:
        yield "the revision that the soak undid is tried again"
    if stopped is None or all(failure.uid for failure in subject.failures.values()):
        return
    for kind, measured in FIGURES.items():
        found = subject.condition(kind)
        if found is not None and (found.status, found.reason) == ("False", stopped.reason):
            yield f"{measured} will be measured again; the active revision, if there is one, serves meanwhile"
            return


def refused(subject: Subject) -> str:
    """Return why a retry would do nothing, and what to do instead."""
    name = f"TritonDeployment {subject.name}"
    held = subject.rolled_back
    if held is not None and subject.holds("Ready"):
        to_do = advice(held.reason, subject.name, subject.namespace)
        return f"{name} is rolled back, so a retry would do nothing. {to_do}"
    if subject.stopped is not None or subject.is_paused:
        found = subject.stopped or subject.condition("Reconciling")
        reason = found.reason if found else ""
        to_do = (
            advice(reason, subject.name, subject.namespace)
            or f"Ask what is in the way: kubectl triton explain {subject.name}"
        )
        return f"{name} waits for a change ({reason}), and no Job failed, so a retry would do nothing. {to_do}"
    if subject.holds("Ready") and subject.newer is None:
        return (
            f"{name} is ready and no Job failed, so a retry would do nothing. To measure again, change"
            " spec.performance.measurement.requestCount; after a change of your files, set a new spec.source.version."
        )
    return f"{name} is in progress and no Job failed, so a retry would do nothing: it goes on by itself."
