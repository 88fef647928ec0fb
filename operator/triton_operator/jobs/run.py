"""The one way in which any step runs a Job. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from typing import Any, Generic

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.jobs.fate import Fate, JobPhase, Reading, RecordedFailure, WorkFacts, next_fate
from triton_operator.jobs.transient import awaits_input, failed_seconds, seconds_until_due, with_times
from triton_operator.names import RETRY_ANNOTATION
from triton_operator.observed.failures import Failure
from triton_operator.observed.gpu import NO_GPU, NodeGpu
from triton_operator.observed.job import JobView
from triton_operator.observed.pod import RUN
from triton_operator.observed.record import Record
from triton_operator.observed.trouble import Trouble
from triton_operator.resources.claim import is_permitted
from triton_operator.resources.job import job, measures
from triton_operator.resources.work import AnyWork, Replay, RequestT, ResultT, Work, reader

UNSEEN_SECONDS = 10.0
"""Seconds for which the pod of a Job that has ended is waited for, because the pod has the answer.

Jobs and pods come over different watches, and one lags behind the other by a few seconds at most.
"""

LINGER_SECONDS = 60.0
"""Seconds for which a pod may go on after its Job's own container has ended.

A sidecar that a webhook added ends by itself within some seconds, if at all: a minute lets it, and costs little.
"""


@dataclass(frozen=True)
class Run(Generic[ResultT]):
    """The state of a piece of work after a pass has looked at it."""

    effects: Effects
    record: Record | None = None
    result: ResultT | None = None
    """The result that the record holds; None: there is no record."""
    failure: Trouble | None = None
    failing: Failure | None = None
    """The failure of the last try, if the operator tries the work again by itself; the next try may run by now.

    None: the work has not failed, or only a retry that the user asks for repeats it.
    """
    pending: Trouble | None = None
    """What keeps the Job's pod from running; None: nothing is known to."""
    active: bool = False
    """Whether a Job for the work exists that has not ended, or is created in this pass."""
    runs_since: datetime | None = None
    """When that Job was last let run; None: it is created in this pass, or it is suspended, or there is none."""

    @property
    def awaits_turn(self) -> bool:
        """Whether the work has no Job because those of others measure."""
        return not self.active and self.pending is not None

    @property
    def finished_at(self) -> str:
        """When the work's Job finished, in RFC 3339, UTC; empty: it has not."""
        return self.record.finished_at if self.record is not None else ""

    @property
    def image_id(self) -> str:
        """`Record.image_id` of its record; empty also without one."""
        return self.record.image_id if self.record is not None else ""

    @property
    def gpu(self) -> NodeGpu:
        """`Record.gpu` of its record; without one, nothing is known."""
        return self.record.gpu if self.record is not None else NO_GPU


def run(
    context: Context,
    work: Work[RequestT, ResultT],
    start: bool = True,
    patience: float | None = None,
    repeats: bool = False,
    gives_up_after: float = inf,
) -> Run[ResultT]:
    """Return the work's recorded result, else its failure, else its Job, else a new Job if ``start`` allows it.

    A Job that has ended stays with its record, for its log, also where a newer operator would write it otherwise. One
    whose pod never ends, because of what a webhook added to it, goes once its record or failure is known. One that is
    recorded goes if it would run again: Kueue suspended it, or its pod went before the Job was complete.
    ``patience``: seconds after which a Job that no node takes is given up; None: it waits.
    ``repeats``: whether work whose failure passes by itself is tried again after a pause (`transient.TRANSIENT`).
    ``gives_up_after``: seconds of failing after which it is not; by default it always is.

    A Job whose sidecar crashed or whose pod ran past its deadline, or that is given up, does not end by itself: its
    failure is recorded and it is deleted.
    """
    outcome = _run(context, work, start, patience, gives_up_after if repeats else 0.0)
    replaced_names = [record_name(work.stage, key) for key in work.replaces]
    failures = {name: context.observed.failures[name] for name in replaced_names}
    return replace(outcome, effects=outcome.effects + Effects(needed=frozenset(replaced_names), failures=failures))


