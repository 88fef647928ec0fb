"""Convert: one Job for each candidate, `parallelism` at a time, in the spec's order. A failure stops no other Job."""

from collections.abc import Sequence
from dataclasses import replace

from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_converters.contract.results import ConvertResult
from triton_converters.contract.text import shortened
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.combination import Combination, combinations
from triton_operator.context import Context
from triton_operator.effects import Effects, Verdict
from triton_operator.jobs.convert import work_and_damages
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.run import run, waiting
from triton_operator.observed.trouble import Trouble
from triton_operator.resources.work import Work
from triton_operator.stages.progress import Round
from triton_operator.stages.reference import Referred, rehearsal_refused
from triton_operator.stages.repairing import given_up
from triton_operator.stages.skipping import no_product, patience, refused


def convert(context: Context, progress: Referred) -> Referred:
    """Go on once every candidate of the spec was converted or has failed, and one was converted."""
    return progress.after(converted(context, progress.dump, combinations(context.spec)))


def converted(context: Context, dump: Dump, candidates: Sequence[Combination]) -> Round:
    """Return what became of the candidates' conversions."""
    pairs = [work_and_damages(context, dump, candidate) for candidate in candidates]
    works = [work for work, _ in pairs]
    free = context.spec.conversion.parallelism - sum(_is_active(context, work) for work in works)
    attempts, effects = [], Effects()
    # Keys of the files that candidates of an ensemble share: `made` exist, `making` are being made by a running Job.
    made = {key for work in works if _is_done(context, work) for key in _files(work)}
    making = {key for work in works if _is_active(context, work) for key in _files(work)} - made
    for candidate, (work, damages) in zip(candidates, pairs, strict=True):
        if refusal := refused(context, candidate):
            attempts.append(Attempt(candidate).now("Skipped", refusal))
            continue
        if lost := given_up(context, damages):
            attempts.append(Attempt(candidate, work.key).now("Failed", lost))
            continue
        active, absent = _is_active(context, work), no_product(context, candidate)
        shared = bool(_files(work) & making)
        start = free > 0 and absent is None and not shared
        this = run(context, work, start=start, patience=patience(context, candidate))
        effects += this.effects
        if this.active and not active:
            free -= 1
            making |= _files(work) - made
        assert isinstance(work.request, ConvertRequest)
        attempt = Attempt(candidate, work.key, replaces=tuple(damages), engine_cache=work.request.engine_cache)
        if this.record is not None:
            result = this.record.outcome.result
            assert isinstance(result, ConvertResult)
            if refusal := rehearsal_refused(context, result):
                attempts.append(attempt.now("Failed", refusal))
            else:
                attempts.append(replace(attempt, conversion=result).now("Converted"))
        elif this.failure is not None:
            skipped = this.failure.reason is Reason.UNSCHEDULABLE
            attempts.append(attempt.now("Skipped" if skipped else "Failed", _advised(context, this.failure)))
        elif absent is not None and not this.active:
            attempts.append(attempt.now("Skipped", absent))
        else:
            reason, words = waiting(f"the conversion of candidate {candidate.name}", this, context)
            state = "Converting" if this.active else "Pending"
            attempts.append(attempt.now(state, Trouble(reason, words)))  # type: ignore[arg-type]
    return Round(_verdict(attempts), effects, tuple(attempts))


def _advised(context: Context, failure: Trouble) -> Trouble:
    """The failure; if the image for CPUs built no engine, with the installation's value for one that has TensorRT."""
    if failure.reason is not Reason.TENSORRT_UNAVAILABLE or context.framework_image != context.images.converter:
        return failure
    again = "then change spec.source.revision, because an object keeps its images"
    value = "the Helm value images.converterGpu"
    advice = (
        f"or use the image of {value}: for that, change spec.source.revision, because an object keeps its images"
        if context.settings.converter_gpu_image
        else f"or ask the administrator who installed the operator to set {value}, and {again}"
    )
    return Trouble(failure.reason, f"{failure.message}; {advice}")


def _files(work: Work) -> frozenset[str]:
    """Keys of the conversions that other candidates of an ensemble may share."""
    assert isinstance(work.request, ConvertRequest)
    return frozenset(member.conversion_key for member in work.request.members)


def _is_done(context: Context, work: Work) -> bool:
    return record_name(work.stage, work.key) in context.observed.records


def _is_active(context: Context, work: Work) -> bool:
    """Whether a Job for the work exists that has not ended."""
    return any(job.stage == work.stage and job.key == work.key and job.active for job in context.observed.jobs.values())


def _verdict(attempts: list[Attempt]) -> Verdict:
    failed = [attempt for attempt in attempts if attempt.state in ("Failed", "Skipped")]
    waiting_for = [attempt for attempt in attempts if attempt.state in ("Pending", "Converting")]
    if waiting_for:
        done = len(attempts) - len(waiting_for)
        trouble = next((each for each in waiting_for if each.reason not in (Reason.RUNNING, None)), waiting_for[0])
        names_ = ", ".join(each.name for each in waiting_for if each.state == "Converting")
        running = trouble.reason in (Reason.RUNNING, None)
        message = f"{done} of {len(attempts)} candidates are done; converting {names_}" if running else trouble.message
        return Verdict("Converted", False, trouble.reason or Reason.RUNNING, message)
    if len(failed) == len(attempts):
        reasons = "; ".join(f"{each.name}: {each.reason}: {shortened(each.message, 200)}" for each in failed)
        return Verdict("Converted", False, Reason.ALL_CANDIDATES_FAILED, f"no candidate was converted: {reasons}")
    message = f"{len(attempts) - len(failed)} of {len(attempts)} candidates were converted"
    if failed:
        message += f"; not converted: {', '.join(f'{each.name} ({each.reason})' for each in failed)}"
    return Verdict("Converted", True, Reason.CONVERTED, message)
