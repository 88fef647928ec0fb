"""The Jobs that convert a candidate and publish its revision."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil

from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import (
    DEFAULT_OPSET,
    ConvertRequest,
    HpsOptions,
    ModelConfig,
    TensorRtOptions,
)
from triton_converters.contract.formats import ENSEMBLE, FORMATS, HPS, THROUGH
from triton_converters.contract.quantization import Quantization
from triton_converters.contract.results import ConvertResult, Tuning
from triton_operator import names
from triton_operator.api.duration import amount
from triton_operator.api.model import DynamicBatching, Model, OnnxOptions, TensorRt
from triton_operator.api.quantity import whole
from triton_operator.candidates import server_image
from triton_operator.candidates.candidate import Candidate, Member
from triton_operator.context import Context
from triton_operator.jobs.packages import step_packages_key
from triton_operator.jobs.reference import (
    Dump,
    examples_key,
    files_of_user_code,
    model_code,
    model_volumes,
    served_code,
)
from triton_operator.jobs.threads import thread_parameters
from triton_operator.observed.failures import Damage
from triton_operator.resources.work import UserCode, Work

SERVED = ("accelerator", "config", "engine_cache", "hps", "gpu_count")
"""The fields of a request that no converter reads: they say how the file is served. Unless the file is an engine,
``tensorrt`` is one of them too."""


def work_and_damages(
    context: Context, dump: Dump, candidate: Candidate
) -> tuple[Work[ConvertRequest, ConvertResult], Mapping[str, Damage]]:
    """Return the Job's work, and the damages of the revision under earlier keys, by these keys.

    The conversion key covers what changes the file, the revision key config.pbtxt too.
    """
    request = _request(context, dump, candidate)
    key, damages = revision_key(context, request)
    # The rest changes no file: the candidate's name is for messages, and the conversion keys cover the batches.
    request = replace(
        request,
        key=key,
        candidate=candidate.name,
        reference=dump.key,
        members=tuple(
            replace(member, key=key, reference=layout.member_key(dump.key, member.model_name))
            for member in request.members
        ),
    )
    volumes, mounts = model_volumes(context, dump.source)
    inputs = (layout.source_directory(dump.source.digest), layout.reference_directory(dump.key))
    work = Work[ConvertRequest, ConvertResult](
        stage="convert",
        request=request,
        deadline_seconds=context.spec.conversion.active_deadline_seconds,
        candidate=candidate.name,
        shape=UserCode(inputs, volumes, mounts, image_id=dump.image_id),
    )
    return work, damages


def _request(context: Context, dump: Dump, candidate: Candidate) -> ConvertRequest:
    """Return the request without the key, the candidate's name and the reference."""
    members = [_model_request(context, dump, member, candidate.tuning) for member in candidate.members]
    accelerated = [member for member in members if member.accelerator == "trt"]
    engine_cache = _engine_cache(context, accelerated)
    members = [replace(member, engine_cache=engine_cache) if member in accelerated else member for member in members]
    return members[0] if context.spec.ensemble is None else _ensemble_request(context, candidate, members)


def _model_request(context: Context, dump: Dump, member: Member, tuning: Tuning | None) -> ConvertRequest:
    """Return the request for one model, without the key, the candidate's name and the reference.

    Options that do not concern its format have their defaults, so that an edit of them makes no other request.
    """
    model = member.model
    through_onnx = "onnx" in (member.format, THROUGH.get(member.format))
    onnx = model.onnx if through_onnx else OnnxOptions()
    # A graph that comes as ONNX keeps its opset unless the spec names another.
    opset = onnx.opset or (DEFAULT_OPSET if through_onnx and model.format != "onnx" else 0)
    is_engine = FORMATS[member.format].needs_gpu
    tensorrt = model.tensorrt if is_engine or member.accelerator == "trt" else TensorRt()
    hps = HpsOptions(model.hps.gpu_cache_percent, model.hps.keys_per_sample) if member.format == HPS else None
    config = model_config(context, model)
    if model.is_step:
        # The reference ran it on the CPU, and a step that wants a GPU would share that of the models.
        config = replace(config, instance_group_kind="KIND_CPU")
    config = config if tuning is None else _tuned_config(config, tuning, model)
    bounds = thread_parameters(context, model, FORMATS[member.format].backend, config.instances)
    request = ConvertRequest(
        key="",
        conversion_key="",
        **files_of_user_code(context, dump.source),
        reference="",
        model_name=model.name,
        model=model_code(context.spec, model),
        candidate="",
        format=member.format,
        precision=member.precision,
        accelerator=member.accelerator,
        onnx_opset=opset,
        onnx_exporter=onnx.exporter,
        onnx_optimized=onnx.optimized,
        tensorrt=TensorRtOptions(whole(tensorrt.workspace), tensorrt.builder_optimization_level),
        gpu_product=_gpu_product(context),
        engine_cache="",
        config=replace(config, parameters={**config.parameters, **bounds}),
        gpu_count=context.spec.gpu_count if hps else 0,
        hps=hps,
        optimal_batch_size=_optimal_batch_size(model_config(context, model), model) if member.format == "trt" else 0,
        quantization=_quantization(member),
        step_packages=step_packages_key(context, dump.source, model),
    )
    examples, signature = examples_key(context, dump.source), dump.result.signature
    # Calibration and the comparison take many of the samples, and other conversions only the first batches.
    samples = (dump.key,) if request.quantization else ()
    unhashed_fields = SERVED if is_engine else (*SERVED, "tensorrt")
    return replace(
        request,
        conversion_key=names.result_key("conversion", request, examples, signature, *samples, without=unhashed_fields),
    )


