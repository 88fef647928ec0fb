"""The one way in which any step runs a Job. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.jobs.fate import Fate, JobPhase, Reading, RecordedFailure, WorkFacts, next_fate
from triton_operator.jobs.passing import seconds_until_due, with_times
from triton_operator.names import RETRY_ANNOTATION
from triton_operator.observed.failures import Failure
from triton_operator.observed.job import JobView
from triton_operator.observed.pod import RUN
from triton_operator.observed.record import Record
from triton_operator.observed.trouble import Trouble
from triton_operator.resources.job import earlier_name, job
from triton_operator.resources.work import Answered, AnyWork, Asked, Work, reader

UNSEEN_SECONDS = 10.0
"""How long the pod of a Job that has ended is waited for. Jobs and pods come over different watches, which lag by a few
seconds at most, and the pod has the answer."""

LINGER_SECONDS = 60.0
"""How long a pod may go on after its Job's own container. What a webhook added to it may end by itself, later."""


@dataclass(frozen=True)
class Run(Generic[Answered]):
    """What became of a piece of work."""

    effects: Effects
    record: Record | None = None
    result: Answered | None = None
    """What the record holds."""
    failure: Trouble | None = None
    failing: Failure | None = None
    """How the last try failed, if the work is tried again by itself; that try may run by now. None: it has not failed,
    or only a person's wish repeats it."""
    pending: Trouble | None = None
    """What keeps the Job's pod from running."""
    active: bool = False
    """A Job for it exists and has not ended, or is created in this pass."""

    @property
    def finished_at(self) -> str:
        """When the work's Job finished, in RFC 3339, UTC; empty: it has not."""
        return self.record.finished_at if self.record is not None else ""

    @property
    def image_id(self) -> str:
        """`Record.image_id` of its record; empty also without one."""
        return self.record.image_id if self.record is not None else ""


def run(
    context: Context,
    work: Work[Asked, Answered],
    start: bool = True,
    patience: float | None = None,
    repeats: bool = False,
) -> Run[Answered]:
    """Look for the work's record; else for its failure; else for its Job; else start one, if ``start`` allows it.

    A Job that has ended stays with its record, for its log, also where a newer operator would write it otherwise. One
    whose pod never ends, because of what a webhook added to it, goes once its record or failure is known; so does one
    that is suspended, because Kueue would start it again.
    ``patience``: seconds after which a Job that no node takes is given up; None: it waits.
    ``repeats``: whether work whose failure passes by itself is tried again after a pause (`passing.PASSING`).

    A Job whose sidecar crashed or whose pod ran past its deadline, or that is given up, does not end by itself: its
    failure is recorded and it is deleted.
    """
    known = _run(context, work, start, patience, repeats)
    replaced = [record_name(work.stage, key) for key in work.replaces]
    failures = {name: context.observed.failures[name] for name in replaced}
    return replace(known, effects=known.effects + Effects(needed=frozenset(replaced), failures=failures))


@dataclass(frozen=True)
class _UnansweredWork:
    """Work without a result, and all that is known of it."""

    body: dict[str, Any]
    """Body of the work's Job, as it would be made now."""
    name: str
    """Name of the work's Job, which an earlier version of the operator may have made."""
    job: JobView | None
    recorded: Failure | None
    """The recorded failure of that Job."""
    before: Failure | None
    """The failure that was recorded last, of that Job or of the try before it; None also if a retry was asked for."""
    reading: Run[Any] | None
    """What became of the Job that reads its answer from the claim; None: none is needed."""
    failure: Trouble | None
    """How the Job failed, or why it is given up."""


def _run(context: Context, work: AnyWork, start: bool, patience: float | None, repeats: bool) -> Run[Any]:
    """Return what became of a piece of work, but for the results that it had under earlier keys."""
    needed = Effects(needed=frozenset({record_name(work.stage, work.key)}))
    same = [each for each in context.observed.jobs.values() if (each.stage, each.key) == (work.stage, work.key)]
    record = context.observed.records.get(record_name(work.stage, work.key))
    if record is not None:
        known = _recorded_run(context, work, record, same)
        return replace(known, effects=known.effects + needed)
    found = _observe(context, work, same, patience)
    facts = WorkFacts(
        recorded=_recorded_failure(context, found, repeats),
        job=_phase(context, found),
        reading=_reading_state(found),
        may_start=start and not context.spec.suspend,
    )
    outcome = _ACTIONS[next_fate(facts)](context, found)
    return _with_failure_record(found, replace(outcome, effects=outcome.effects + needed), repeats)