@dataclass(frozen=True)
class _WorkState:
    """All that is observed and recorded of work that has no result yet."""

    body: dict[str, Any]
    """Body of the work's Job, as it would be made now."""
    name: str
    """Name of the work's Job."""
    job: JobView | None
    recorded: Failure | None
    """The recorded failure of that Job."""
    before: Failure | None
    """The failure that was recorded last, of that Job or of the try before it; None also if a retry was asked for."""
    reading: Run[Any] | None
    """The run of the Job that reads the work's answer from the claim; None: no such Job is needed."""
    failure: Trouble | None
    """How the Job failed, or why it is given up."""


def _run(context: Context, work: AnyWork, start: bool, patience: float | None, repeats_for: float) -> Run[Any]:
    """Return the state of a piece of work, without the results that it had under earlier keys.

    ``repeats_for``: seconds of failing for which it is tried again after a pause.
    """
    needed = Effects(needed=frozenset({record_name(work.stage, work.key)}))
    jobs_of_key = [each for each in context.observed.jobs.values() if (each.stage, each.key) == (work.stage, work.key)]
    record = context.observed.records.get(record_name(work.stage, work.key))
    if record is not None:
        outcome = _recorded_run(context, work, record, jobs_of_key)
        return replace(outcome, effects=outcome.effects + needed)
    state = _observe(context, work, jobs_of_key, patience)
    facts = WorkFacts(
        recorded=_recorded_failure(context, state, repeats_for),
        job=_phase(context, state),
        reading=_reading_state(state),
        may_start=start
        and not (context.spec.suspend or context.observed.claim_terminates)
        # What serves may go on to need counters.
        and is_permitted(context),
    )
    fate, turn = next_fate(facts), context.observed.turn
    goes_on = fate is not Fate.RUNS or not measures(work) or turn.lets(state.name if state.job else "")
    outcome = (_ACTIONS[fate] if goes_on else _awaits_turn)(context, state)
    if facts.recorded is RecordedFailure.REPEATS:
        needed += Effects(missing=_still_missing(state))
    return _with_failure_record(state, replace(outcome, effects=outcome.effects + needed), repeats_for)


def _with_failure_record(state: _WorkState, outcome: Run[Any], repeats_for: float) -> Run[Any]:
    """Keep the record of a failure that passes by itself until there is a result: the next pause depends on it."""
    failure = outcome.effects.failures.get(state.name, state.before)
    if failure is None or not failure.since:
        return outcome
    effects = outcome.effects + Effects(failures={state.name: failure})
    return replace(outcome, effects=effects, failing=failure if _repeats_after(failure, repeats_for) else None)


def _recorded_run(context: Context, work: AnyWork, record: Record, jobs_of_key: Sequence[JobView]) -> Run[Any]:
    """Return the run of work whose result is recorded.

    No Job is built for it: to build the Jobs of all recorded work would take most of a pass.
    """
    result: Any = record.result
    # It was read by the type that its stage answers.
    assert isinstance(result, work.result)
    done_jobs = [each for each in jobs_of_key if each.ended or each.cut or each.record is not None]
    kept_jobs = frozenset(each.name for each in done_jobs if not (each.suspended or _overstays(context, each)))
    return Run(Effects(jobs=kept_jobs), record=record, result=result)


def _observe(context: Context, work: AnyWork, jobs_of_key: Sequence[JobView], patience: float | None) -> _WorkState:
    """Return all that is observed and recorded of work without a result. ``jobs_of_key``: the Jobs of its key."""
    observed = context.observed
    job_body = job(context, work)
    name = job_body["metadata"]["name"]
    job_view, recorded = observed.jobs.get(name), observed.failures.get(name)
    # Without another Job of the key, none reads; so no Job is built in vain.
    replays = isinstance(work.shape, Replay)
    is_cut = job_view is not None and job_view.cut
    may_read = not replays and (is_cut or any(each is not job_view for each in jobs_of_key))
    return _WorkState(
        body=job_body,
        name=name,
        job=job_view,
        recorded=None if recorded is None or (job_view is not None and job_view.uid != recorded.uid) else recorded,
        before=recorded if recorded is not None and recorded.retry == context.triton_deployment.retry else None,
        reading=_run_reader(context, work, job_view) if may_read else None,
        failure=(job_view.failure or _give_up_reason(context, job_view, patience)) if job_view is not None else None,
    )


