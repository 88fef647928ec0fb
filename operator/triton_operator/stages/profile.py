"""Profile: one Job for each converted candidate, one at a time. Its pod holds a private tritonserver and a client.

Then, if the spec has metrics, one Job computes those of all candidates that passed, and they are judged here. That Job
knows no bounds, so an edit of a threshold computes nothing again. Nor does the one that compares them with earlier
revisions (`stages/comparison.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from triton_converters.contract.accuracy import judge
from triton_converters.contract.formats import SOURCE_FORMATS
from triton_converters.contract.quantization import calibration
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
from triton_operator.stages.comparison import compare_candidates, told
from triton_operator.stages.framework import of_samples
from triton_operator.stages.progress import Round, or_spare
from triton_operator.stages.reference import Referred
from triton_operator.stages.repairing import record_damage


def profile(context: Context, progress: Referred) -> Referred:
    """Go on once every converted candidate was profiled and its metrics are computed, and one passed the gates.

    A failure that passes by itself is tried again only if no candidate passed, as in `convert`.
    """
    round = profile_round(context, progress.dump, progress.attempts)
    if round.has_failed:
        round = profile_round(context, progress.dump, progress.attempts, repeats=True)
    return or_spare(context, progress.after_round(round))


def profile_round(context: Context, dump: Dump, candidates: Sequence[Attempt], *, repeats: bool = False) -> Round:
    """Return the candidates after their profiles and metrics, and the Job to run now. ``repeats``: as `run` takes it.

    One Job runs at a time, so that candidates do not disturb each other's figures.
    """
    attempts, effects, runs = [], Effects(), list[Run[Any]]()
    is_busy = is_measuring(context)
    for attempt in candidates:
        if attempt.state != "Converted":
            attempts.append(attempt)
            continue
        work = profile_work(context, dump, attempt)
        has_turn = not is_busy
        job_run = run(context, work, start=has_turn, repeats=repeats)
        effects += job_run.effects
        runs.append(job_run)
        is_busy = is_busy or job_run.active
        if job_run.result is not None:
            profiled_attempt = replace(
                attempt,
                profile=job_run.result,
                profile_key=work.key,
                image_id=job_run.image_id,
                gpu_driver=job_run.gpu.driver,
            )
            attempts.append(_after_gates(context, profiled_attempt, job_run.result))
        elif job_run.failure is not None and job_run.failure.reason is Reason.REPOSITORY_DAMAGED:
            effects += record_damage(context, attempt.key, job_run.failure)
            attempts.append(attempt.in_state("Converted", job_run.failure))
        elif job_run.failure is not None:
            attempts.append(attempt.in_state("Failed", job_run.failure))
        elif job_run.active or job_run.awaits_turn or has_turn or context.spec.suspend:
            reason, message = waiting_reason(f"the profile of candidate {attempt.name}", job_run, context)
            attempts.append(attempt.in_state("Profiling" if job_run.active else "Converted", Trouble(reason, message)))
        else:
            attempts.append(
                attempt.in_state("Converted", Trouble(Reason.WAITING, "the candidate waits to be profiled"))
            )
    if not _awaiting_profile(attempts):
        attempts, metrics = _with_metrics(context, dump, attempts, repeats)
        if metrics is not None:
            effects += metrics.effects
            runs.append(metrics)
        comparison = compare_candidates(context, dump, attempts, repeats=repeats)
        attempts, effects = list(comparison.attempts), effects + comparison.effects
        runs += [comparison.job_run] if comparison.job_run is not None else []
    return Round(_condition(context, dump, attempts), effects, tuple(attempts), next_try(context, runs))


def is_measuring(context: Context) -> bool:
    """Whether a private server is being measured, for any candidate or generation of the object.

    A pod that goes on after its measurement counts too: its server has the GPU, or memory that the next one would use.
    """
    private = [job for job in context.observed.jobs.values() if job.stage in ("profile", "search")]
    return any(job.active or job.lingers_since is not None for job in private)


def _after_gates(context: Context, attempt: Attempt, result: ProfileResult) -> Attempt:
    if result.passed and context.spec.metrics is not None:
        return attempt.in_state("Profiled", Trouble(Reason.WAITING, "the candidate waits for its metrics"))
    trouble = Trouble(known_reason(result.reason) or Reason.RESULT_MISSING, result.message)
    return attempt.in_state("Passed" if result.passed else "Failed", trouble)


def _with_metrics(
    context: Context, dump: Dump, attempts: Sequence[Attempt], repeats: bool
) -> tuple[list[Attempt], Run[MetricsResult] | None]:
    """Return all candidates, after the metrics of those that wait for them, and the run of the Job that computes these.

    None: no candidate waits for metrics. ``repeats``: as `run` takes it.
    """
    awaiting_metrics = [each for each in attempts if each.state == "Profiled"]
    if not awaiting_metrics:
        return list(attempts), None
    work = metrics_work(context, dump, awaiting_metrics)
    job_run = run(context, work, repeats=repeats)
    job_words = f"the Job that computes the metrics of {', '.join(each.name for each in awaiting_metrics)}"

    def after_metrics(attempt: Attempt) -> Attempt:
        if job_run.result is not None:
            return _after_accuracy_gate(context, attempt, work.key, job_run.result)
        if job_run.failure is not None:
            return attempt.in_state("Failed", job_run.failure)
        return attempt.in_state("Profiled", Trouble(*waiting_reason(job_words, job_run, context)))

    return [after_metrics(each) if each.state == "Profiled" else each for each in attempts], job_run


def _after_accuracy_gate(context: Context, attempt: Attempt, key: str, result: MetricsResult) -> Attempt:
    """Return the candidate with the judgement of its metrics. ``key``: the metrics' record."""
    judgement = judge(result, attempt.profile_key, [each.as_request() for each in context.spec.accuracy.thresholds])
    judged_attempt = replace(attempt, accuracy=judgement.accuracy, metrics_key=key)
    passed = judgement.reason is Reason.PASSED
    assert attempt.profile is not None
    message = attempt.profile.message if passed else judgement.message
    if judgement.reason is Reason.THRESHOLD_NOT_MET:
        message += f"; {of_samples(context, attempt.profile.samples)}"
    return judged_attempt.in_state("Passed" if passed else "Failed", Trouble(judgement.reason, message))