def _with_failure_record(found: _UnansweredWork, outcome: Run[Any], repeats: bool) -> Run[Any]:
    """Keep the record of a failure that passes by itself until there is a result: the next pause depends on it."""
    failing = outcome.effects.failures.get(found.name, found.before)
    if failing is None or not failing.since:
        return outcome
    effects = outcome.effects + Effects(failures={found.name: failing})
    return replace(outcome, effects=effects, failing=failing if repeats else None)


def _recorded_run(context: Context, work: AnyWork, record: Record, same: Sequence[JobView]) -> Run[Any]:
    """Return the result. Nothing is to run: to build the Jobs of all that is known would take most of a pass."""
    result = record.outcome.result
    # It was read by the type that its stage answers.
    assert isinstance(result, work.result)
    own = job(context, work)["metadata"]["name"] if any(each.active for each in same) else ""
    ended = [each for each in same if not each.active or each.name == own]
    stay = frozenset(each.name for each in ended if not (each.suspended or _overstays(context, each)))
    return Run(Effects(jobs=stay), record=record, result=result)


def _observe(context: Context, work: AnyWork, same: Sequence[JobView], patience: float | None) -> _UnansweredWork:
    """Return all that is known of work without a result. ``same``: the Jobs of its key."""
    observed, body = context.observed, job(context, work)
    name = body["metadata"]["name"]
    earlier = earlier_name(context, work) if observed.failures else ""
    if earlier in observed.failures and observed.failures[earlier].retry == context.triton_deployment.retry:
        name = earlier
    own, recorded = observed.jobs.get(name), observed.failures.get(name)
    # Without another Job of the key, none reads; so no Job is built in vain.
    may_read = not work.reads and ((own is not None and own.cut) or any(each is not own for each in same))
    return _UnansweredWork(
        body=body,
        name=name,
        job=own,
        recorded=None if recorded is None or (own is not None and own.uid != recorded.uid) else recorded,
        before=recorded if recorded is not None and recorded.retry == context.triton_deployment.retry else None,
        reading=_run_reader(context, work, own) if may_read else None,
        failure=(own.failure or _give_up_reason(context, own, patience)) if own is not None else None,
    )


def _recorded_failure(context: Context, found: _UnansweredWork, repeats: bool) -> RecordedFailure:
    if found.recorded is None:
        return RecordedFailure.NOTHING
    is_asked_again = found.recorded.retry != context.triton_deployment.retry
    is_due = repeats and bool(found.recorded.at) and seconds_until_due(found.recorded, context.now) <= 0
    return RecordedFailure.REPEATS if is_asked_again or is_due else RecordedFailure.STANDS


def _phase(context: Context, found: _UnansweredWork) -> JobPhase:
    """Return how far the work's Job is; one that ended unseen goes on, because its pod may be to come."""
    if found.job is None:
        return JobPhase.ABSENT
    if is_unseen(context, found.job):
        return JobPhase.ACTIVE
    if found.failure is not None:
        return JobPhase.FAILED
    return JobPhase.ACTIVE if found.job.state == "Active" else JobPhase.ENDED


def _reading_state(found: _UnansweredWork) -> Reading:
    if found.reading is None:
        return Reading.NONE
    return Reading.GOES_ON if found.reading.failure is None else Reading.FAILED


def _failed_before(context: Context, found: _UnansweredWork) -> Run[Any]:
    assert found.recorded is not None
    return _failed_run(context, found, with_times(found.recorded, found.before, context.now), found.recorded.trouble)


def _makes_way(context: Context, found: _UnansweredWork) -> Run[Any]:
    # Until the failed Job is gone, the record tells it from the next one.
    assert found.recorded is not None
    return Run(Effects(failures={found.name: found.recorded}), active=True)


def _reads(context: Context, found: _UnansweredWork) -> Run[Any]:
    assert found.reading is not None
    return found.reading


def _unreadable(context: Context, found: _UnansweredWork) -> Run[Any]:
    assert found.reading is not None
    assert found.reading.failure is not None
    return Run(Effects(failures=_failure_records(context, found, found.reading.failure)), failure=found.reading.failure)


def _waits(context: Context, found: _UnansweredWork) -> Run[Any]:
    return Run(Effects())


def _runs(context: Context, found: _UnansweredWork) -> Run[Any]:
    pending = found.job.pending if found.job is not None else None
    return Run(Effects((found.body,), jobs=frozenset({found.name})), pending=pending, active=True)


