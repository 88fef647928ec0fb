"""Profile: one Job for each converted candidate, one at a time. Its pod holds a private tritonserver and a client.

Then, if the spec has metrics, one Job computes those of all candidates that passed, and they are judged here. That Job
knows no bounds, so an edit of a threshold computes nothing again.
"""

from collections.abc import Sequence
from dataclasses import replace

from triton_converters.contract import layout
from triton_converters.contract.accuracy import judge
from triton_converters.contract.measurement_requests import (
    DEFAULT_TOLERANCES,
    InputShape,
    KeptOutputs,
    Load,
    Measurement,
    MetricsRequest,
    OpenLoop,
    ProfileRequest,
    ServedModel,
    Sweep,
    Tolerance,
)
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import MetricsResult, ProfileResult
from triton_converters.contract.saturation import latency_bounds
from triton_converters.contract.text import shortened
from triton_operator import names
from triton_operator.api.performance import ConcurrencyRange, OfflineSweep, OnlineSweep
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.combination import Combination
from triton_operator.context import Context
from triton_operator.observed.jobs import Record
from triton_operator.observed.pods import Trouble
from triton_operator.resources.jobs import LOOPBACK, sidecar
from triton_operator.resources.server import GRPC_PORT, HTTP_PORT, private_inputs
from triton_operator.resources.work import Work
from triton_operator.stages.packages import packages_key
from triton_operator.stages.reference import Dump, Referred, entrypoint, served_code, surroundings, user_volumes
from triton_operator.stages.remeasuring import measured_keys
from triton_operator.stages.repairing import damage
from triton_operator.stages.source import data_digest, weights_digest
from triton_operator.stages.step import Effects, Round, Verdict, run, waiting


def profile(context: Context, progress: Referred) -> Referred:
    """Go on once every converted candidate was profiled and its metrics are computed, and one passed the gates."""
    return progress.after(profiled(context, progress.dump, progress.attempts))


def profiled(context: Context, dump: Dump, converted: Sequence[Attempt]) -> Round:
    """Return what became of the candidates' profiles and metrics.

    One Job at a time, and none while another runs: candidates must not disturb each other's figures.
    """
    attempts, effects = [], Effects()
    busy = is_measuring(context)
    for attempt in converted:
        if attempt.state != "Converted":
            attempts.append(attempt)
            continue
        work = profile_work(context, dump, attempt)
        this = run(context, work, start=not busy)
        effects += this.effects
        busy = busy or this.active
        if this.record is not None:
            attempts.append(_judged(context, attempt, work.key, this.record))
        elif this.failure is not None and this.failure.reason is Reason.REPOSITORY_DAMAGED:
            effects += damage(context, attempt.key, this.failure)
            attempts.append(attempt.now("Converted", this.failure))
        elif this.failure is not None:
            attempts.append(attempt.now("Failed", this.failure))
        elif this.active or context.spec.suspend:
            reason, words = waiting(f"the profile of candidate {attempt.name}", this, context)
            attempts.append(attempt.now("Profiling" if this.active else "Converted", Trouble(reason, words)))
        else:
            attempts.append(attempt.now("Converted", Trouble(Reason.WAITING, "the candidate waits to be profiled")))
    if not _unprofiled(attempts):
        attempts, more = _with_metrics(context, dump, attempts)
        effects += more
    return Round(_verdict(context, dump, attempts), effects, tuple(attempts))


def profile_work(context: Context, dump: Dump, attempt: Attempt) -> Work:
    """The Job's work. Its key covers the request, the client, and the server's whole pod."""
    spec = context.spec
    request = ProfileRequest(
        key="",
        revision=attempt.key,
        reference=dump.key,
        model_name=context.spec.served_name,
        max_batch_size=attempt.candidate.max_batch_size(spec),
        format=attempt.candidate.format,
        precision=attempt.candidate.precision,
        tolerance=tolerance(context, attempt.candidate.precision),
        keep_outputs=spec.metrics is not None,
        load=load(context, LOOPBACK),
        offline=offline(context, attempt.candidate),
        online=online(context, attempt.candidate),
        open_loop=open_loop(context),
        members=tuple(
            ServedModel(member.model.name, member.format, member.precision) for member in attempt.candidate.members
        )
        if spec.ensemble
        else (),
        content=attempt.conversion.content if attempt.conversion else "",
    )
    *replaced, key = measured_keys(context, "profile", request, private_inputs(context), context.client)
    return Work(
        stage="profile",
        key=key,
        request=replace(request, key=key),
        deadline_seconds=spec.performance.active_deadline_seconds,
        candidate=attempt.name,
        boxed=context.boxes_clients,
        inputs=(layout.reference_directory(dump.key), layout.revision_directory(attempt.key)),
        sidecar=sidecar(context, attempt),
        served=attempt,
        tensorrt_version=attempt.tensorrt_version,
        replaces=tuple(replaced),
    )