def _repeats_after(failure: Failure, repeats_for: float) -> bool:
    """Whether the work is tried again after its last failure, which passes by itself if it has its times."""
    return bool(failure.at) and failed_seconds(failure, datetime.fromisoformat(failure.at)) < repeats_for


def _recorded_failure(context: Context, state: _WorkState, repeats_for: float) -> RecordedFailure:
    if state.recorded is None:
        return RecordedFailure.NOTHING
    is_asked_again = state.recorded.retry != context.triton_deployment.retry or awaits_input(state.recorded)
    is_due = _repeats_after(state.recorded, repeats_for) and seconds_until_due(state.recorded, context.now) <= 0
    return RecordedFailure.REPEATS if is_asked_again or is_due else RecordedFailure.STANDS


def _still_missing(state: _WorkState) -> Mapping[str, Failure]:
    """Return the failure if its next try is in vain before all results are forgotten; empty: it is not."""
    recorded = state.recorded
    if recorded is None or recorded.reason is not Reason.INPUT_MISSING or awaits_input(recorded):
        return {}
    return {state.name: replace(recorded, at=recorded.since)}


def _phase(context: Context, state: _WorkState) -> JobPhase:
    """Return how far the work's Job is; one that ended unseen goes on, because its pod may be to come."""
    if state.job is None:
        return JobPhase.ABSENT
    if is_unseen(context, state.job):
        return JobPhase.ACTIVE
    if state.failure is not None:
        return JobPhase.FAILED
    return JobPhase.ACTIVE if state.job.state == "Active" else JobPhase.ENDED


def _reading_state(state: _WorkState) -> Reading:
    if state.reading is None:
        return Reading.NONE
    return Reading.GOES_ON if state.reading.failure is None else Reading.FAILED


def _failed_before(context: Context, state: _WorkState) -> Run[Any]:
    assert state.recorded is not None
    return _failed_run(context, state, with_times(state.recorded, state.before, context.now), state.recorded.trouble)


def _makes_way(context: Context, state: _WorkState) -> Run[Any]:
    # Until the failed Job is gone, the record tells it from the next one.
    assert state.recorded is not None
    return Run(Effects(failures={state.name: state.recorded}), active=True)


def _reads(context: Context, state: _WorkState) -> Run[Any]:
    assert state.reading is not None
    return state.reading


def _unreadable(context: Context, state: _WorkState) -> Run[Any]:
    assert state.reading is not None
    assert state.reading.failure is not None
    return Run(Effects(failures=_failure_records(context, state, state.reading.failure)), failure=state.reading.failure)


def _awaits_turn(context: Context, state: _WorkState) -> Run[Any]:
    return Run(Effects(), pending=Trouble(Reason.QUEUED, context.observed.turn.waits_for))


def _runs(context: Context, state: _WorkState) -> Run[Any]:
    pending, since = (state.job.pending, state.job.runs_since) if state.job is not None else (None, None)
    effects = Effects((state.body,), jobs=frozenset({state.name}))
    return Run(effects, pending=pending, active=True, runs_since=since)


def _fails(context: Context, state: _WorkState) -> Run[Any]:
    assert state.failure is not None
    return _failed_run(context, state, _failure_records(context, state, state.failure)[state.name], state.failure)


def _repeats(context: Context, state: _WorkState) -> Run[Any]:
    # Its pod is gone with the answer, or it was suspended too often: without the Job another one starts, and replays an
    # answer from the claim.
    return Run(Effects(), pending=state.job.pending if state.job is not None else None, active=True)


_ACTIONS: Mapping[Fate, Callable[[Context, _WorkState], Run[Any]]] = {
    Fate.FAILED_BEFORE: _failed_before,
    Fate.MAKES_WAY: _makes_way,
    Fate.READS: _reads,
    Fate.UNREADABLE: _unreadable,
    Fate.WAITS: lambda context, state: Run(Effects()),
    Fate.RUNS: _runs,
    Fate.FAILS: _fails,
    Fate.REPEATS: _repeats,
}
"""The function that turns each fate into a run: what it asks of the cluster, and what it reports."""


