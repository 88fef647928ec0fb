"""Trial: judge a new revision by its first requests, and go back to the other one if it does worse. Pure.

A canary gives a measured revision a share of the route's requests, step by step, before it is active. A soak judges it
once it is, while the previous one still runs. Both are one machine (`trial_decision.py`): each is recorded before its
first request, by the name of the new revision's Deployment, because nothing else shows afterwards which revision was
active before. When a canary ends without the Service's move, the share ends first; its pods, and the preview Service
that points to them, stay until no gateway can send them a request any more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from triton_converters.contract.reasons import Reason
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.run import Run
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.server import ServerView
from triton_operator.resources.deployment import scaled
from triton_operator.rollout import trial_times, wording
from triton_operator.rollout.decision import Sharing
from triton_operator.rollout.moves import keep_deployment, spec_digest
from triton_operator.rollout.room import makes_way
from triton_operator.rollout.traffic import SoakVerdict
from triton_operator.rollout.trial_decision import (
    GOES_ON,
    TrialFacts,
    TrialMove,
    TrialStage,
    TrialVerdict,
    first_verdict,
    next_trial,
)
from triton_operator.rollout.trial_times import due_time
from triton_operator.rollout.verdicts import first_reading, move_record, own_reading, restart_verdict, traffic_verdict


@dataclass(frozen=True)
class Trial:
    """The soak of the active revision, or the canary of another one, after this pass."""

    condition: Statement | None = None
    """The condition Soaked; None: there is no trial, or a canary is over and the Service may move."""
    effects: Effects = field(default_factory=Effects)
    goes_on: bool = False
    undoes: bool = False
    """Whether the active revision failed, so that the Service moves back once the previous one answers."""
    back_to: str | None = None
    """Name of the Deployment that the Service moves back to; None: it does not move yet, or not at all."""
    share: int = 0
    """Percent of the route's requests for the preview Service."""
    holds: str | None = None
    """Name of the Deployment to which the preview Service still has to point, because its canary ended a moment ago."""
    again_after: float | None = None
    """Seconds until time alone changes the trial; None: time alone does not."""


@dataclass(frozen=True)
class ObservedTrial:
    """A trial with everything observed about it."""

    facts: TrialFacts
    by_route: bool
    """Whether the trial is a canary."""
    tried: ServerView | None = None
    """The Deployment on trial; None: there is none, or somebody deleted it."""
    other: ServerView | None = None
    """The Deployment that it is compared with: the active one, or the one that was active before; None: it is gone."""
    record: Promotion | None = None
    """The record of the trial; None: it has not begun."""
    verdict: SoakVerdict | None = None
    """The verdict on a soak or a step by what was found so far; None: there is none yet."""
    effects: Effects = field(default_factory=Effects)
    """What is asked of the cluster: Jobs that read counters, and records to write."""
    patience: float = inf
    """Seconds for which counters are still waited for; infinite: for no Job that runs."""

    @property
    def sharing(self) -> Sharing:
        """What comes next for a canary, if the target may share requests."""
        move = next_trial(self.facts)
        return Sharing.GOES_ON if move in GOES_ON else Sharing.FAILED if move is TrialMove.UNDO else Sharing.NONE

    @property
    def promotion(self) -> Promotion:
        """The record of a trial that has begun."""
        assert self.record is not None
        return self.record

    @property
    def judgement(self) -> SoakVerdict:
        """The verdict on a trial that has one."""
        assert self.verdict is not None
        return self.verdict

    def recorded(self, record: Promotion) -> "ObservedTrial":
        """Return the trial with another record, which is to be written."""
        return replace(self, record=record, effects=self.effects + Effects(promotions={record.server: record}))


def soak(context: Context, successor: str = "") -> Trial:
    """Go on with the soak of the active revision.

    ``successor``: name of the Deployment of a third revision that starts, which ends the soak; empty: none starts.
    """
    return advance(context, _observe_soak(context, successor))


def skip(context: Context) -> Trial:
    """Soak no revision that the spec names. Its counters are read, for the comparison with the revision after it."""
    active = context.observed.servers.get(context.active_server or "")
    if context.spec.serving.soak is None:
        return Trial()
    return Trial(wording.served_before_condition(), own_reading(context, active).effects if active else Effects())