def _fails(context: Context, found: _UnansweredWork) -> Run[Any]:
    assert found.failure is not None
    return _failed_run(context, found, _failure_records(context, found, found.failure)[found.name], found.failure)


def _repeats(context: Context, found: _UnansweredWork) -> Run[Any]:
    # Its pod is gone with the answer, or it was suspended too often: without the Job another one starts, and replays an
    # answer from the claim.
    return Run(Effects(), pending=found.job.pending if found.job is not None else None, active=True)


_ACTIONS: Mapping[Fate, Callable[[Context, _UnansweredWork], Run[Any]]] = {
    Fate.FAILED_BEFORE: _failed_before,
    Fate.MAKES_WAY: _makes_way,
    Fate.READS: _reads,
    Fate.UNREADABLE: _unreadable,
    Fate.WAITS: _waits,
    Fate.RUNS: _runs,
    Fate.FAILS: _fails,
    Fate.REPEATS: _repeats,
}
"""What each fate asks of the cluster, and what it says."""


def _failure_records(context: Context, found: _UnansweredWork, failure: Trouble) -> Mapping[str, Failure]:
    """The record of a failure.

    It may be written only after the user has read of it in the status, and has typed a retry.
    """
    retry, uid = context.triton_deployment.retry, ""
    if found.job is not None:
        retry, uid = found.job.body["metadata"].get("annotations", {}).get(RETRY_ANNOTATION, ""), found.job.uid
    noted = Failure(uid, failure.reason, failure.message, retry)
    return {found.name: with_times(noted, found.before, context.now)}


def _failed_run(context: Context, found: _UnansweredWork, noted: Failure, failure: Trouble) -> Run[Any]:
    """Return a failure that is recorded. Its Job is kept, for its log, if it ended by itself."""
    stays = found.job is not None and found.job.ended and not _overstays(context, found.job)
    jobs = frozenset({found.name}) if stays else frozenset()
    return Run(Effects(jobs=jobs, failures={found.name: noted}), failure=failure)


def _run_reader(context: Context, work: AnyWork, observed: JobView | None) -> Run[Any] | None:
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
    found = _run(context, answers, True, None, False)
    stays = observed is not None and not (begun and _overstays(context, observed))
    kept = frozenset({observed.name}) if observed is not None and stays else frozenset()
    return replace(found, effects=found.effects + Effects(jobs=kept))


def is_unseen(context: Context, job: JobView) -> bool:
    """Whether the Job was seen to end just now and its pod was not: the two come over different watches."""
    return job.ended_unseen is not None and (context.now - job.ended_unseen).total_seconds() < UNSEEN_SECONDS


def waiting_reason(work: str, run: Run[Any], context: Context) -> tuple[Reason, str]:
    """Reason and message of work that has neither a record nor a failure yet."""
    if run.pending is not None:
        return run.pending.reason, f"{run.pending.message}{_image_advice(context, run.pending)}"
    if not run.active and context.spec.suspend:
        return Reason.SUSPENDED, f"{work} does not start, because spec.suspend is true"
    return Reason.RUNNING, f"{work} runs"


def next_try(context: Context, runs: Iterable[Run[Any]]) -> float | None:
    """Seconds until the first of those that failed is tried again by itself; None: none is."""
    pauses = (seconds_until_due(each.failing, context.now) for each in runs if each.failing is not None)
    return min((each for each in pauses if each > 0), default=None)


def _image_advice(context: Context, pending: Trouble) -> str:
    """What to do about the image of TensorFlow: an installation may lack it, because no other model needs it."""
    if (
        (pending.reason, pending.container) != (Reason.IMAGE_PULL_FAILED, RUN)
        or context.spec.conversion.image
        or context.framework_image != context.images.converter_tensorflow
    ):
        return ""
    return (
        ". Only models of TensorFlow need this image, the Helm value images.converterTensorflow; docs/tensorflow.md"
        " says how to build it. The object goes on by itself once its nodes can pull the image. If you change the"
        " value, change spec.source.version too, because an object keeps its images"
    )


def _overstays(context: Context, job: JobView) -> bool:
    """Whether others have kept the Job's pod from ending for so long that it is not waited for."""
    since = job.lingers_since
    return since is not None and (context.now - since).total_seconds() > LINGER_SECONDS


def _give_up_reason(context: Context, observed: JobView, patience: float | None) -> Trouble | None:
    """Return why a Job that goes on is given up: its pod does not end, or no node has taken it; None: it is not."""
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