def _failure_records(context: Context, state: _WorkState, failure: Trouble) -> Mapping[str, Failure]:
    """Return the record of a failure, by its name.

    The record has the retry annotation that the Job was made with. It may be written only after the user has read of
    the failure in the status and has asked for a retry, and that retry has to differ from the recorded one.
    """
    retry, uid = context.triton_deployment.retry, ""
    if state.job is not None:
        retry, uid = state.job.body["metadata"].get("annotations", {}).get(RETRY_ANNOTATION, ""), state.job.uid
    record = Failure(uid, failure.reason, failure.message, retry)
    return {state.name: with_times(record, state.before, context.now)}


def _failed_run(context: Context, state: _WorkState, record: Failure, failure: Trouble) -> Run[Any]:
    """Return a failure that is recorded. Its Job is kept, for its log, if it ended by itself."""
    stays = state.job is not None and state.job.ended and not _overstays(context, state.job)
    jobs = frozenset({state.name}) if stays else frozenset()
    return Run(Effects(jobs=jobs, failures={state.name: record}), failure=failure)


def _run_reader(context: Context, work: AnyWork, job_view: JobView | None) -> Run[Any] | None:
    """Run the Job that reads the work's answer from the claim; None: no such Job is needed.

    It is needed once the kubelet has cut the answer. Until the reading Job exists, the work's Job is kept, because it
    alone shows that the answer was cut. Afterwards a pod of it that goes on is not waited for, because it may hold the
    CPU or the quota that the reading Job needs.
    """
    reading_work = reader(work)
    reader_name = job(context, reading_work)["metadata"]["name"]
    is_created = reader_name in context.observed.jobs
    if not is_created and (job_view is None or not job_view.cut):
        return None
    # It disturbs no measurement, and the pod whose answer it reads may go on.
    outcome = _run(context, reading_work, True, None, 0.0)
    stays = job_view is not None and not (is_created and _overstays(context, job_view))
    kept_jobs = frozenset({job_view.name}) if job_view is not None and stays else frozenset()
    return replace(outcome, effects=outcome.effects + Effects(jobs=kept_jobs))


def is_unseen(context: Context, job: JobView) -> bool:
    """Whether the Job was seen to end just now and its pod was not: the two come over different watches."""
    return job.ended_unseen is not None and (context.now - job.ended_unseen).total_seconds() < UNSEEN_SECONDS


def waiting_reason(work: str, run: Run[Any], context: Context) -> tuple[Reason, str]:
    """Return the reason and the message of work that has neither a record nor a failure yet.

    ``work``: what the work is called in the message.
    """
    if run.pending is not None:
        return run.pending.reason, f"{run.pending.message}{_image_advice(context, run.pending)}"
    if not run.active and context.observed.claim_terminates:
        message = f"{work} starts once PersistentVolumeClaim {context.claim_name}, which is being deleted, is made anew"
        return Reason.CLAIM_TERMINATING, message
    if not run.active and context.spec.suspend:
        return Reason.SUSPENDED, f"{work} does not start, because spec.suspend is true"
    return Reason.RUNNING, f"{work} runs"


def next_try(context: Context, runs: Iterable[Run[Any]]) -> float | None:
    """Return the seconds until the operator tries the first of the failed runs again; None: it tries none again."""
    pauses = (seconds_until_due(each.failing, context.now) for each in runs if each.failing is not None)
    return min((each for each in pauses if each > 0), default=None)


def _image_advice(context: Context, pending: Trouble) -> str:
    """Return advice about the image of TensorFlow, which an installation may lack; empty: another image is missing."""
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
    """Whether containers of others have kept the Job's pod from ending for longer than `LINGER_SECONDS`."""
    since = job.lingers_since
    return since is not None and (context.now - since).total_seconds() > LINGER_SECONDS


def _give_up_reason(context: Context, job_view: JobView, patience: float | None) -> Trouble | None:
    """Return why a Job that goes on is given up: its pod does not end, or no node takes it; None: it is not."""
    if _overstays(context, job_view):
        return job_view.pending
    if patience is None or job_view.pending is None or job_view.unschedulable_since is None:
        return None
    if (context.now - job_view.unschedulable_since).total_seconds() <= patience:
        return None
    message = (
        f"{job_view.pending.message} Given up after {patience:g} s; once there is a node, type: {context.retry_command}"
    )
    return Trouble(job_view.pending.reason, message)
