"""Says what a retry of an object would do, from its status and the recorded failures. Pure."""

from collections.abc import Iterator

from triton_converters.contract.reasons import Reason
from triton_plugin.reading.subject import Subject
from triton_plugin.telling.advice import advice, change

FIGURES = {"Selected": "the candidates", "PerformanceMeasured": "the target revision"}
"""The conditions that are False because of figures, with what is then measured again."""


def retry_effect(subject: Subject) -> str:
    """Return what a retry does, in words; empty if nothing failed that it could repeat."""
    # Of a rollback that serves, the failures of what it left are kept for the time after it.
    return "" if subject.rollback_condition and subject.holds("Ready") else "; ".join(_retried_work(subject))


def _retried_work(subject: Subject) -> Iterator[str]:
    if subject.spec.source.interval is not None and subject.spec.rollout.revision is None:
        yield "the source is looked at now"
    failed_jobs = [f"{job} ({failure.reason})" for job, failure in sorted(subject.failures.items()) if failure.uid]
    if failed_jobs:
        yield f"what failed runs again: {', '.join(failed_jobs)}"
    failures = [each for each in subject.status.candidates if each.state == "Failed"]
    damaged = [each.name for each in failures if each.reason == Reason.REPOSITORY_DAMAGED]
    if damaged:
        yield f"{', '.join(damaged)}: published again"
    stop_condition = subject.stop_condition
    if stop_condition is not None and stop_condition.reason == Reason.SOAK_FAILED:
        yield "the revision that the soak undid is tried again"
    if stop_condition is None or all(failure.uid for failure in subject.failures.values()):
        return
    for kind, subject_of_figures in FIGURES.items():
        condition = subject.condition(kind)
        if condition is not None and (condition.status, condition.reason) == ("False", stop_condition.reason):
            yield f"{subject_of_figures} will be measured again; the active revision, if there is one, serves meanwhile"
            return


def retry_refusal(subject: Subject) -> str:
    """Return why a retry would do nothing, and what to do instead."""
    name = f"TritonDeployment {subject.name}"
    rollback = subject.rollback_condition
    if rollback is not None and subject.holds("Ready"):
        to_do = advice(rollback.reason, subject.name, subject.place)
        return f"{name} is rolled back, so a retry would do nothing. {to_do}"
    if subject.stop_condition is not None or subject.is_paused:
        condition = subject.stop_condition or subject.condition("Reconciling")
        reason = condition.reason if condition else ""
        to_do = (
            advice(reason, subject.name, subject.place, source=subject.spec.source)
            or f"Ask what is in the way: {subject.command('explain', subject.name)}"
        )
        return f"{name} waits for a change ({reason}), and no Job failed, so a retry would do nothing. {to_do}"
    if subject.holds("Ready") and subject.newer_condition is None:
        return (
            f"{name} is ready and no Job failed, so a retry would do nothing. To measure again, change"
            " spec.performance.measurement.requestCount; after a change of your files,"
            f" {change(subject.spec.source)}."
        )
    return f"{name} is in progress and no Job failed, so a retry would do nothing: it goes on by itself."
