"""Reference: one Job runs the framework in fp32 over the dataloader and dumps what went in and came out."""

from triton_converters import claim as layout
from triton_converters.reasons import Reason
from triton_converters.request import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.result import ReferenceResult, SourceResult
from triton_operator import names
from triton_operator.context import Context
from triton_operator.resources.jobs import Work, claim_volume
from triton_operator.spec import UserEntrypoint
from triton_operator.stages.step import Effects, Verdict, run, waiting


def refer(context: Context, source: SourceResult) -> tuple[Verdict, Effects, str, ReferenceResult | None]:
    """The condition while it lasts, the wishes, the reference's key, and its result once it is there.

    The framework's own run is part of converting: candidates are converted with its batches.
    """
    work = reference_work(context, source)
    this = run(context, work)
    if this.record is not None:
        result = this.record.outcome.result
        assert isinstance(result, ReferenceResult)
        message = f"the framework ran over {result.samples} samples"
        return Verdict("Converted", False, Reason.RUNNING, message), this.effects, work.key, result
    if this.failure is not None:
        verdict = Verdict("Converted", False, this.failure.reason, f"reference: {this.failure.message}")
        return verdict, this.effects, work.key, None
    reason, message = waiting("the framework's own run over the dataloader", this, context)
    return Verdict("Converted", False, reason, message), this.effects, work.key, None


def reference_work(context: Context, source: SourceResult) -> Work:
    """The Job's work; its key covers all that can change the framework's outputs."""
    spec, model = context.spec, context.model
    code = model_code(context)
    request = ReferenceRequest(
        key="",
        source=source.digest,
        model=code,
        dataloader=entrypoint(context, spec.dataloader),
        max_samples=spec.accuracy.max_samples,
        needs_labels=bool(spec.accuracy.thresholds),
    )
    key = names.result_key("reference", request.to_json(), spec.data, _image(context), spec.gpu, model.io_precision)
    volumes, mounts = data_volumes(context)
    return Work(
        stage="reference",
        key=key,
        request=ReferenceRequest(**{**vars(request), "key": key}),
        deadline_seconds=spec.conversion.active_deadline_seconds,
        volumes=volumes,
        mounts=mounts,
        gpu=True,
    )


def model_code(context: Context) -> ModelCode:
    """The model as the user gives it."""
    model = context.model
    given = UserEntrypoint(entrypoint=model.entrypoint, arguments=model.arguments)
    return ModelCode(model.format, entrypoint(context, given), model.config.max_batch_size)


def entrypoint(context: Context, given: UserEntrypoint) -> Entrypoint:
    """The entrypoint with $(DATA) replaced by where spec.data is mounted."""
    data = layout.DATA_MOUNT
    if context.spec.data is not None:
        data /= context.spec.data.uri.partition("://")[2].partition("/")[2].strip("/")
    return Entrypoint(
        given.entrypoint, {name: value.replace("$(DATA)", str(data)) for name, value in given.arguments.items()}
    )


def data_volumes(context: Context) -> tuple[tuple[dict[str, object], ...], tuple[dict[str, object], ...]]:
    """Volumes and mounts of spec.data; nothing where there is none."""
    if context.spec.data is None:
        return (), ()
    volume, mount = claim_volume("data", context.spec.data.uri, layout.DATA_MOUNT)
    return (volume,), (mount,)


def _image(context: Context) -> str:
    return context.spec.conversion.pod.image or context.images.converter
