"""What Jobs answer in the simulation, and how they fare otherwise."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from triton_converters.contract.comparison_result import ComparisonResult, MarkMetrics
from triton_converters.contract.document import Document
from triton_converters.contract.envelope import EXIT_FINAL, Outcome
from triton_converters.contract.look import LookResult
from triton_converters.contract.measurement_requests import (
    ComparisonRequest,
    ProfileRequest,
    SearchRequest,
)
from triton_converters.contract.publishing import PublishResult, target
from triton_converters.contract.quantization import Quantized
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import (
    CandidateMetrics,
    CleanResult,
    ConvertResult,
    Counters,
    Environment,
    Lengths,
    MeasureResult,
    MetricsResult,
    Mix,
    PackagesResult,
    ProfileResult,
    ReferenceResult,
    RepositoryModel,
    Row,
    SearchEnd,
    SearchPoint,
    SearchResult,
    Signature,
    SnapshotResult,
    SourceResult,
    Tensor,
    Tuning,
)
from triton_converters.contract.saturation import is_saturated
from triton_converters.contract.step_times import StepTimes
from triton_converters.contract.upkeep_requests import SnapshotRequest
from triton_converters.measuring.sweep import rates

THROUGHPUT = {("ts-trace", "fp32"): 1000, ("ts-script", "fp32"): 900, ("onnx", "fp32"): 2000, ("onnx", "fp16"): 1500}
"""Inferences per second at concurrency 1."""
SATURATED = 8
"""Concurrency from which the throughput of every server no longer rises."""
FAST = 3000
"""Of all other formats."""
TUNED = 1.5
"""How much faster the configuration is that a search finds."""
PART_POINTS = 24
"""Of a search's Job, at most."""
SPACE, REPEATS = 30, 2
"""Points of every search, and those that are measured once more at its end."""
ACCURACY = 0.98
"""Of the framework's outputs."""
CONTENT, SEEN = "c" * 64, "5" * 32
"""Digests of every revision's content, and of its files' attributes."""
SAMPLES, SIGNER = "5a" * 32, "51" * 32
"""Digests of every reference's samples, and of the public key of every signing Secret."""
TENSORRT = "10.9.0.34"
"""Builds the simulation's engines."""
ENVIRONMENT = Environment("2.51.0", "cpu", "", "", "a CPU, 2 cores", ("perf_analyzer -m digits",))
GENERATED = "inputs were generated: ids INT64[16] of 0 to 1, INPUT__0 FP32[1, 8, 8]"
"""The warning of a reference without a dataloader."""
FOUND = {
    ".onnx": "onnx",
    ".pt": "ts-script",
    "": "tf-savedmodel",
    ".txt": "lightgbm",
    **dict.fromkeys((".json", ".ubj", ".bst"), "xgboost"),
}
"""What a model's content is, by the suffix of its name."""
SERIES = "series"
"""Part of the name of a graph whose first dimension is called a length."""
FIXED = "fixed"
"""A part of the name of a graph without a batch dimension."""
INPUT, OUTPUT = Tensor("INPUT__0", "FP32", (1, 8, 8)), Tensor("OUTPUT__0", "FP32", (10,))
REPOSITORY = "repository"
"""A part of the path of a model's folder in a Triton repository; the rest is that of its file."""


QUANTIZED = Quantized("Static", 41, 38, 39.6, 3.06, 32)
"""What every INT8 graph is like."""


@dataclass(frozen=True)
class Script:
    """How a Job's pod fares, as a test wants it."""

    exit_code: int = 0
    container: str = ""
    """Name of the container before the main one that ends like this; empty: the main one does."""
    reason: Reason | None = None
    """What the stage says when it fails; None: it says nothing readable."""
    message: str = ""
    killed: str = ""
    """The kubelet's reason: OOMKilled, say."""
    answer: str | None = None
    """The termination message in place of a result."""
    sidecar_exit: int = 0
    """How the sidecar ends when the pod does."""
    sidecar_crashes: str = ""
    """tritonserver's last words as it ends again and again; the client waits for it."""
    pending: dict[str, Any] | None = None
    """The pod's status as long as it cannot start."""
    evicted: str = ""
    """Why the kubelet ends the pod once it runs; another one is made. Empty: it does not."""
    hangs: bool = False
    """Whether it goes on until somebody ends it."""
    server_tensorrt: str = ""
    """TensorRT of the server's image, where it is another than TENSORRT."""
    p99: int = 5000
    """Microseconds, of every measured row."""
    cpu: str = "a CPU, 2 cores"
    """Where it is measured."""
    command: str = "perf_analyzer -m digits"
    """How it is measured."""
    accuracy: float = ACCURACY
    """The value of each metric of every candidate's outputs."""
    before: float = ACCURACY
    """The value of each metric of every mark's answers."""
    error: float = 0.001
    """Standard error of every difference between a candidate and a mark."""
    not_comparable: str = ""
    """Why no mark is comparable; empty: each is."""
    metrics: tuple[str, ...] = ()
    """Names of the metrics that are computed; empty: those with a threshold."""
    speed: float = 1.0
    """Of every measured row, relative to what it is by default."""
    rehearsed: bool = False
    """Whether the user's code fell back to the CPU."""
    mix: Mix | None = None
    """The shapes of the samples that measurements sent; None: they have one."""
    steps: tuple[str, ...] = ()
    """The models whose times a measurement tells of."""
    content: str = ""
    """What else tells the content of a source from what was at its URI at first; the version that a look finds."""
    exact: bool = True
    """Whether versions are digests or commits."""