def advance(context: Context, trial: ObservedTrial) -> Trial:
    """Go on with a trial; a canary is one of a target that may share requests."""
    return _ACTIONS[next_trial(trial.facts)](context, trial)


def _observe_soak(context: Context, successor: str) -> ObservedTrial:
    """Return what is observed of the soak of the active revision."""
    servers = context.observed.servers
    is_asked = context.spec.serving.soak is not None
    active = servers.get(context.active_server or "")
    record = move_record(context, context.active_server)
    other = servers.get(record.previous) if record is not None else _other_of_lost_record(context, successor)
    is_restored = record is not None and active is not None and record.uid != active.uid
    if not is_asked or record is None or record.reason is not None:
        stage = TrialStage.BEFORE if record is None else TrialStage.OVER
        facts = TrialFacts(is_asked, stage, may_begin=active is not None and other is not None)
        effects = own_reading(context, active).effects if is_asked and active is not None else Effects()
        observed = ObservedTrial(facts, False, active, other, record, effects=effects)
    else:
        early_end = _early_end(context, active, other, record, successor)
        observed = _observe_running(context, active, other, record, early_end, is_restored=is_restored)
    if is_restored and active is not None:
        observed = observed.recorded(replace(observed.promotion, uid=active.uid))
    return observed


def observe_canary(context: Context, target: ServerView, is_ready: bool) -> ObservedTrial:
    """Return what is observed of the target's canary.

    ``is_ready``: whether the target's server is ready, so that the canary may begin.
    """
    active = context.observed.servers.get(context.active_server or "")
    record = context.observed.promotions.get(target.name)
    if record is not None and (record.uid, record.previous, record.reason) != (target.uid, context.active_server, None):
        record = None
    # What is active and was deleted is made again, and answers nothing until then.
    ends = context.active_server is None or makes_way(context, target)
    stage = TrialStage.BEFORE if record is None else TrialStage.RUNS
    if record is not None and (not record.by_route or len(record.steps) >= len(_steps(context))):
        # The record may say already that the Service moves, before it does.
        stage = TrialStage.OVER
    if record is None or stage is TrialStage.OVER or ends or not _is_possible(context):
        may_begin = is_ready and not ends
        facts = TrialFacts(_is_possible(context), stage, may_begin=may_begin, ends=ends)
        return ObservedTrial(facts, True, target, active, record)
    return _observe_running(context, target, active, record)


def _observe_running(
    context: Context,
    tried: ServerView | None,
    other: ServerView | None,
    record: Promotion,
    early_end: SoakVerdict | None = None,
    *,
    is_restored: bool = False,
) -> ObservedTrial:
    """Return what is observed of a trial that goes on. ``early_end``: the verdict if it ends early; else None."""
    active, idle = (other, tried) if record.by_route else (tried, other)
    renewed = trial_times.with_present_clock(context, record)
    first = first_reading(context, tried, other, renewed) if tried is not None and other is not None else Run(Effects())
    renewed = trial_times.with_outage(context, renewed, answers=active is not None and active.answers)
    renewed = trial_times.with_first_reading(context, renewed, first.finished_at)
    effects, patience, verdict = first.effects, inf, None
    is_outage = idle is not None and idle.answers and trial_times.is_down_for_long(context, renewed)
    # Once the active revision is down, the one on trial takes its place, whatever was found of it.
    takes_over = is_outage and record.by_route
    if not takes_over:
        restart = restart_verdict(tried, other, record) if tried is not None else None
        outage = wording.outage_verdict(context, active) if is_outage else None
        verdict = first_verdict(restart, early_end, outage) or _waived_verdict(context, record)
        if verdict is None and tried is not None and other is not None:
            verdict, more, patience = traffic_verdict(context, tried, other, renewed, first)
            effects += more
    facts = TrialFacts(
        enabled=True,
        stage=TrialStage.RUNS,
        ends=takes_over or early_end is not None,
        restored=is_restored,
        verdict=TrialVerdict.of(verdict),
        policy=context.spec.rollout.on_inconclusive,
        answers=tried is not None and tried.answers,
    )
    observed = ObservedTrial(facts, record.by_route, tried, other, record, verdict, effects, patience)
    return observed.recorded(renewed) if renewed != record else observed


