"""Framework: before anything is converted, the framework's own metrics must meet the bounds that candidates must meet.

The reference has all that this needs. A candidate answers as the framework does, so what the framework misses, no
candidate meets.
"""

from dataclasses import replace

from triton_converters.contract.accuracy import judge_framework
from triton_converters.contract.quantization import judged_samples
from triton_converters.contract.reasons import Reason
from triton_operator.candidates.candidate import candidates_of
from triton_operator.context import Context
from triton_operator.effects import Statement
from triton_operator.jobs.convert import work_and_damages
from triton_operator.jobs.metrics import metrics_work
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.run import run
from triton_operator.stages.reference import Referred
from triton_operator.stages.unfinished import await_result


def judge(context: Context, progress: Referred) -> Referred:
    """Go on once the framework's own outputs meet every threshold, where one has a `min` or a `max`.

    Once a conversion has begun, nothing could be saved: an edit of a bound judges the candidates then.
    """
    thresholds = [each.as_request() for each in context.spec.accuracy.thresholds]
    if not any(each.is_absolute for each in thresholds):
        return progress
    has_begun = _has_begun_to_convert(context, progress.dump)
    job_run = run(context, metrics_work(context, progress.dump, ()), start=not has_begun, repeats=True)
    if has_begun:
        # Without a record, the bounds were set after the conversion had begun.
        return progress if job_run.result is None else replace(progress, effects=progress.effects + job_run.effects)
    if job_run.result is None:
        words = "the Job that computes the metrics of the framework's outputs"
        return await_result(context, progress, "Converted", words, job_run, prefix="metrics of the framework: ")
    verdict = judge_framework(job_run.result, thresholds)
    if verdict.reason is Reason.PASSED:
        return replace(progress, effects=progress.effects + job_run.effects)
    message = f"{verdict.message}; so no candidate was converted"
    if verdict.reason is Reason.THRESHOLD_NOT_MET:
        message += (
            f"; {of_samples(context, progress.dump.result.samples)}; correct the metrics file, the labels or the"
            " threshold, or improve the model"
        )
    return progress.wait_with(Statement("Converted", False, verdict.reason, message), job_run.effects, stalled=True)


def of_samples(context: Context, samples: int) -> str:
    """Say of how many samples the metrics are, and whether the spec bounds them; ``samples``: of the reference."""
    bound = ", and spec.accuracy.maxSamples bounds these" if samples >= context.spec.max_samples else ""
    return f"that is of {judged_samples(samples, context.spec.calibration_samples)} samples{bound}"


def _has_begun_to_convert(context: Context, dump: Dump) -> bool:
    """Whether a candidate of this reference is converted, is being converted, has failed to be or is to be repaired."""
    for candidate in candidates_of(context.spec):
        work, damages = work_and_damages(context, dump, candidate)
        found = run(context, work, start=False)
        if damages or found.result is not None or found.active or found.failure is not None:
            return True
    return False