def metrics_work(context: Context, dump: Dump, attempts: Sequence[Attempt]) -> Work:
    """The work of the Job that computes the metrics of all these candidates, and the framework's once."""
    spec = context.spec
    assert spec.metrics is not None
    request = MetricsRequest(
        key="",
        source=dump.source.digest,
        weights=weights_digest(context),
        packages=packages_key(context, dump.source),
        data=data_digest(context),
        reference=dump.key,
        model_format=served_code(spec).format,
        max_batch_size=spec.max_batch_size,
        metrics=entrypoint(spec, spec.metrics),
        candidates=tuple(
            KeptOutputs(each.profile_key, each.candidate.format, each.candidate.precision) for each in attempts
        ),
        required=tuple(sorted(each.metric for each in spec.accuracy.thresholds)),
    )
    key = names.result_key("metrics", request, *surroundings(context))
    # A metric's arguments may name $(DATA) and $(WEIGHTS) too.
    volumes, mounts = user_volumes(context, dump.source)
    return Work(
        stage="metrics",
        key=key,
        request=replace(request, key=key),
        deadline_seconds=spec.conversion.active_deadline_seconds,
        volumes=volumes,
        mounts=mounts,
        boxed=True,
        user_code=True,
        image_id=dump.image_id,
        inputs=(
            layout.source_directory(dump.source.digest),
            layout.reference_directory(dump.key),
            *(layout.kept_outputs(each.profile_key) for each in attempts),
        ),
    )


def is_measuring(context: Context) -> bool:
    """Whether a private server is being measured, for any candidate or generation of the object.

    A pod that goes on after its measurement counts too: its server has the GPU, or memory that the next one would use.
    """
    private = [job for job in context.observed.jobs.values() if job.stage in ("profile", "search")]
    return any(job.active or job.lingers_since is not None for job in private)


def load(context: Context, host: str) -> Load:
    """The load settings that all measurements against one server share."""
    performance, measurement = context.spec.performance, context.spec.performance.measurement
    port = GRPC_PORT if performance.protocol == "grpc" else HTTP_PORT
    return Load(
        url=f"{host}:{port}",
        protocol=performance.protocol,
        http_url=f"{host}:{HTTP_PORT}",
        input_shapes=tuple(InputShape(each.input, tuple(each.dims)) for each in performance.input_shapes),
        measurement=Measurement(
            mode=measurement.mode,
            request_count=measurement.request_count,
            interval_milliseconds=measurement.interval_milliseconds,
            stability_percentage=measurement.stability_percentage,
        ),
    )


def offline(context: Context, candidate: Combination) -> Sweep:
    """The offline sweep: batches of fixed size, one request in flight."""
    maximum = max(1, candidate.max_batch_size(context.spec))
    given = context.spec.performance.offline or OfflineSweep(batch_sizes=sorted({1, maximum}))
    sizes = _served(context, candidate, given.batch_sizes)
    return Sweep(sizes, (1,), context.spec.performance.shared_memory == "System")


def online(context: Context, candidate: Combination) -> Sweep:
    """The online sweep: concurrencies for the dynamic batcher; the client sends its inputs and shares no memory."""
    # An autoscaler needs the saturation, not its lower bound.
    end = None if context.spec.serving.autoscaling else 4
    given = context.spec.performance.online or OnlineSweep(concurrency=ConcurrencyRange(start=1, end=end))
    sizes = _served(context, candidate, [given.batch_size])
    return Sweep(sizes, given.concurrency.concurrencies(), False, until_saturated=given.concurrency.end is None)


def measured_online(context: Context, attempt: Attempt) -> Sweep:
    """The concurrencies at which a profiled candidate was measured, to measure them again elsewhere."""
    sweep = online(context, attempt.candidate)
    if attempt.profile is None or not sweep.until_saturated:
        return sweep
    return replace(sweep, concurrencies=tuple(row.concurrency for row in attempt.profile.online), until_saturated=False)


def open_loop(context: Context) -> OpenLoop:
    """The request rates to measure.

    With an autoscaler, one more rate confirms that what its headroom leaves of a replica's capacity is sustained. Only
    then does the request hold constraints, whose edit measures again.
    """
    given, autoscaling = context.spec.performance.online, context.spec.serving.autoscaling
    asked = given.request_rate if given else None
    wanted = OpenLoop(tuple(sorted(set(asked.rates))), asked.distribution) if asked else OpenLoop(())
    if autoscaling is None:
        return wanted
    bounds = latency_bounds(context.spec.selection.constraints.asked())
    return replace(wanted, confirmed_percent=100 - autoscaling.headroom_percent, constraints=bounds)


