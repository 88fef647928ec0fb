"""Publish: push what passed as an image, once no trial may undo it, and sign it. What serves does not wait for it."""

from dataclasses import replace

from triton_converters.contract.publishing import PublishResult, target
from triton_converters.contract.reasons import Reason
from triton_operator.api.publish import Publish
from triton_operator.api.search_status import config_status
from triton_operator.api.status import (
    ON_TRIAL,
    CandidateStatus,
    PublishedStatus,
    SourceStatus,
    TritonDeploymentStatus,
)
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.effects import Statement, conditions_of
from triton_operator.jobs.attestation import NotPassedError, Passed, predicate
from triton_operator.jobs.publish import publish_work
from triton_operator.jobs.run import Run, run
from triton_operator.stages.gate import LetThrough
from triton_operator.stages.progress import Progress
from triton_operator.stages.selection import Chosen
from triton_operator.stages.serve import soak_of
from triton_operator.stages.unfinished import await_result


def publish(context: Context, progress: Chosen) -> Progress:
    """Publish the target, if the spec asks for it, once it is active and no trial may undo it."""
    asked = context.spec.publish
    if asked is None:
        return progress
    if (awaited := _awaited(context, progress)) is not None:
        return progress.with_condition(awaited)
    try:
        report = predicate(_passed(context, progress))
    except NotPassedError as error:
        refused = Statement("Published", False, Reason.NOT_ATTESTED, str(error))
        return _ended(progress, progress.wait_with(refused, stalled=True))
    job_run = run(context, publish_work(context, asked, report), repeats=True)
    if job_run.result is None:
        words = f"the Job that publishes revision {progress.target.key}"
        return _ended(progress, await_result(context, progress, "Published", words, job_run))
    published = _published(asked, progress.target, job_run, job_run.result)
    condition = Statement("Published", True, Reason.PUBLISHED, _words(published))
    return replace(progress.with_condition(condition, job_run.effects), published=published)


def published_condition(context: Context, progress: Progress) -> Statement | None:
    """Return the condition Published, whichever step the flow has reached; None: the spec asks for no image."""
    asked, last = context.spec.publish, published_status(context, progress)
    if asked is None:
        return None
    reached = (each for each in progress.conditions if each.type == "Published")
    if (told := next(reached, None)) is not None:
        return told
    if last is not None and last.revision == context.active_revision and last.image.startswith(f"{_place(asked)}@"):
        return Statement("Published", True, Reason.PUBLISHED, _words(last))
    if context.spec.rollout.revision is not None:
        message = "spec.rollout.revision names a revision that served before, and nothing is published meanwhile"
        return Statement("Published", False, Reason.ROLLED_BACK, message)
    return Statement("Published", None, Reason.WAITING, "an earlier stage has to finish first")


def published_status(context: Context, progress: Progress) -> PublishedStatus | None:
    """Return what was published last; None: nothing, or the spec asks for no image."""
    if context.spec.publish is None:
        return None
    return progress.published or context.triton_deployment.status.published


def _awaited(context: Context, progress: Chosen) -> Statement | None:
    """Return the condition while something may still undo the target, or if nobody has judged it; None: it passed."""
    revision = progress.target.key
    if not progress.is_complete:
        message = f"revision {revision} is published once it is active"
        return Statement("Published", None, Reason.WAITING, message)
    trial = soak_of(context, progress).condition
    # There is none to wait for if no other revision was active before.
    if trial is None or trial.status or trial.reason is Reason.WAITING:
        return None
    if trial.reason in ON_TRIAL:
        message = f"revision {revision} is published once it has passed: {trial.message}"
        return Statement("Published", None, trial.reason, message)
    message = (
        f"revision {revision} is not published, because it has not passed its soak: {trial.message}; to publish the"
        " next revisions without one, remove spec.serving.soak"
    )
    return Statement("Published", False, trial.reason, message)


def _ended(before: Chosen, after: Chosen) -> Chosen:
    """Return the progress of a revision that is not published. What serves waits for nothing of it but time."""
    if isinstance(before, LetThrough):
        return after
    pauses = filter(None, (before.again_after, after.again_after))
    return replace(after, waits=before.waits, stalled=before.stalled, again_after=min(pauses, default=None))


def _passed(context: Context, progress: Chosen) -> Passed:
    """Return the target as it is attested. Raises NotPassedError."""
    owner, target, source = context.triton_deployment, progress.target, progress.dump.source
    tuning = target.candidate.tuning
    chosen = CandidateStatus(
        name=target.name,
        state=target.state,
        revision=target.key,
        profile_key=target.profile_key,
        metrics_key=target.metrics_key,
        config=config_status(tuning) if tuning is not None else None,
    )
    status = TritonDeploymentStatus(
        conditions=conditions_of(progress.conditions, (), owner.generation, context.now),
        images=context.pins,
        source=SourceStatus(
            digest=f"sha256:{source.digest}", version=context.spec.source.version, downloaded_version=source.resolved
        ),
        candidates=[chosen],
    )
    return Passed(
        namespace=context.namespace,
        name=context.name,
        uid=owner.uid,
        generation=owner.generation,
        spec=context.spec,
        status=status,
        records=context.observed.records,
        reference=progress.dump.key,
    )


def _place(asked: Publish) -> str:
    """Return REGISTRY/REPOSITORY."""
    place = target(asked.uri)
    return f"{place.host}/{place.name}"


def _published(
    asked: Publish, revision: Attempt, job_run: Run[PublishResult], result: PublishResult
) -> PublishedStatus:
    return PublishedStatus(
        image=f"{_place(asked)}@{result.digest}",
        revision=revision.key,
        signer=result.signer,
        time=job_run.finished_at,
    )


def _words(published: PublishedStatus) -> str:
    signed = f"signed by the key {published.signer}" if published.signer else "not signed"
    return f"revision {published.revision} is {published.image}, {signed}"