GOOD = Script()
MIX = Mix(64, 12, (Lengths("INPUT__0", 0, 3, 17, 64, 128),))
FINAL = Script(exit_code=EXIT_FINAL, reason=Reason.USER_CODE_FAILED, message="model.py, line 3: no")
Scripts = Callable[[str, str, Any], Script]
"""(stage, candidate, request) -> script."""


def all_good(stage: str, candidate: str, request: Any) -> Script:
    """Nothing goes wrong."""
    return GOOD


def samples_vary(stage: str, candidate: str, request: Any) -> Script:
    """Samples have different shapes."""
    return Script(mix=MIX)


@dataclass(frozen=True)
class When:
    """One script for one stage, of some candidates; all else is good. Two of the same words are equal."""

    stage: str
    script: Script
    candidates: tuple[str, ...] = ()
    """Empty: of all candidates."""

    def __call__(self, stage: str, candidate: str, request: Any) -> Script:
        """How a Job fares."""
        return self.script if stage == self.stage and (not self.candidates or candidate in self.candidates) else GOOD


def when(stage: str, script: Script, *candidates: str) -> Scripts:
    """That script for one stage (of some candidates); all else is good."""
    return When(stage, script, candidates)


def message(stage: str, candidate: str, request: Any, script: Script) -> str:
    """A container's termination message."""
    if script.answer is not None:
        return script.answer
    if script.exit_code == 0:
        return Outcome(stage, request.key, _result(stage, candidate, request, script)).to_json()
    if script.reason is None:
        return script.message
    return Outcome(stage, request.key, None, script.reason, script.message).to_json()


def counted(request: SnapshotRequest, counters: Callable[[str], Counters]) -> Script:
    """The answer with what the servers' metrics say. ``counters``: those of the pod of that name."""
    active, previous = (tuple(counters(each.name) for each in pods) for pods in (request.active, request.previous))
    return Script(answer=Outcome("snapshot", request.key, SnapshotResult(active, previous)).to_json())


def mismatch(request: Any, script: Script) -> str:
    """The termination message of a TensorRT check that failed."""
    words = f"the engine was built with TensorRT {TENSORRT}, but the server's image has {script.server_tensorrt}"
    return Outcome("profile", request.key, None, Reason.FORMAT_NOT_SERVED, words).to_json()


def row(concurrency: int, throughput: float, p99: int, batch_size: int = 1) -> Row:
    """A stable point."""
    half = p99 // 2
    return Row(batch_size, concurrency, throughput, 10, 20, 30, 1, 40, 1, 10, half, p99 - 2, p99 - 1, p99, half, True)


def repository(path: str) -> RepositoryModel | None:
    """What the config.pbtxt of a model's folder says; None: the path is no such folder."""
    if REPOSITORY not in path:
        return None
    return RepositoryModel(
        file=f"{path}/1/model{PurePosixPath(path).suffix}",
        max_batch_size=8,
        inputs=(INPUT,),
        outputs=(OUTPUT,),
        instances=2,
        dynamic_batching=True,
        preferred_batch_sizes=(4,),
        max_queue_delay_microseconds=100,
        cuda_graphs=False,
        parameters={},
        overrides="dynamic_batching {\n  default_queue_policy {\n    max_queue_size: 16\n  }\n}\n",
    )


