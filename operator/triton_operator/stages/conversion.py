"""Convert: one Job a candidate, `parallelism` at a time, in the spec's order; a failure stops no other."""

from dataclasses import replace

from triton_converters import claim as layout
from triton_converters.formats import THROUGH
from triton_converters.reasons import Reason
from triton_converters.request import ConvertRequest, ModelConfig, TensorRtOptions
from triton_converters.result import ConvertResult
from triton_operator import names
from triton_operator.api.model import DEFAULT_OPSET, Candidate, DynamicBatching
from triton_operator.attempt import Attempt
from triton_operator.context import Context
from triton_operator.pod_trouble import Trouble
from triton_operator.resources.jobs import Work
from triton_operator.stages.reference import Dump, data_volumes, examples_key, model_code
from triton_operator.stages.skipping import no_product, patience, refused
from triton_operator.stages.step import Effects, Verdict, run, waiting


def convert(context: Context, dump: Dump) -> tuple[Verdict, Effects, tuple[Attempt, ...]]:
    """The condition, the wishes and every candidate as far as it came."""
    works = [convert_work(context, dump, candidate) for candidate in context.model.candidates]
    free = context.spec.conversion.parallelism - sum(_is_active(context, work) for work in works)
    attempts, effects = [], Effects()
    for candidate, work in zip(context.model.candidates, works, strict=True):
        if refusal := refused(context, candidate):
            attempts.append(Attempt(candidate).now("Skipped", refusal))
            continue
        active, absent = _is_active(context, work), no_product(context, candidate)
        this = run(context, work, start=free > 0 and absent is None, patience=patience(context, candidate))
        effects += this.effects
        if this.active and not active:
            free -= 1
        attempt = Attempt(candidate, work.key, engine_cache=_engine_cache(context, candidate, work.key))
        if this.record is not None:
            result = this.record.outcome.result
            assert isinstance(result, ConvertResult)
            attempts.append(replace(attempt, conversion=result).now("Converted"))
        elif this.failure is not None:
            given_up = this.failure.reason is Reason.UNSCHEDULABLE
            attempts.append(attempt.now("Skipped" if given_up else "Failed", this.failure))
        elif absent is not None and not this.active:
            attempts.append(attempt.now("Skipped", absent))
        else:
            reason, words = waiting(f"candidate {candidate.name}: conversion", this, context)
            state = "Converting" if this.active else "Pending"
            attempts.append(attempt.now(state, Trouble(reason, words)))  # type: ignore[arg-type]
    return _verdict(attempts), effects, tuple(attempts)


def convert_work(context: Context, dump: Dump, candidate: Candidate) -> Work:
    """The Job's work. The conversion's key covers what changes the file, the revision's also what config.pbtxt says."""
    model = context.model
    # A graph that comes as ONNX keeps its opset unless another is asked for.
    opset = model.onnx.opset or (0 if model.format == "onnx" else DEFAULT_OPSET)
    onnx = [opset, model.onnx.exporter, model.onnx.optimized]
    conversion_key = names.result_key(
        "conversion",
        examples_key(context, dump.source),
        dump.result.signature,
        candidate.format,
        candidate.precision,
        onnx if "onnx" in (candidate.format, THROUGH.get(candidate.format)) else None,
        model.tensorrt if candidate.format == "trt" else None,
    )
    config = model_config(context)
    provider = model.tensorrt if candidate.accelerator == "trt" else None
    key = names.result_key("convert", conversion_key, model.name, config, candidate.accelerator, provider)
    volumes, mounts = data_volumes(context)
    request = ConvertRequest(
        key=key,
        conversion_key=conversion_key,
        source=dump.source.digest,
        reference=dump.key,
        model_name=model.name,
        model=model_code(context),
        candidate=candidate.name,
        format=candidate.format,
        precision=candidate.precision,
        accelerator=candidate.accelerator,
        onnx_opset=opset,
        onnx_exporter=model.onnx.exporter,
        onnx_optimized=model.onnx.optimized,
        tensorrt=TensorRtOptions(model.tensorrt.workspace_bytes, model.tensorrt.builder_optimization_level),
        gpu_product=_gpu_product(context),
        config=config,
    )
    return Work(
        stage="convert",
        key=key,
        request=request,
        deadline_seconds=context.spec.conversion.active_deadline_seconds,
        candidate=candidate.name,
        volumes=volumes,
        mounts=mounts,
        framework=True,
    )


def model_config(context: Context) -> ModelConfig:
    """What config.pbtxt says beyond the signature, the defaults filled in."""
    config = context.model.config
    batching = config.dynamic_batching or DynamicBatching()
    preferred = batching.preferred_batch_sizes
    if not preferred and batching.max_queue_delay_microseconds > 0 and config.max_batch_size > 0:
        preferred = [config.max_batch_size]
    kind = "KIND_CPU"
    if context.spec.gpu_count > 0:
        kind = "KIND_GPU" if context.settings.instance_group_kind == "Gpu" else "KIND_AUTO"
    return ModelConfig(
        instances=config.instances,
        instance_group_kind=kind,
        dynamic_batching=config.dynamic_batching is not None and config.max_batch_size > 0,
        preferred_batch_sizes=tuple(size for size in preferred if size <= config.max_batch_size),
        max_queue_delay_microseconds=batching.max_queue_delay_microseconds,
        cuda_graphs=config.cuda_graphs,
        warmup=config.warmup,
        parameters=dict(config.parameters),
    )


def _engine_cache(context: Context, candidate: Candidate, key: str) -> str:
    """Where the server's TensorRT provider keeps its engines; empty where there is no such provider."""
    if candidate.accelerator != "trt":
        return ""
    return str(layout.engine_cache_directory(_gpu_product(context), key))


def _gpu_product(context: Context) -> str:
    return context.spec.gpu.product if context.spec.gpu is not None and context.spec.gpu_count > 0 else ""


def _is_active(context: Context, work: Work) -> bool:
    """Whether a Job of the work was seen that has not ended."""
    return any(job.stage == work.stage and job.key == work.key and job.active for job in context.observed.jobs.values())


def _verdict(attempts: list[Attempt]) -> Verdict:
    failed = [attempt for attempt in attempts if attempt.state in ("Failed", "Skipped")]
    waiting_for = [attempt for attempt in attempts if attempt.state in ("Pending", "Converting")]
    if waiting_for:
        done = len(attempts) - len(waiting_for)
        trouble = next((each for each in waiting_for if each.reason not in (Reason.RUNNING, None)), waiting_for[0])
        names_ = ", ".join(each.name for each in waiting_for if each.state == "Converting")
        running = trouble.reason in (Reason.RUNNING, None)
        message = f"{done} of {len(attempts)} candidates done; converting {names_}" if running else trouble.message
        return Verdict("Converted", False, trouble.reason or Reason.RUNNING, message)
    if len(failed) == len(attempts):
        reasons = "; ".join(f"{each.name}: {each.reason}: {each.message[:200]}" for each in failed)
        return Verdict("Converted", False, Reason.ALL_CANDIDATES_FAILED, f"no candidate was converted: {reasons}")
    message = f"{len(attempts) - len(failed)} of {len(attempts)} candidates were converted"
    if failed:
        message += f"; not {', '.join(f'{each.name} ({each.reason})' for each in failed)}"
    return Verdict("Converted", True, Reason.CONVERTED, message)
