"""Skip the candidates that cannot be tried, and say why. A skipped candidate stops no other candidate."""

from triton_converters.contract.formats import FORMATS, refusal
from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.candidates import operator_sets, server_image
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.candidate import Candidate, candidates_of
from triton_operator.candidates.defaults import takes_defaults
from triton_operator.context import Context
from triton_operator.effects import Statement
from triton_operator.observed.trouble import Trouble
from triton_operator.stages.source import Sourced


def built_gpu_product(spec: TritonDeploymentSpec) -> str:
    """Return the GPU product that candidates are built for; empty: none is. Those that the operator chooses may be."""
    needs_product = any(
        takes_defaults(model) or any(FORMATS[candidate.format].needs_gpu for candidate in model.candidates)
        for model in spec.models
    )
    return spec.gpu.product if needs_product and spec.gpu is not None and spec.gpu_count > 0 else ""


def first_attempts(context: Context) -> tuple[Attempt, ...]:
    """Return every candidate in its state before any is converted."""
    attempts = []
    for candidate in candidates_of(context.spec):
        trouble = (
            candidate_refusal(context, candidate)
            or missing_product(context, candidate)
            or _reference_trouble(context, candidate)
        )
        attempt = Attempt(candidate)
        attempts.append(attempt.in_state("Skipped", trouble) if trouble else attempt)
    return tuple(attempts)


def refuse(context: Context, progress: Sourced) -> Sourced:
    """Wait if every candidate is refused, so that the framework need not run either."""
    refusals = [(candidate.name, candidate_refusal(context, candidate)) for candidate in candidates_of(context.spec)]
    if not all(trouble for _, trouble in refusals):
        return progress
    reasons = "; ".join(f"{name}: {trouble.message}" for name, trouble in refusals if trouble)
    message = f"no candidate can be tried: {reasons}"
    return progress.wait_with(Statement("Converted", False, Reason.ALL_CANDIDATES_FAILED, message), stalled=True)


def candidate_refusal(context: Context, candidate: Candidate) -> Trouble | None:
    """Return why a candidate cannot be tried, by the spec, the formats in the source and the server's image.

    None: nothing forbids it.
    """
    for member in candidate.members:
        model = member.model
        if model.is_sought:
            # Nothing is known of the model before the source is published.
            continue
        assert model.format is not None
        if format_refusal := refusal(model.format, member.format, member.accelerator):
            reason, explanation = format_refusal
            return Trouble(reason, f"model {model.name}: {explanation}; correct the candidate, or remove it")
        if model.requirements and (message := server_image.requirements_refusal(context.images.server)):
            return Trouble(Reason.FORMAT_NOT_SERVED, message)
        if message := server_image.refusal(context.images.server, model.format, member.format):
            return Trouble(Reason.FORMAT_NOT_SERVED, message)
        if message := _unread(context.images.server, model.onnx.opset if member.format == "onnx" else None):
            return Trouble(Reason.FORMAT_NOT_SERVED, message)
    if _built_for_product(candidate) and context.spec.gpu_count == 0:
        message = f"format {candidate.format} is built for one GPU product, but this object runs on CPU; set spec.gpu"
        return Trouble(Reason.GPU_PRODUCT_MISSING, message)
    return None


def _unread(image: str, opset: int | None) -> str | None:
    """Return why a server of the image reads no graph of the operator set; None: it may, or the spec names none."""
    message = operator_sets.refusal(server_image.release(image), opset) if opset else None
    return f"image {image}: {message}" if message else None


def missing_product(context: Context, candidate: Candidate) -> Trouble | None:
    """Return the trouble if no node has the candidate's GPU product; None also if the operator may not read nodes."""
    if not _built_for_product(candidate) or context.observed.gpu_product_exists is not False:
        return None
    assert context.spec.gpu is not None
    label = f"{names.GPU_PRODUCT_LABEL}={context.spec.gpu.product}"
    message = f"no node has the label {label}; correct spec.gpu.product or add such a node; the operator looks again"
    return Trouble(Reason.GPU_PRODUCT_MISSING, message)


def patience_seconds(context: Context, candidate: Candidate) -> float | None:
    """Return the seconds for which a conversion may wait for a node; None: it may wait for ever.

    Only a candidate that is built for a GPU product is given up, because others may do without that product.
    """
    return context.settings.unschedulable_seconds if _built_for_product(candidate) else None


def is_patient(context: Context) -> bool:
    """Whether a pod waits for a node with the GPU product. No event ends that wait, so later passes have to look."""
    has_unschedulable_job = any(job.unschedulable_since is not None for job in context.observed.jobs.values())
    return has_unschedulable_job and bool(built_gpu_product(context.spec))


def _reference_trouble(context: Context, candidate: Candidate) -> Trouble | None:
    """Return the scheduler's message if the reference's pod has waited too long for the same GPU; else None."""
    seconds = patience_seconds(context, candidate)
    for job in context.observed.jobs.values():
        unschedulable_since = job.unschedulable_since
        if seconds is None or job.stage != "reference" or job.pending is None or unschedulable_since is None:
            continue
        if (context.now - unschedulable_since).total_seconds() > seconds:
            return job.pending
    return None


def _built_for_product(candidate: Candidate) -> bool:
    return any(FORMATS[member.format].needs_gpu for member in candidate.members)
