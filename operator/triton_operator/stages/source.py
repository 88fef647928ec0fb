"""Source: one Job reads spec.source and publishes it on the claim under its digest."""

from dataclasses import dataclass, replace
from datetime import datetime

from triton_converters.contract import layout
from triton_converters.contract.reasons import Reason
from triton_converters.contract.request import SourceRequest
from triton_converters.contract.results import SourceResult
from triton_operator import names
from triton_operator.api.status import Condition
from triton_operator.context import Context
from triton_operator.resources.jobs import Work, claim_volume, job
from triton_operator.stages.step import Progress, Verdict, run, waiting

RETRY_SECONDS, LONGEST_RETRY_SECONDS = 15, 300
"""The shortest and longest pause between two tries. A missing source may still come, because GitOps applies everything
at once; each pause is half of the time that the source has been missing."""
STALLED_SECONDS = 60
"""The object is stalled once the source has been missing for so long."""


@dataclass(frozen=True, kw_only=True)
class Sourced(Progress):
    """The source is published."""

    source: SourceResult


def resolve(context: Context, progress: Progress) -> Progress:
    """Return Sourced once the source is published."""
    if lost := _claim_lost(context):
        return progress.waiting(lost, stalled=True)
    work = source_work(context)
    this = run(context, work, repeats=(Reason.SOURCE_NOT_FOUND,))
    if this.record is not None:
        result = this.record.outcome.result
        assert isinstance(result, SourceResult)
        found = [f"{path} is of format {form}" for path, form in zip(context.sought, result.formats, strict=False)]
        message = "; ".join([f"{context.spec.source.uri} is published as sha256:{result.digest}", *found])
        verdict = Verdict("SourceResolved", True, Reason.RESOLVED, message)
        return Sourced(
            attempts=progress.attempts,
            verdicts=(*progress.verdicts, verdict),
            effects=progress.effects + this.effects,
            source=result,
        )
    old = _condition(context)
    missing = old is not None and old.reason == Reason.SOURCE_NOT_FOUND
    age = (context.now - datetime.fromisoformat(old.last_transition_time)).total_seconds() if old else 0.0
    if this.failure is not None:
        if this.failure.reason is Reason.SOURCE_NOT_FOUND:
            verdict = Verdict("SourceResolved", False, this.failure.reason, f"{this.failure.message}; trying again")
            effects = replace(this.effects, jobs=frozenset()) if _is_due(context, work, age) else this.effects
            return progress.waiting(verdict, effects, stalled=age >= STALLED_SECONDS)
        verdict = Verdict("SourceResolved", False, this.failure.reason, this.failure.message)
        return progress.waiting(verdict, this.effects, stalled=True)
    if missing and old is not None and this.active and this.pending is None:
        verdict = Verdict("SourceResolved", False, Reason.SOURCE_NOT_FOUND, old.message)
        return progress.waiting(verdict, this.effects, stalled=age >= STALLED_SECONDS)
    reason, message = waiting(f"the Job that reads {context.spec.source.uri}", this, context)
    return progress.waiting(Verdict("SourceResolved", False, reason, message), this.effects)


def _claim_lost(context: Context) -> Verdict | None:
    """The condition where the claim's volume is gone, and every result with it."""
    claim = context.observed.claim
    if claim is None or claim.get("status", {}).get("phase") != "Lost":
        return None
    name, volume = claim["metadata"]["name"], claim["spec"].get("volumeName", "")
    message = (
        f"PersistentVolumeClaim {name} lost its volume {volume}; delete the claim, and the operator makes it and all"
        " results again"
    )
    return Verdict("SourceResolved", False, Reason.CLAIM_LOST, message)


def source_work(context: Context) -> Work:
    """The Job's work. Its key says nothing of the content; the user's ``revision`` says when to look again."""
    source = context.spec.source
    path = source.uri.partition("://")[2].partition("/")[2].strip("/")
    request = SourceRequest(key="", uri=source.uri, path=path, sha256=source.sha256, models=context.sought)
    key = names.result_key("source", request, source.revision, context.deployment.uid)
    volume, mount = claim_volume("source", source.uri, layout.SOURCE_MOUNT)
    return Work(
        stage="source",
        key=key,
        request=replace(request, key=key),
        deadline_seconds=context.spec.conversion.active_deadline_seconds,
        volumes=(volume,),
        mounts=(mount,),
    )


def _condition(context: Context) -> Condition | None:
    """The SourceResolved condition that was last written for this generation."""
    for condition in context.deployment.status.conditions:
        if condition.type == "SourceResolved" and condition.observed_generation == context.deployment.generation:
            return condition
    return None


def _is_due(context: Context, work: Work, missing_seconds: float) -> bool:
    """Whether the failed Job is old enough for another try."""
    observed = context.observed.jobs[job(context, work)["metadata"]["name"]]
    created = datetime.fromisoformat(observed.body["metadata"]["creationTimestamp"])
    pause = min(max(missing_seconds / 2, RETRY_SECONDS), LONGEST_RETRY_SECONDS)
    return (context.now - created).total_seconds() >= pause