def _awaiting_profile(attempts: Sequence[Attempt]) -> list[Attempt]:
    return [each for each in attempts if each.state in ("Converted", "Profiling")]


def _references(context: Context) -> list[str]:
    """Return words about models that were given as files: which library, or no other reference, judges them."""
    sources = {
        each.name: SOURCE_FORMATS[each.format] for each in context.spec.models if each.format and not each.is_step
    }
    libraries = sorted({source.library for source in sources.values()} - {""})
    words = [f"compared with the answers of {each}" for each in libraries]
    files = [name for name, source in sources.items() if source.is_own_reference]
    names = ", ".join(each for each in files if len(context.spec.models) > 1)
    return [*words, *([f"compared with the file itself{f' ({names})' if names else ''}"] if files else [])]


def _condition(context: Context, dump: Dump, attempts: Sequence[Attempt]) -> Statement:
    """Return the condition Verified: which candidates are being measured, that none passed, or which passed and how."""
    awaiting_profile = _awaiting_profile(attempts)
    passed = [each.name for each in attempts if each.passed]
    if awaiting_profile:
        current = next((each for each in awaiting_profile if each.state == "Profiling"), awaiting_profile[0])
        if current.reason not in (Reason.RUNNING, Reason.WAITING, None):
            return Statement("Verified", False, current.reason, current.message)
        if current.state != "Profiling":
            message = f"candidate {current.name} is profiled once the pod of the last measurement has ended"
            return Statement("Verified", False, Reason.WAITING, message)
        rest = f"then {len(awaiting_profile) - 1} more" if len(awaiting_profile) > 1 else "the last one"
        message = f"profiling candidate {current.name}, {rest}"
        return Statement("Verified", False, Reason.RUNNING, message)
    if awaiting_metrics := [each for each in attempts if each.state == "Profiled"]:
        return Statement("Verified", False, awaiting_metrics[0].reason or Reason.RUNNING, awaiting_metrics[0].message)
    if not passed:
        return _failed_condition(attempts)
    message = f"{len(passed)} of {len(attempts)} candidates passed every gate: {', '.join(passed)}"
    samples = dump.result.samples
    if left_out := len(calibration(samples, context.spec.calibration_samples)):
        message += f"; {left_out} of {samples} samples calibrate INT8, and no candidate's metrics are computed of them"
    message = "; ".join([message, *told(context, dump, attempts), *_references(context), *dump.result.warnings])
    if context.spec.dataloader is None:
        no_accuracy = "accuracy was not judged: for that, set spec.dataloader, spec.metrics and accuracy.thresholds"
        return Statement("Verified", True, Reason.GENERATED_INPUTS, f"{message}; {no_accuracy}")
    if not context.spec.accuracy.thresholds:
        return Statement("Verified", True, Reason.NUMERICAL_ONLY, f"{message}; no accuracy threshold is set")
    return Statement("Verified", True, Reason.VERIFIED, message)


def _failed_condition(attempts: Sequence[Attempt]) -> Statement:
    """Return the condition Verified of candidates none of which passed: the best of them are only worse than before."""
    if worse := [each for each in attempts if each.reason is Reason.WORSE_THAN_BEFORE]:
        first, *others = worse
        too = f"; worse too: {', '.join(each.name for each in others)}" if others else ""
        message = f"worse than before: {first.name}: {first.message}{too}"
        return Statement("Verified", False, Reason.WORSE_THAN_BEFORE, message)
    reasons = "; ".join(f"{each.name}: {each.reason}: {shortened(each.message, 300)}" for each in attempts)
    return Statement("Verified", False, Reason.ALL_CANDIDATES_FAILED, f"no candidate passed the gates: {reasons}")
