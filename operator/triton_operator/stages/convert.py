"""Convert: one Job for each candidate, `parallelism` at a time, in the spec's order. A failure stops no other Job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_converters.contract.results import ConvertResult
from triton_converters.contract.text import shortened
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.combination import Combination, combinations
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.convert import work_and_damages
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.run import Run, next_try, run, waiting_reason
from triton_operator.observed.failures import Damage
from triton_operator.observed.trouble import Trouble
from triton_operator.resources.work import AnyWork, Work
from triton_operator.stages.progress import Round
from triton_operator.stages.reference import Referred, rehearsal_refusal
from triton_operator.stages.repairing import repair_refusal
from triton_operator.stages.skipping import candidate_refusal, missing_product, patience_seconds


def convert(context: Context, progress: Referred) -> Referred:
    """Go on once every candidate of the spec was converted or has failed, and one was converted.

    What passes by itself is tried again only if no candidate is left: another one is then no reason to wait.
    """
    candidates = combinations(context.spec)
    found = conversion_round(context, progress.dump, candidates)
    if found.condition.reason is Reason.ALL_CANDIDATES_FAILED:
        found = conversion_round(context, progress.dump, candidates, repeats=True)
    return progress.after_round(found)


@dataclass(frozen=True)
class _Conversion:
    """A candidate and its conversion."""

    candidate: Combination
    work: Work[ConvertRequest, ConvertResult]
    damages: Mapping[str, Damage]
    """What became of the revision under earlier keys."""

    @property
    def files(self) -> frozenset[str]:
        """Keys of the files that other candidates of an ensemble may share."""
        return frozenset(member.conversion_key for member in self.work.request.members)


def conversion_round(
    context: Context, dump: Dump, candidates: Sequence[Combination], *, repeats: bool = False
) -> Round:
    """Return what became of the candidates' conversions. ``repeats``: as `run` takes it."""
    every = [_Conversion(each, *work_and_damages(context, dump, each)) for each in candidates]
    free = context.spec.conversion.parallelism - sum(_is_active(context, each.work) for each in every)
    attempts, effects, tries = [], Effects(), []
    # The files that exist, and those that a running Job makes.
    made = {key for each in every if _is_done(context, each.work) for key in each.files}
    making = {key for each in every if _is_active(context, each.work) for key in each.files} - made
    for each in every:
        if barred := _attempt_without_job(context, each):
            attempts.append(barred)
            continue
        may_start = free > 0 and missing_product(context, each.candidate) is None and not each.files & making
        this = run(context, each.work, may_start, patience_seconds(context, each.candidate), repeats)
        effects += this.effects
        tries.append(this)
        if this.active and not _is_active(context, each.work):
            free -= 1
            making |= each.files - made
        attempts.append(_attempt(context, each, this))
    return Round(_condition(attempts), effects, tuple(attempts), next_try(context, tries))


def _attempt_without_job(context: Context, conversion: _Conversion) -> Attempt | None:
    """Return the candidate if it is not tried; None if it is."""
    attempt = Attempt(conversion.candidate)
    if refusal := candidate_refusal(context, conversion.candidate):
        return attempt.in_state("Skipped", refusal)
    if lost := repair_refusal(context, conversion.damages):
        return replace(attempt, key=conversion.work.key).in_state("Failed", lost)
    return None


def _attempt(context: Context, conversion: _Conversion, this: Run[ConvertResult]) -> Attempt:
    """Return the candidate as its Job left it."""
    candidate, cache = conversion.candidate, conversion.work.request.engine_cache
    attempt = Attempt(candidate, conversion.work.key, replaces=tuple(conversion.damages), engine_cache=cache)
    if this.result is not None:
        if refusal := rehearsal_refusal(context, this.result):
            return attempt.in_state("Failed", refusal)
        return replace(attempt, conversion=this.result).in_state("Converted")
    if this.failure is not None:
        is_skipped = this.failure.reason is Reason.UNSCHEDULABLE
        return attempt.in_state("Skipped" if is_skipped else "Failed", _with_advice(context, this.failure))
    if not this.active and (absent := missing_product(context, candidate)):
        return attempt.in_state("Skipped", absent)
    trouble = Trouble(*waiting_reason(f"the conversion of candidate {candidate.name}", this, context))
    return attempt.in_state("Converting" if this.active else "Pending", trouble)


def _with_advice(context: Context, failure: Trouble) -> Trouble:
    """The failure; if the image for CPUs built no engine, with the installation's value for one that has TensorRT."""
    if failure.reason is not Reason.TENSORRT_UNAVAILABLE or context.framework_image != context.images.converter:
        return failure
    again = "then change spec.source.version, because an object keeps its images"
    value = "the Helm value images.converterGpu"
    advice = (
        f"or use the image of {value}: for that, change spec.source.version, because an object keeps its images"
        if context.settings.converter_gpu_image
        else f"or ask the administrator who installed the operator to set {value}, and {again}"
    )
    return Trouble(failure.reason, f"{failure.message}; {advice}")


def _is_done(context: Context, work: AnyWork) -> bool:
    return record_name(work.stage, work.key) in context.observed.records


def _is_active(context: Context, work: AnyWork) -> bool:
    """Whether a Job for the work exists that has not ended."""
    return any(job.stage == work.stage and job.key == work.key and job.active for job in context.observed.jobs.values())


def _condition(attempts: list[Attempt]) -> Statement:
    """Return the condition Converted: what is still converted, that none was, or which were."""
    failed = [attempt for attempt in attempts if attempt.state in ("Failed", "Skipped")]
    waiting_for = [attempt for attempt in attempts if attempt.state in ("Pending", "Converting")]
    if waiting_for:
        done = len(attempts) - len(waiting_for)
        trouble = next((each for each in waiting_for if each.reason not in (Reason.RUNNING, None)), waiting_for[0])
        names_ = ", ".join(each.name for each in waiting_for if each.state == "Converting")
        running = trouble.reason in (Reason.RUNNING, None)
        message = f"{done} of {len(attempts)} candidates are done; converting {names_}" if running else trouble.message
        return Statement("Converted", False, trouble.reason or Reason.RUNNING, message)
    if len(failed) == len(attempts):
        reasons = "; ".join(f"{each.name}: {each.reason}: {shortened(each.message, 200)}" for each in failed)
        return Statement("Converted", False, Reason.ALL_CANDIDATES_FAILED, f"no candidate was converted: {reasons}")
    message = f"{len(attempts) - len(failed)} of {len(attempts)} candidates were converted"
    if failed:
        message += f"; not converted: {', '.join(f'{each.name} ({each.reason})' for each in failed)}"
    return Statement("Converted", True, Reason.CONVERTED, message)