def _quantization(member: Member) -> Quantization | None:
    """Return how the model is quantized, as the request has it; None: it is not."""
    asked = member.quantization
    return Quantization(asked.calibration_samples, tuple(sorted(set(asked.excluded_operators)))) if asked else None


def _ensemble_request(context: Context, candidate: Candidate, members: Sequence[ConvertRequest]) -> ConvertRequest:
    """Return the request for all models of an ensemble."""
    return replace(
        members[0],
        conversion_key="",
        model_name=context.spec.served_name,
        model=served_code(context.spec),
        format=ENSEMBLE,
        precision=candidate.precision,
        accelerator=candidate.accelerator,
        engine_cache=max(member.engine_cache for member in members),
        gpu_count=max(member.gpu_count for member in members),
        quantization=None,
        step_packages="",
        members=tuple(members),
    )


def model_config(context: Context, model: Model) -> ModelConfig:
    """Return the settings of config.pbtxt besides the signature, with defaults filled in."""
    config = model.config
    batching = config.dynamic_batching or DynamicBatching()
    preferred = batching.preferred_batch_sizes
    delay_microseconds = ceil(amount(batching.max_queue_delay, "us"))
    if not preferred and delay_microseconds > 0 and config.largest_batch > 0:
        preferred = [config.largest_batch]
    kind = "KIND_CPU"
    if context.spec.gpu_count > 0:
        kind = "KIND_GPU" if context.settings.instance_group_kind == "Gpu" else "KIND_AUTO"
    return ModelConfig(
        instances=config.instances,
        instance_group_kind=kind,
        dynamic_batching=config.dynamic_batching is not None and config.largest_batch > 0,
        preferred_batch_sizes=tuple(size for size in preferred if size <= config.largest_batch),
        max_queue_delay_microseconds=delay_microseconds,
        cuda_graphs=config.cuda_graphs,
        warmup=config.warmup,
        parameters=dict(config.parameters),
        overrides=config.overrides,
    )


def _optimal_batch_size(config: ModelConfig, model: Model) -> int:
    """Return the batch size that an engine is optimised for: the spec's largest preferred one; 0: none is preferred.

    It stays the same if a search found another one, so that all configurations of a candidate share one engine.
    """
    largest = max(config.preferred_batch_sizes, default=0)
    return largest if largest < model.config.largest_batch else 0


def spec_tuning(context: Context, model: Model) -> Tuning:
    """Return the spec's values of the settings that a search may vary."""
    config = model_config(context, model)
    return Tuning(
        max_batch_size=model.config.largest_batch,
        instances=config.instances,
        dynamic_batching=config.dynamic_batching,
        preferred_batch_sizes=config.preferred_batch_sizes,
        max_queue_delay_microseconds=config.max_queue_delay_microseconds,
        cuda_graphs=config.cuda_graphs,
    )


def _tuned_config(config: ModelConfig, tuning: Tuning, model: Model) -> ModelConfig:
    """Return the configuration with the values that a search found."""
    max_batch_size = tuning.max_batch_size if tuning.max_batch_size < model.config.largest_batch else 0
    return replace(config, **{**vars(tuning), "max_batch_size": max_batch_size})


def _engine_cache(context: Context, members: Sequence[ConvertRequest]) -> str:
    """Return the directory where the server's TensorRT provider keeps the engines of ``members``; empty without any.

    The server's TensorRT version is not known before it runs, so its image stands for it: the release, or a hash of the
    image's name. Revisions that differ only in batching share their engines.
    """
    if not members:
        return ""
    image = context.images.server
    tensorrt = server_image.release(image) or names.digest(image, 12)
    key = names.digest(["engines", [[member.conversion_key, member.tensorrt] for member in members]], 16)
    return str(layout.cache_directory(_gpu_product(context), tensorrt) / key)


def _gpu_product(context: Context) -> str:
    return context.spec.gpu.product if context.spec.gpu is not None and context.spec.gpu_count > 0 else ""


def revision_key(context: Context, request: ConvertRequest) -> tuple[str, Mapping[str, Damage]]:
    """Return the key to publish a revision under, and its damages under earlier keys, by these keys."""
    key, damages = names.result_key("convert", request), {}
    while (damage := context.observed.damaged.get(key)) is not None:
        damages[key] = damage
        key = names.result_key("convert", request, len(damages))
    return key, damages