def _served(context: Context, candidate: Combination, sizes: Sequence[int]) -> tuple[int, ...]:
    """The sizes that the candidate accepts; a model without a batch dimension accepts all of them."""
    maximum = candidate.max_batch_size(context.spec)
    return tuple(size for size in sizes if size <= maximum or maximum == 0)


def tolerance(context: Context, precision: str) -> Tolerance:
    """How far served outputs may differ from the framework's."""
    for each in context.spec.conversion.tolerances:
        if each.precision == precision:
            return Tolerance(float(each.absolute), float(each.relative))
    return DEFAULT_TOLERANCES[precision]


def _judged(context: Context, attempt: Attempt, key: str, record: Record) -> Attempt:
    result = record.outcome.result
    assert isinstance(result, ProfileResult)
    judged = replace(attempt, profile=result, profile_key=key, image_id=record.image_id)
    if result.passed and context.spec.metrics is not None:
        return judged.now("Profiled", Trouble(Reason.WAITING, "the candidate waits for its metrics"))
    reasons = {str(reason): reason for reason in Reason}
    trouble = Trouble(reasons.get(result.reason, Reason.CRASHED), result.message)
    return judged.now("Passed" if result.passed else "Failed", trouble)


def _with_metrics(context: Context, dump: Dump, attempts: Sequence[Attempt]) -> tuple[list[Attempt], Effects]:
    """What becomes of the candidates that wait for their metrics, and the wishes."""
    waits = [each for each in attempts if each.state == "Profiled"]
    if not waits:
        return list(attempts), Effects()
    work = metrics_work(context, dump, waits)
    this = run(context, work)
    words = f"the Job that computes the metrics of {', '.join(each.name for each in waits)}"

    def reached(attempt: Attempt) -> Attempt:
        if this.record is not None:
            result = this.record.outcome.result
            assert isinstance(result, MetricsResult)
            return _accurate(context, attempt, work.key, result)
        if this.failure is not None:
            return attempt.now("Failed", this.failure)
        return attempt.now("Profiled", Trouble(*waiting(words, this, context)))

    return [reached(each) if each.state == "Profiled" else each for each in attempts], this.effects


def _accurate(context: Context, attempt: Attempt, key: str, result: MetricsResult) -> Attempt:
    """The candidate after the accuracy gate."""
    found = judge(result, attempt.profile_key, [each.asked() for each in context.spec.accuracy.thresholds])
    judged = replace(attempt, accuracy=found.accuracy, metrics_key=key)
    passed = found.reason is Reason.PASSED
    assert attempt.profile is not None
    message = attempt.profile.message if passed else found.message
    return judged.now("Passed" if passed else "Failed", Trouble(found.reason, message))


def _unprofiled(attempts: Sequence[Attempt]) -> list[Attempt]:
    return [each for each in attempts if each.state in ("Converted", "Profiling")]


def _verdict(context: Context, dump: Dump, attempts: Sequence[Attempt]) -> Verdict:
    busy = _unprofiled(attempts)
    passed = [each.name for each in attempts if each.passed]
    if busy:
        current = next((each for each in busy if each.state == "Profiling"), busy[0])
        if current.reason not in (Reason.RUNNING, Reason.WAITING, None):
            return Verdict("Verified", False, current.reason, current.message)
        rest = f"then {len(busy) - 1} more" if len(busy) > 1 else "the last one"
        message = f"profiling candidate {current.name}, {rest}"
        return Verdict("Verified", False, Reason.RUNNING, message)
    if waits := [each for each in attempts if each.state == "Profiled"]:
        return Verdict("Verified", False, waits[0].reason or Reason.RUNNING, waits[0].message)
    if not passed:
        reasons = "; ".join(f"{each.name}: {each.reason}: {shortened(each.message, 300)}" for each in attempts)
        return Verdict("Verified", False, Reason.ALL_CANDIDATES_FAILED, f"no candidate passed the gates: {reasons}")
    message = f"{len(passed)} of {len(attempts)} candidates passed every gate: {', '.join(passed)}"
    if context.spec.dataloader is None:
        unjudged = "accuracy was not judged: for that, set spec.dataloader, spec.metrics and accuracy.thresholds"
        words = "; ".join([message, *dump.result.warnings, unjudged])
        return Verdict("Verified", True, Reason.GENERATED_INPUTS, words)
    if not context.spec.accuracy.thresholds:
        return Verdict("Verified", True, Reason.NUMERICAL_ONLY, f"{message}; no accuracy threshold is set")
    return Verdict("Verified", True, Reason.VERIFIED, message)