def _result(stage: str, candidate: str, request: Any, script: Script) -> Document:
    environment = replace(ENVIRONMENT, cpu=script.cpu, perf_analyzer=(script.command,))
    if stage == "source":
        content = request.version or script.content
        digest = request.published or hashlib.sha256((request.uri + content).encode()).hexdigest()
        requirements = hashlib.sha256(request.requirements.encode()).hexdigest() if request.requirements else ""
        return SourceResult(
            digest=digest,
            files=3,
            total_bytes=1000,
            formats=tuple(FOUND[PurePosixPath(path).suffix] for path in request.models),
            batched=tuple(FIXED not in path for path in request.graphs),
            lengths=tuple(SERIES in path for path in request.graphs) if SERIES in "".join(request.graphs) else (),
            repositories=tuple(map(repository, request.models)) if any(map(repository, request.models)) else (),
            requirements=requirements,
            step_requirements=tuple(hashlib.sha256(path.encode()).hexdigest() for path in request.step_requirements),
            resolved=request.resolved,
            files_key=request.files_key,
        )
    if stage == "look":
        return LookResult(script.content or "first", script.exact, f"version {script.content or 'first'}")
    if stage == "packages":
        return PackagesResult(("compass==1.1",), 1, 1000)
    if stage == "reference":
        signature = Signature((INPUT,), (OUTPUT,), request.model.max_batch_size)
        warnings = () if request.dataloader else (GENERATED,)
        return ReferenceResult(signature, 64, 8, 1.0, warnings, script.rehearsed, samples_digest=SAMPLES)
    if stage == "convert":
        tensorrt = TENSORRT if request.format == "trt" else ""
        quantized = QUANTIZED if request.quantization else None
        return ConvertResult(
            "e" * 64, 1000, ("FP32",), 1.0, (), tensorrt, 1e-6, CONTENT, script.rehearsed, quantized=quantized
        )
    if stage == "clean":
        return CleanResult(1, 0)
    if stage == "publish":
        digest = hashlib.sha256((request.uri + request.revision).encode()).hexdigest()
        tag = target(request.uri).tag or request.revision
        return PublishResult(f"sha256:{digest}", tag, 1000, SIGNER if request.signs else "")
    if stage == "measure":
        online = _online(request, 1000 * script.speed, script)
        # At each load of another length, or nobody sees a figure of the wrong one.
        queues = tuple(100 * each.concurrency for each in online)
        steps = tuple(StepTimes(name, queues, (1000 + at,) * len(online)) for at, name in enumerate(script.steps))
        return MeasureResult(online, environment, script.mix, steps)
    if stage == "metrics":
        computed = script.metrics or request.required or ("accuracy",)
        served = (script.accuracy,) * len(computed)
        candidates = tuple(CandidateMetrics(each.profile, served) for each in request.candidates)
        return MetricsResult(computed, (ACCURACY,) * len(computed), candidates)
    if stage == "comparison":
        return _compared(request, script)
    if stage == "search":
        return _search(request, script)
    usual = THROUGHPUT.get((request.format.rpartition("+")[2], request.precision), FAST)
    throughput = usual * (TUNED if candidate.endswith(".tuned") else 1) * script.speed
    online = _online(request, throughput, script)
    return ProfileResult(
        passed=True,
        reason=str(Reason.PASSED),
        message="",
        max_absolute_error=1e-6,
        samples=64,
        offline=tuple(row(1, throughput * (1 + each / 10), script.p99, each) for each in request.offline.batch_sizes),
        online=online,
        environment=environment,
        stat_digest=SEEN,
        request_rate=_at_rates(request, online, script),
        mix=script.mix,
    )


def _compared(request: ComparisonRequest, script: Script) -> ComparisonResult:
    """What each mark reaches, and how sure that is."""
    values = (script.before,) * len(request.required)
    errors = ((script.error,) * len(request.required),) * len(request.candidates)
    noise = (0.0,) * len(request.required)
    marks = tuple(
        MarkMetrics(each.revision, message=script.not_comparable)
        if script.not_comparable
        else MarkMetrics(each.revision, values, errors, noise)
        for each in request.marks
    )
    profiles = tuple(each.profile for each in request.candidates)
    return ComparisonResult(64, request.required, profiles, marks)


def _search(request: SearchRequest, script: Script) -> SearchResult:
    """One part of a walk over more instances and longer delays; the best point is the 18th."""
    first = request.part * PART_POINTS
    last = min(first + PART_POINTS, request.measurements - REPEATS, SPACE)
    whole = SearchEnd.CONVERGED if last == SPACE else SearchEnd.MEASUREMENTS_SPENT
    ended = SearchEnd.GOES_ON if last == first + PART_POINTS else whole
    best = THROUGHPUT["onnx", "fp32"] * 1.4 * TUNED * script.speed
    points = tuple(
        SearchPoint(
            Tuning(request.max_batch_size, 2 + number % 4, True, (), 100 * (number // 4), False),
            row(4, best * (1 - abs(number - 17) / 30), script.p99),
        )
        for number in range(last)
    )
    repeats = tuple(sorted(points, key=lambda point: -_throughput(point))[:REPEATS]) if ended else ()
    seconds = 5.0 * (last + len(repeats))
    return SearchResult(request.search, points[first:], ended, SPACE, seconds, ENVIRONMENT, repeats)


def _throughput(point: SearchPoint) -> float:
    return point.row.throughput if point.row else 0.0


def _online(request: Any, throughput: float, script: Script) -> tuple[Row, ...]:
    (batch,) = request.online.batch_sizes
    rows: list[Row] = []
    for each in request.online.concurrencies:
        rows.append(row(each, throughput * (1 + min(each, SATURATED) / 10), script.p99, batch))
        if request.online.until_saturated and is_saturated(rows):
            break
    return tuple(rows)


def _at_rates(request: ProfileRequest, online: Sequence[Row], script: Script) -> tuple[Row, ...]:
    """A server that keeps up with every rate."""
    points = rates(request.open_loop, request.online, online)
    return tuple(
        replace(row(0, each.rate * each.batch_size, script.p99, each.batch_size), request_rate=each.rate)
        for each in points
    )