def _waived_verdict(context: Context, record: Promotion) -> SoakVerdict | None:
    """Return the last verdict on a held revision if the spec no longer asks to hold it; else None."""
    if not record.held_since or context.spec.rollout.on_inconclusive == "Hold" or context.spec.suspend:
        return None
    return SoakVerdict(Reason.SOAK_INCONCLUSIVE, record.message)


def _early_end(
    context: Context, active: ServerView | None, previous: ServerView | None, record: Promotion, successor: str
) -> SoakVerdict | None:
    """Return the verdict on a soak that ends before its time; None: it does not."""
    # A third revision takes minutes to start, and nothing but the previous one answers until then.
    if successor and ((active is not None and active.answers) or previous is None or not previous.answers):
        return wording.early_verdict(f"Deployment {successor} starts with another revision")
    if previous is None:
        return wording.early_verdict(f"Deployment {record.previous}, which was active before, is gone")
    return wording.early_verdict("spec.serving.replicas is 0") if context.spec.serving.replicas == 0 else None


def _other_of_lost_record(context: Context, successor: str) -> ServerView | None:
    """Return the Deployment that was active before a soak whose record was lost; None: no status tells of one."""
    status = context.triton_deployment.status
    names = {context.active_server, successor}
    is_soaked = any(
        each.type == "Soaked" and each.reason in (Reason.SOAKING, Reason.ROLLOUT_HELD) for each in status.conditions
    )
    others = [each for each in context.observed.servers.values() if each.name not in names]
    # A canary that is held has a target.
    is_lost = context.observed.active_record is None and is_soaked and status.target is None
    return others[0] if is_lost and len(others) == 1 else None


def _steps(context: Context) -> Sequence[int]:
    """Return the shares of the spec's steps, in percent; none if it has no route."""
    route = context.spec.serving.route
    return route.canary if route is not None else ()


def _share(context: Context, record: Promotion) -> int:
    """Return the percent of the requests that the present step gives. That of the last step stays until the move."""
    steps = _steps(context)
    return steps[min(len(record.steps), len(steps) - 1)]


def _is_possible(context: Context) -> bool:
    """Whether the spec asks for steps and for what judges them, and the cluster leads requests to a pod."""
    is_asked_for = bool(_steps(context)) and context.spec.serving.soak is not None
    return is_asked_for and context.observed.has_gateway_api and context.spec.serving.replicas > 0


def _none(context: Context, trial: ObservedTrial) -> Trial:
    return Trial()


def _await(context: Context, trial: ObservedTrial) -> Trial:
    if trial.by_route:
        return Trial()
    is_alone = context.active_server is None
    condition = wording.no_revision_condition("Soaked") if is_alone else wording.not_recorded_condition()
    return Trial(condition, trial.effects)


def _begin(context: Context, trial: ObservedTrial) -> Trial:
    tried = trial.tried
    now = context.now.isoformat()
    previous = trial.other.name if trial.other is not None else context.active_server
    assert tried is not None
    assert previous is not None
    record = Promotion(tried.revision_key, tried.name, tried.uid, previous, now, now, trial.by_route)
    # In this pass only the record is written. A Job that is made before it would have another key in the next pass, and
    # a share without a record would end without its pods being kept for the last requests.
    return replace(_go_on(context, trial.recorded(record)), share=0)


def _go_on(context: Context, trial: ObservedTrial) -> Trial:
    """Return the soak, or the canary at its present step with its share. The previous revision keeps its pods."""
    record = trial.promotion
    answers = trial.facts.answers
    end = due_time(context, trial.promotion)
    reason = trial_times.reason_of(context, record)
    if record.by_route:
        condition = wording.canary_condition(context, reason, record, _steps(context), end, answers)
    else:
        condition = wording.soaking_condition(context, reason, record, end)
    return Trial(
        condition,
        trial.effects + keep_deployment(context, None if record.by_route else trial.other),
        goes_on=True,
        # Without a pod that is ready, its requests would fail.
        share=_share(context, record) if record.by_route and answers else 0,
        again_after=trial_times.again_after(context, record, trial.patience),
    )


def _pass(context: Context, trial: ObservedTrial) -> Trial:
    record = trial.promotion
    if not record.by_route:
        return _end(context, trial)
    now = context.now.isoformat()
    words = wording.step_message(_share(context, record), trial.judgement)
    passed = replace(record, at=now, steps=(*record.steps, words))
    if record.again_at:
        # The requests since the last reading of such a step came with that step's share, so they do not count for the
        # next.
        passed = replace(passed, since=now, message="", held_since="", again_at="")
    return _go_on(context, trial.recorded(passed))


