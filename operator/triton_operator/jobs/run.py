"""The one way in which any step runs a Job. Pure."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.observed.failures import Failure
from triton_operator.observed.job import JobView
from triton_operator.observed.pod import RUN
from triton_operator.observed.record import Record
from triton_operator.observed.trouble import Trouble
from triton_operator.resources.job import earlier_name, job
from triton_operator.resources.work import Work, reader

UNSEEN_SECONDS = 10.0
"""Jobs and pods come over different watches: of a Job that has just ended, the pod with the answer may be to come."""

LINGER_SECONDS = 60.0
"""How long a pod may go on after its Job's own container. What a webhook added to it may end by itself, later."""


@dataclass(frozen=True)
class Run:
    """What became of a piece of work."""

    effects: Effects
    record: Record | None = None
    failure: Trouble | None = None
    pending: Trouble | None = None
    """What keeps the Job's pod from running."""
    active: bool = False
    """A Job for it exists and has not ended, or is created in this pass."""


def run(
    context: Context,
    work: Work,
    start: bool = True,
    patience: float | None = None,
    repeats: Collection[Reason] = (),
) -> Run:
    """Look for the work's record; else for its failure; else for its Job; else start one, if ``start`` allows it.

    A Job that has ended stays with its record, for its log, also where a newer operator would write it otherwise. One
    whose pod never ends, because of what a webhook added to it, goes once its record or failure is known; so does one
    that is suspended, because Kueue would start it again.
    ``patience``: seconds after which a Job that no node takes is given up; None: it waits.
    ``repeats``: failures that end with their Job: without the Job the work starts again.

    A Job whose sidecar crashed or whose pod ran past its deadline, or that is given up, does not end by itself: its
    failure is recorded and it is deleted.
    """
    known = _run(context, work, start, patience, repeats)
    replaced = [record_name(work.stage, key) for key in work.replaces]
    failures = {name: context.observed.failures[name] for name in replaced}
    return replace(known, effects=known.effects + Effects(needed=frozenset(replaced), failures=failures))


def _run(context: Context, work: Work, start: bool, patience: float | None, repeats: Collection[Reason]) -> Run:
    body = job(context, work)
    name = body["metadata"]["name"]
    record = record_name(work.stage, work.key)
    needed = frozenset({record})
    same = [each for each in context.observed.jobs.values() if (each.stage, each.key) == (work.stage, work.key)]
    if record in context.observed.records:
        jobs = frozenset({name, *(each.name for each in same if not each.active)})
        jobs -= {each.name for each in same if each.suspended or _overstays(context, each)}
        return Run(Effects(needed=needed, jobs=jobs), record=context.observed.records[record])
    earlier = earlier_name(context, work) if context.observed.failures else ""
    failed_earlier = context.observed.failures.get(earlier)
    if failed_earlier is not None and failed_earlier.retry == context.deployment.retry:
        name = earlier
    observed, known, jobs = context.observed.jobs.get(name), context.observed.failures.get(name), frozenset({name})
    if known is not None and (observed is None or observed.uid == known.uid):
        again = known.retry != context.deployment.retry
        if not again and (observed is not None or known.reason not in repeats):
            stays = jobs if observed is not None and _stays(context, observed) else frozenset()
            return Run(Effects(needed=needed, jobs=stays, failures={name: known}), failure=known.trouble)
        if observed is not None:
            # Until the failed Job is gone, the record tells it from the next one.
            return Run(Effects(needed=needed, failures={name: known}), active=True)
    # Without another Job of the key, none reads; so no Job is built in vain.
    may_read = not work.reads and (
        (observed is not None and observed.cut) or any(each is not observed for each in same)
    )
    reading = _reading(context, work, observed) if may_read else None
    if reading is not None and reading.failure is None:
        return reading
    if reading is not None and reading.failure is not None:
        uid = observed.uid if observed is not None else ""
        failed = Failure(uid, reading.failure.reason, reading.failure.message, context.deployment.retry)
        return Run(Effects(needed=needed, failures={name: failed}), failure=reading.failure)
    if observed is None:
        if not start or context.spec.suspend:
            return Run(Effects(needed=needed))
        return Run(Effects((body,), needed, jobs), active=True)
    if is_unseen(context, observed):
        return Run(Effects((body,), needed, jobs), pending=observed.pending, active=True)
    failure = observed.failure or _given_up(context, observed, patience)
    if failure is not None:
        stays = jobs if _stays(context, observed) else frozenset()
        failed = Failure(observed.uid, failure.reason, failure.message, context.deployment.retry)
        return Run(Effects(needed=needed, jobs=stays, failures={name: failed}), failure=failure)
    if observed.state != "Active":
        # Its pod is gone with the answer, or it was suspended too often: without the Job another one starts, and
        # replays an answer from the claim.
        return Run(Effects(needed=needed), pending=observed.pending, active=True)
    return Run(Effects((body,), needed, jobs), pending=observed.pending, active=True)


