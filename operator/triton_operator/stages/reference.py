"""Reference: one Job runs the framework in fp32 and dumps inputs and outputs.

The inputs are the dataloader's or, without one, generated from what the model's graph declares.
"""

from dataclasses import dataclass, replace

from triton_converters.contract.input_shapes import shapes_fault
from triton_converters.contract.measurement_requests import InputShape
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, ReferenceResult
from triton_operator.context import Context
from triton_operator.effects import Statement
from triton_operator.jobs.reference import Dump, reference_work
from triton_operator.jobs.run import run
from triton_operator.observed.trouble import Trouble
from triton_operator.resources.pod import servers_have_gpu
from triton_operator.stages.source import Sourced
from triton_operator.stages.unfinished import await_result


@dataclass(frozen=True, kw_only=True)
class Referred(Sourced):
    """The framework has run."""

    dump: Dump


def refer(context: Context, progress: Sourced) -> Sourced:
    """Return Referred once the framework has run.

    The framework's own run is part of converting: candidates are converted with its batches.
    """
    work = reference_work(context, progress.source)
    job_run = run(context, work, repeats=True)
    result = job_run.result
    if result is not None:
        if refusal := rehearsal_refusal(context, result):
            condition = Statement("Converted", False, refusal.reason, f"reference: {refusal.message}")
            return progress.wait_with(condition, job_run.effects, stalled=True)
        shapes = [InputShape(each.input, tuple(each.dims)) for each in context.spec.performance.input_shapes]
        if fault := shapes_fault(shapes, result.signature):
            # The profiles would find it out too, after all conversions.
            condition = Statement("Converted", False, Reason.INVALID_SPEC, fault)
            return progress.wait_with(condition, job_run.effects, stalled=True)
        dump = Dump(progress.source, work.key, result, job_run.image_id)
        return progress.advance_to(Referred, effects=progress.effects + job_run.effects, dump=dump)
    is_mixed = job_run.failure is not None and job_run.failure.reason is Reason.BATCHING_UNSUPPORTED
    if is_mixed and context.unbatched not in (None, context.resolved):
        # The failure stays recorded until the status has what follows from it.
        assert job_run.failure is not None
        message = f"the reference Job runs again with maxBatchSize 0: {job_run.failure.message}"
        condition = Statement("Converted", None, Reason.WAITING, message)
        return replace(progress.wait_with(condition, job_run.effects), resolved=context.unbatched)
    return await_result(context, progress, "Converted", "the reference Job", job_run, prefix="reference: ")


def rehearsal_refusal(context: Context, result: ReferenceResult | ConvertResult) -> Trouble | None:
    """Return why a rehearsed result cannot be used; None: it is not rehearsed, or the servers run on the CPU too.

    The keys of results differ for Jobs with and without a GPU (`TritonDeploymentSpec.device`). So a rehearsed result
    reaches servers with a GPU only if the limits in their pod template ask for one, or if the Job's image did not see
    the GPU that the Job had.
    """
    if not result.rehearsed or not servers_have_gpu(context):
        return None
    fault = (
        "spec.gpu is set, but PyTorch found no GPU in the Job: use an image and a node with NVIDIA's driver"
        if context.spec.gpu_count
        else "set spec.gpu, so that the Jobs have one too, or remove the GPU from serving.pod.resources"
    )
    message = f"the user's code asked for a GPU and ran on the CPU, but the servers have a GPU; {fault}"
    return Trouble(Reason.GPU_UNAVAILABLE, message)
