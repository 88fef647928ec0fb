"""Profile: one Job for each converted candidate, one at a time. Its pod holds a private tritonserver and a client.

Then, if the spec has metrics, one Job computes those of all candidates that passed, and they are judged here. That Job
knows no bounds, so an edit of a threshold computes nothing again.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from triton_converters.contract.accuracy import judge
from triton_converters.contract.reasons import Reason, known_reason
from triton_converters.contract.results import MetricsResult, ProfileResult
from triton_converters.contract.text import shortened
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.metrics import metrics_work
from triton_operator.jobs.profile import profile_work
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.run import Run, next_try, run, waiting_reason
from triton_operator.observed.trouble import Trouble
from triton_operator.stages.progress import Round
from triton_operator.stages.reference import Referred
from triton_operator.stages.repairing import record_damage


def profile(context: Context, progress: Referred) -> Referred:
    """Go on once every converted candidate was profiled and its metrics are computed, and one passed the gates.

    What passes by itself is tried again only if no candidate is left, as in `convert`.
    """
    found = profile_round(context, progress.dump, progress.attempts)
    if found.condition.reason is Reason.ALL_CANDIDATES_FAILED:
        found = profile_round(context, progress.dump, progress.attempts, repeats=True)
    return progress.after_round(found)


def profile_round(context: Context, dump: Dump, converted: Sequence[Attempt], *, repeats: bool = False) -> Round:
    """Return what became of the candidates' profiles and metrics. ``repeats``: as `run` takes it.

    One Job at a time, and none while another runs: candidates must not disturb each other's figures.
    """
    attempts, effects, tries = [], Effects(), list[Run[Any]]()
    busy = is_measuring(context)
    for attempt in converted:
        if attempt.state != "Converted":
            attempts.append(attempt)
            continue
        work = profile_work(context, dump, attempt)
        this = run(context, work, start=not busy, repeats=repeats)
        effects += this.effects
        tries.append(this)
        busy = busy or this.active
        if this.result is not None:
            known = replace(attempt, profile=this.result, profile_key=work.key, image_id=this.image_id)
            attempts.append(_after_gates(context, known, this.result))
        elif this.failure is not None and this.failure.reason is Reason.REPOSITORY_DAMAGED:
            effects += record_damage(context, attempt.key, this.failure)
            attempts.append(attempt.in_state("Converted", this.failure))
        elif this.failure is not None:
            attempts.append(attempt.in_state("Failed", this.failure))
        elif this.active or context.spec.suspend:
            reason, words = waiting_reason(f"the profile of candidate {attempt.name}", this, context)
            attempts.append(attempt.in_state("Profiling" if this.active else "Converted", Trouble(reason, words)))
        else:
            attempts.append(
                attempt.in_state("Converted", Trouble(Reason.WAITING, "the candidate waits to be profiled"))
            )
    if not _awaiting_profile(attempts):
        attempts, metrics = _with_metrics(context, dump, attempts, repeats)
        if metrics is not None:
            effects += metrics.effects
            tries.append(metrics)
    return Round(_condition(context, dump, attempts), effects, tuple(attempts), next_try(context, tries))


def is_measuring(context: Context) -> bool:
    """Whether a private server is being measured, for any candidate or generation of the object.

    A pod that goes on after its measurement counts too: its server has the GPU, or memory that the next one would use.
    """
    private = [job for job in context.observed.jobs.values() if job.stage in ("profile", "search")]
    return any(job.active or job.lingers_since is not None for job in private)


def _after_gates(context: Context, attempt: Attempt, result: ProfileResult) -> Attempt:
    if result.passed and context.spec.metrics is not None:
        return attempt.in_state("Profiled", Trouble(Reason.WAITING, "the candidate waits for its metrics"))
    trouble = Trouble(known_reason(result.reason) or Reason.CRASHED, result.message)
    return attempt.in_state("Passed" if result.passed else "Failed", trouble)


def _with_metrics(
    context: Context, dump: Dump, attempts: Sequence[Attempt], repeats: bool
) -> tuple[list[Attempt], Run[MetricsResult] | None]:
    """What becomes of the candidates that wait for their metrics, and of the Job that computes them; None: none does.

    ``repeats``: as `run` takes it.
    """
    waits = [each for each in attempts if each.state == "Profiled"]
    if not waits:
        return list(attempts), None
    work = metrics_work(context, dump, waits)
    this = run(context, work, repeats=repeats)
    words = f"the Job that computes the metrics of {', '.join(each.name for each in waits)}"

    def reached(attempt: Attempt) -> Attempt:
        if this.result is not None:
            return _after_accuracy_gate(context, attempt, work.key, this.result)
        if this.failure is not None:
            return attempt.in_state("Failed", this.failure)
        return attempt.in_state("Profiled", Trouble(*waiting_reason(words, this, context)))

    return [reached(each) if each.state == "Profiled" else each for each in attempts], this


def _after_accuracy_gate(context: Context, attempt: Attempt, key: str, result: MetricsResult) -> Attempt:
    """The candidate after the accuracy gate."""
    found = judge(result, attempt.profile_key, [each.asked() for each in context.spec.accuracy.thresholds])
    judged = replace(attempt, accuracy=found.accuracy, metrics_key=key)
    passed = found.reason is Reason.PASSED
    assert attempt.profile is not None
    message = attempt.profile.message if passed else found.message
    return judged.in_state("Passed" if passed else "Failed", Trouble(found.reason, message))


def _awaiting_profile(attempts: Sequence[Attempt]) -> list[Attempt]:
    return [each for each in attempts if each.state in ("Converted", "Profiling")]


def _condition(context: Context, dump: Dump, attempts: Sequence[Attempt]) -> Statement:
    """Return the condition Verified: what is still measured, that none passed, or which did and by what proof."""
    busy = _awaiting_profile(attempts)
    passed = [each.name for each in attempts if each.passed]
    if busy:
        current = next((each for each in busy if each.state == "Profiling"), busy[0])
        if current.reason not in (Reason.RUNNING, Reason.WAITING, None):
            return Statement("Verified", False, current.reason, current.message)
        rest = f"then {len(busy) - 1} more" if len(busy) > 1 else "the last one"
        message = f"profiling candidate {current.name}, {rest}"
        return Statement("Verified", False, Reason.RUNNING, message)
    if waits := [each for each in attempts if each.state == "Profiled"]:
        return Statement("Verified", False, waits[0].reason or Reason.RUNNING, waits[0].message)
    if not passed:
        reasons = "; ".join(f"{each.name}: {each.reason}: {shortened(each.message, 300)}" for each in attempts)
        return Statement("Verified", False, Reason.ALL_CANDIDATES_FAILED, f"no candidate passed the gates: {reasons}")
    message = f"{len(passed)} of {len(attempts)} candidates passed every gate: {', '.join(passed)}"
    if context.spec.dataloader is None:
        unjudged = "accuracy was not judged: for that, set spec.dataloader, spec.metrics and accuracy.thresholds"
        words = "; ".join([message, *dump.result.warnings, unjudged])
        return Statement("Verified", True, Reason.GENERATED_INPUTS, words)
    if not context.spec.accuracy.thresholds:
        return Statement("Verified", True, Reason.NUMERICAL_ONLY, f"{message}; no accuracy threshold is set")
    return Statement("Verified", True, Reason.VERIFIED, message)