def _reading(context: Context, work: Work, observed: JobView | None) -> Run | None:
    """What became of the Job that reads the work's answer from the claim; None if no such Job is needed.

    It is needed once the kubelet has cut the answer. Until it is there, the Job that was cut tells so; afterwards a pod
    that goes on is not waited for, because it may hold the CPU or the quota that the reading Job needs.
    """
    answers = reader(work)
    name = job(context, answers)["metadata"]["name"]
    begun = name in context.observed.jobs
    if not begun and (observed is None or not observed.cut):
        return None
    # It disturbs no measurement, and the pod whose answer it reads may go on.
    found = _run(context, answers, True, None, ())
    stays = observed is not None and not (begun and _overstays(context, observed))
    kept = frozenset({observed.name}) if observed is not None and stays else frozenset()
    return replace(found, effects=found.effects + Effects(jobs=kept))


def is_unseen(context: Context, job: JobView) -> bool:
    """Whether the Job was seen to end just now and its pod was not: the two come over different watches."""
    return job.ended_unseen is not None and (context.now - job.ended_unseen).total_seconds() < UNSEEN_SECONDS


def waiting(work: str, run: Run, context: Context) -> tuple[Reason, str]:
    """Reason and message of work that has neither a record nor a failure yet."""
    if run.pending is not None:
        return run.pending.reason, f"{run.pending.message}{_where_from(context, run.pending)}"
    if not run.active and context.spec.suspend:
        return Reason.SUSPENDED, f"{work} does not start, because spec.suspend is true"
    return Reason.RUNNING, f"{work} runs"


def _where_from(context: Context, pending: Trouble) -> str:
    """What to do about the image of TensorFlow: an installation may lack it, because no other model needs it."""
    lacks_image = pending.reason is Reason.IMAGE_PULL_FAILED and f"container {RUN}:" in pending.message
    if (
        not lacks_image
        or context.spec.conversion.image
        or context.framework_image != context.images.converter_tensorflow
    ):
        return ""
    return (
        ". Only models of TensorFlow need this image, the Helm value images.converterTensorflow; docs/tensorflow.md"
        " says how to build it. The object goes on by itself once its nodes can pull the image. If you change the"
        " value, change spec.source.revision too, because an object keeps its images"
    )


def _stays(context: Context, failed: JobView) -> bool:
    """Whether a Job that failed is kept, for its log: it has to end by itself."""
    return failed.ended and not _overstays(context, failed)


def _overstays(context: Context, job: JobView) -> bool:
    """Whether others have kept the Job's pod from ending for so long that it is not waited for."""
    since = job.lingers_since
    return since is not None and (context.now - since).total_seconds() > LINGER_SECONDS


def _given_up(context: Context, observed: JobView, patience: float | None) -> Trouble | None:
    if _overstays(context, observed):
        return observed.pending
    if patience is None or observed.pending is None or observed.unschedulable_since is None:
        return None
    if (context.now - observed.unschedulable_since).total_seconds() <= patience:
        return None
    message = (
        f"{observed.pending.message} Given up after {patience:g} s; once there is a node, type: {context.retry_command}"
    )
    return Trouble(observed.pending.reason, message)
