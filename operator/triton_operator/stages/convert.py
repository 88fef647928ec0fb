"""Convert: one Job for each candidate, `parallelism` at a time, in the spec's order. A failure stops no other Job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_converters.contract.results import ConvertResult
from triton_converters.contract.text import shortened
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.candidate import Candidate, candidates_of
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.convert import work_and_damages
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.run import Run, next_try, run, waiting_reason
from triton_operator.observed.failures import Damage
from triton_operator.observed.trouble import Trouble
from triton_operator.resources.work import AnyWork, Work
from triton_operator.stages.progress import Round, or_spare
from triton_operator.stages.reference import Referred, rehearsal_refusal
from triton_operator.stages.repairing import repair_refusal
from triton_operator.stages.same_graph import skipped
from triton_operator.stages.skipping import candidate_refusal, missing_product, patience_seconds


def convert(context: Context, progress: Referred) -> Referred:
    """Go on once every candidate of the spec was converted or has failed, and at least one was converted.

    A failure that passes by itself is tried again only if no candidate was converted: otherwise the object goes on with
    those that were.
    """
    candidates = candidates_of(context.spec)
    round = conversion_round(context, progress.dump, candidates)
    if round.condition.reason is Reason.ALL_CANDIDATES_FAILED:
        round = conversion_round(context, progress.dump, candidates, repeats=True)
    return or_spare(context, progress.after_round(round))


@dataclass(frozen=True)
class _Conversion:
    """A candidate and its conversion."""

    candidate: Candidate
    work: Work[ConvertRequest, ConvertResult]
    damages: Mapping[str, Damage]
    """The damages of the revision under earlier keys, by these keys."""

    @property
    def files(self) -> frozenset[str]:
        """Keys of the model files, which other candidates of an ensemble may share."""
        return frozenset(member.conversion_key for member in self.work.request.members)


def conversion_round(context: Context, dump: Dump, candidates: Sequence[Candidate], *, repeats: bool = False) -> Round:
    """Return the candidates after their conversions, and the Jobs to run now. ``repeats``: as `run` takes it."""
    conversions = [_Conversion(each, *work_and_damages(context, dump, each)) for each in candidates]
    free_slots = context.spec.conversion.parallelism - sum(_is_active(context, each.work) for each in conversions)
    attempts, effects, runs = [], Effects(), []
    made_files = {key for each in conversions if _is_done(context, each.work) for key in each.files}
    files_in_work = {key for each in conversions if _is_active(context, each.work) for key in each.files} - made_files
    for each in conversions:
        if attempt := _attempt_without_job(context, dump, each):
            attempts.append(attempt)
            continue
        may_start = (
            free_slots > 0 and missing_product(context, each.candidate) is None and not each.files & files_in_work
        )
        job_run = run(context, each.work, may_start, patience_seconds(context, each.candidate), repeats)
        effects += job_run.effects
        runs.append(job_run)
        if job_run.active and not _is_active(context, each.work):
            free_slots -= 1
            files_in_work |= each.files - made_files
        attempts.append(_attempt(context, each, job_run))
    return Round(_condition(attempts), effects, tuple(attempts), next_try(context, runs))


def _attempt_without_job(context: Context, dump: Dump, conversion: _Conversion) -> Attempt | None:
    """Return the candidate in its last state if no Job is to convert it; None: one is."""
    attempt = Attempt(conversion.candidate)
    name, signature = conversion.candidate.name, dump.result.signature
    if refusal := candidate_refusal(context, conversion.candidate) or skipped(context, signature, name):
        return attempt.in_state("Skipped", refusal)
    if repairs_refused := repair_refusal(context, conversion.damages):
        return replace(attempt, key=conversion.work.key).in_state("Failed", repairs_refused)
    return None


def _attempt(context: Context, conversion: _Conversion, job_run: Run[ConvertResult]) -> Attempt:
    """Return the candidate in the state that its Job is in."""
    candidate = conversion.candidate
    cache = conversion.work.request.engine_cache
    attempt = Attempt(candidate, conversion.work.key, replaces=tuple(conversion.damages), engine_cache=cache)
    if job_run.result is not None:
        if refusal := rehearsal_refusal(context, job_run.result):
            return attempt.in_state("Failed", refusal)
        return replace(attempt, conversion=job_run.result).in_state("Converted")
    if job_run.failure is not None:
        is_skipped = job_run.failure.reason is Reason.UNSCHEDULABLE
        return attempt.in_state("Skipped" if is_skipped else "Failed", _with_advice(context, job_run.failure))
    if not job_run.active and (product_trouble := missing_product(context, candidate)):
        return attempt.in_state("Skipped", product_trouble)
    trouble = Trouble(*waiting_reason(f"the conversion of candidate {candidate.name}", job_run, context))
    return attempt.in_state("Converting" if job_run.active else "Pending", trouble)


def _with_advice(context: Context, failure: Trouble) -> Trouble:
    """Return the failure; one of an image without TensorRT also says how to set the image that has it."""
    if failure.reason is not Reason.TENSOR_RT_UNAVAILABLE or context.framework_image != context.images.converter:
        return failure
    next_step = "then change spec.source.version, because an object keeps its images"
    value = "the Helm value images.converterGpu"
    advice = (
        f"or use the image of {value}: for that, change spec.source.version, because an object keeps its images"
        if context.settings.converter_gpu_image
        else f"or ask the administrator who installed the operator to set {value}, and {next_step}"
    )
    return Trouble(failure.reason, f"{failure.message}; {advice}")


def _is_done(context: Context, work: AnyWork) -> bool:
    return record_name(work.stage, work.key) in context.observed.records


def _is_active(context: Context, work: AnyWork) -> bool:
    """Whether a Job for the work exists that has not ended."""
    return any(job.stage == work.stage and job.key == work.key and job.active for job in context.observed.jobs.values())


def _condition(attempts: list[Attempt]) -> Statement:
    """Return the condition Converted: which candidates are being converted, that none was, or which were."""
    failed = [attempt for attempt in attempts if attempt.state in ("Failed", "Skipped")]
    unfinished = [attempt for attempt in attempts if attempt.state in ("Pending", "Converting")]
    if unfinished:
        finished_count = len(attempts) - len(unfinished)
        trouble = next((each for each in unfinished if each.reason not in (Reason.RUNNING, None)), unfinished[0])
        running_names = ", ".join(each.name for each in unfinished if each.state == "Converting")
        is_running = trouble.reason in (Reason.RUNNING, None)
        message = (
            f"{finished_count} of {len(attempts)} candidates are done; converting {running_names}"
            if is_running
            else trouble.message
        )
        return Statement("Converted", False, trouble.reason or Reason.RUNNING, message)
    if len(failed) == len(attempts):
        reasons = "; ".join(f"{each.name}: {each.reason}: {shortened(each.message, 200)}" for each in failed)
        return Statement("Converted", False, Reason.ALL_CANDIDATES_FAILED, f"no candidate was converted: {reasons}")
    message = f"{len(attempts) - len(failed)} of {len(attempts)} candidates were converted"
    if failed:
        message += f"; not converted: {', '.join(f'{each.name} ({each.reason})' for each in failed)}"
    return Statement("Converted", True, Reason.CONVERTED, message)