def _hold(context: Context, trial: ObservedTrial) -> Trial:
    return _go_on(context, trial.recorded(trial_times.held(context, trial.promotion, trial.judgement.message)))


def _begin_anew(context: Context, trial: ObservedTrial) -> Trial:
    record = trial.promotion
    if trial.verdict is not None:
        record = trial_times.held(context, record, trial.verdict.message)
    return _go_on(context, trial.recorded(trial_times.begun_anew(context, record)))


def _undo(context: Context, trial: ObservedTrial) -> Trial:
    record = trial.promotion
    verdict = wording.undo_verdict(trial.judgement)
    if not record.by_route:
        return _end(context, replace(trial, verdict=verdict))
    message = wording.canary_failed_message(context, record, _share(context, record), verdict)
    failed = _failed(context, replace(record, at=context.now.isoformat()), message)
    return Trial(
        Statement("Soaked", False, Reason.SOAK_FAILED, message),
        trial.recorded(failed).effects + keep_deployment(context, trial.tried),
        holds=record.server,
        again_after=trial_times.RELEASE_SECONDS,
    )


def _failed(context: Context, record: Promotion, message: str) -> Promotion:
    return replace(record, reason=Reason.SOAK_FAILED, message=message, intent=spec_digest(context))


def _end(context: Context, trial: ObservedTrial) -> Trial:
    """Return a soak with the verdict that it gets in this pass, or a canary with the share that it had."""
    record = trial.promotion
    if record.by_route:
        return _stand(context, trial)
    verdict = trial.judgement
    if verdict.reason is Reason.SOAK_FAILED and trial.other is not None:
        judged = _failed(context, record, wording.soak_failed_message(context, record, verdict))
    elif verdict.reason is Reason.SOAK_PASSED:
        message = wording.soak_passed_message(record, verdict)
        judged = replace(record, before=None, reason=verdict.reason, message=message)
    else:
        message = wording.soak_inconclusive_message(record, verdict)
        judged = replace(record, before=None, reason=Reason.SOAK_INCONCLUSIVE, message=message)
    return _stand(context, trial.recorded(judged))


def _stand(context: Context, trial: ObservedTrial) -> Trial:
    """Return a soak by its recorded verdict, or a canary with the share that it had.

    If a soak failed, the Service moves back, also if the pass that judged ended before it could move it. The previous
    revision is kept until it answers, with as many replicas as it then needs.
    """
    record, previous, effects = trial.promotion, trial.other, trial.effects
    if trial.by_route:
        route = context.observed.http_route
        answers = trial.tried is not None and trial.tried.answers
        share = route.share if route is not None and answers else 0
        look = trial_times.LOOK_SECONDS if record.down_since else None
        return Trial(effects=effects, share=share, again_after=look)
    assert record.reason is not None
    status = {Reason.SOAK_PASSED: True, Reason.SOAK_INCONCLUSIVE: None}.get(record.reason, False)
    if record.reason is not Reason.SOAK_FAILED:
        return Trial(Statement("Soaked", status, record.reason, record.message), effects)
    if previous is None:
        return Trial(wording.not_undone_condition(record, None), effects)
    body = scaled(context, previous, context.spec.serving.replicas)
    effects += Effects((body,)) if body is not None else Effects()
    if not previous.answers:
        return Trial(wording.not_undone_condition(record, previous), effects, undoes=True)
    return Trial(wording.undone_condition(record), effects, undoes=True, back_to=record.previous)


_ACTIONS: Mapping[TrialMove, Callable[[Context, ObservedTrial], Trial]] = {
    TrialMove.NONE: _none,
    TrialMove.AWAIT: _await,
    TrialMove.BEGIN: _begin,
    TrialMove.STAND: _stand,
    TrialMove.END: _end,
    TrialMove.GO_ON: _go_on,
    TrialMove.PASS: _pass,
    TrialMove.UNDO: _undo,
    TrialMove.HOLD: _hold,
    TrialMove.BEGIN_ANEW: _begin_anew,
}
"""The function that carries out each move: what it asks of the cluster, and what it reports."""
