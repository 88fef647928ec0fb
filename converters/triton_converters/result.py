"""What a Job answers: one JSON document of at most 4,000 bytes in its container's termination message.

The kubelet cuts a message at 4,096 bytes without a word, so a longer one is refused here. The same document lies as
``result.json`` in the directory of its key on the claim. Shared by the Jobs and the controller; standard library only.
"""

import base64
import json
import zlib
from dataclasses import asdict, dataclass
from typing import Any, Self

from triton_converters.document import Document, DocumentError
from triton_converters.reasons import Reason, reason_of

MESSAGE_LIMIT_BYTES = 4000
EXIT_FINAL = 42
"""Exit code of a failure that running the same Job again cannot mend; its podFailurePolicy fails the Job at once."""


@dataclass(frozen=True)
class Tensor(Document):
    """An input or output as config.pbtxt declares it."""

    name: str
    data_type: str
    """Triton's name: FP32, INT64, BOOL, BYTES, ..."""
    dims: tuple[int, ...]
    """Without the batch dimension; -1: varies."""


@dataclass(frozen=True)
class Signature(Document):
    """Names, types and shapes every candidate serves."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    max_batch_size: int
    """Samples; 0: no batch dimension."""


@dataclass(frozen=True)
class Row:
    """One measured point. Latencies in microseconds; perf_analyzer's CSV columns in its order.

    perf_analyzer reports network and server send/receive as one figure, so seven components stand for the eight steps
    of a request: client send, network + server send/receive (three steps), queue, compute input, infer and output,
    client receive.
    """

    batch_size: int
    concurrency: int
    throughput: float
    """Inferences (samples) per second."""
    client_send: int
    network: int
    queue: int
    compute_input: int
    compute_infer: int
    compute_output: int
    client_receive: int
    p50: int
    p90: int
    p95: int
    p99: int
    average: int
    stable: bool
    """False: no three windows agreed within the stability percentage; the row is three merged whatever they show."""
    spread: float = 0.0
    """How much the merged windows' throughput differs: (largest - smallest) / mean, per cent; 0.0 where unknown."""
    client_bound: bool = False
    """True: the client itself was the limit, so the server could do more."""
    memory_bytes: int = 0
    """Most memory in use while the row was measured, in whole MiB: of the GPUs as Triton's metrics say; without a GPU
    of the whole node, whatever uses it. 0 where unknown."""


@dataclass(frozen=True)
class Accuracy(Document):
    """One metric, computed by the user's MetricsCalculator on both sets of outputs."""

    metric: str
    framework: float
    served: float
    threshold: str
    """What was asked, in words ("minimum 0.95"); empty where nothing was."""
    passed: bool


@dataclass(frozen=True)
class Environment(Document):
    """Where a measurement was taken; results are comparable only where these agree."""

    server_version: str
    device: str
    """``cpu`` or ``gpu``: read back from the loaded model's instance groups and the server's metrics."""
    gpu_product: str
    tensorrt_version: str
    cpu: str
    perf_analyzer: tuple[str, ...]
    """The argv of one invocation per scenario; only -b and --concurrency-range differ between its points."""


@dataclass(frozen=True)
class SourceResult(Document):
    """The published source."""

    digest: str
    """SHA-256 as 64 hexadecimal digits."""
    files: int
    total_bytes: int


@dataclass(frozen=True)
class ReferenceResult(Document):
    """The framework's dump."""

    signature: Signature
    samples: int
    batches: int
    seconds: float


@dataclass(frozen=True)
class ConvertResult(Document):
    """A published revision."""

    file_sha256: str
    file_bytes: int
    data_types: tuple[str, ...]
    """Floating point types of the file's own weights, read back after the conversion."""
    seconds: float
    warnings: tuple[str, ...]
    tensorrt_version: str
    """Of the TensorRT that made the file; empty where none did."""
    max_absolute_error: float | None
    """Against the framework's floating point outputs, of the file run by its own runtime in the Job, without Triton.

    Over the first samples of the reference; None where the Job has no runtime of the format.
    """


@dataclass(frozen=True)
class ProfileResult(Document):
    """The gates' verdict and the sweeps of one candidate; where a gate failed the sweeps are empty."""

    passed: bool
    reason: str
    """A Reason's value: ``Passed`` or the first gate that failed."""
    message: str
    max_absolute_error: float
    accuracy: tuple[Accuracy, ...]
    samples: int
    offline: tuple[Row, ...]
    online: tuple[Row, ...]
    environment: Environment


@dataclass(frozen=True)
class MeasureResult(Document):
    """The online sweep of the server that is about to serve."""

    online: tuple[Row, ...]
    environment: Environment


@dataclass(frozen=True)
class Tuning:
    """What a search varies of a model's configuration; the same fields of ``request.ModelConfig``."""

    max_batch_size: int
    """Samples; 0: no batch dimension."""
    instances: int
    dynamic_batching: bool
    preferred_batch_sizes: tuple[int, ...]
    max_queue_delay_microseconds: int
    cuda_graphs: bool


@dataclass(frozen=True)
class SearchPoint:
    """A configuration and one row of it; or a configuration that cannot be served, and why."""

    tuning: Tuning
    row: Row | None
    refused: str = ""
    """Where there is no row: how it failed, in words."""


@dataclass(frozen=True)
class SearchResult(Document):
    """What one Job of a search measured."""

    search: str
    """Names the file of all parts' points on the claim."""
    points: tuple[SearchPoint, ...]
    """In the path's order; not those of earlier parts, nor the profile's."""
    ended: str
    """``Converged``, ``Complete`` (exhaustive), ``MeasurementsSpent``, ``TimeSpent``; empty: another part goes on."""
    size: int
    """Points of the whole space: what an exhaustive search would measure."""
    seconds: float
    """That measuring took, of this part's points and those before it."""
    environment: Environment
    repeats: tuple[SearchPoint, ...] = ()
    """Of the last part, where something better than the base was found: the best point, and the best of another
    configuration, measured once more with longer windows."""


@dataclass(frozen=True)
class CleanResult(Document):
    """What was removed."""

    directories: int
    temporary: int


RESULTS: dict[str, type[Document]] = {
    "source": SourceResult,
    "reference": ReferenceResult,
    "convert": ConvertResult,
    "profile": ProfileResult,
    "search": SearchResult,
    "measure": MeasureResult,
    "clean": CleanResult,
}
"""The result's type by stage."""


class MessageTooLongError(ValueError):
    """The document does not fit into a termination message."""


@dataclass(frozen=True)
class Outcome:
    """The envelope: which stage and key, and either a result or a reason with a message."""

    stage: str
    key: str
    result: Document | None
    reason: Reason | None = None
    message: str = ""

    def to_json(self) -> str:
        """Compact JSON with rows as arrays; a result that is too long is deflated, a failure's message shortened.

        Raises MessageTooLongError where a result exceeds MESSAGE_LIMIT_BYTES all the same.
        """
        if self.result is None:
            return self._envelope(reason=str(self.reason), message=_shorten(self.message))
        packed = _pack(asdict(self.result))
        text = self._envelope(result=packed)
        if len(text.encode()) > MESSAGE_LIMIT_BYTES:
            text = self._envelope(deflated=base64.b85encode(zlib.compress(_compact(packed).encode(), 9)).decode())
        if len(text.encode()) > MESSAGE_LIMIT_BYTES:
            raise MessageTooLongError(f"{self.stage}: {len(text.encode())} bytes, at most {MESSAGE_LIMIT_BYTES}")
        return text

    def _envelope(self, **content: Any) -> str:
        return _compact({"stage": self.stage, "key": self.key} | content)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse an envelope; raises DocumentError where it is not one."""
        try:
            envelope = json.loads(text)
            stage, key = envelope["stage"], envelope["key"]
            if "deflated" in envelope:
                envelope["result"] = json.loads(zlib.decompress(base64.b85decode(envelope["deflated"])))
            if "result" in envelope:
                return cls(stage, key, RESULTS[stage].from_value(_unpack(envelope["result"])))
            return cls(stage, key, None, reason_of(envelope["reason"]), str(envelope["message"]))
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            if isinstance(error, DocumentError):
                raise
            raise DocumentError(f"not a result: {error}") from error


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _shorten(message: str) -> str:
    """Beginning and end of a long message: the place is named first, the cause last.

    Backslashes, quotes and line ends double in JSON and other control characters (replaced here) would take six bytes
    each, so a quarter of the limit always fits.
    """
    printable = "".join(c if c.isprintable() or c in "\n\t" else " " for c in message)
    text, limit = printable.encode(errors="replace"), MESSAGE_LIMIT_BYTES // 4
    if len(text) <= limit:
        return text.decode()
    head, tail = text[: limit // 3], text[-(limit - limit // 3) + 5 :]
    return f"{head.decode(errors='ignore')} ... {tail.decode(errors='ignore')}"


_SCENARIOS = {"offline", "online"}
_COLUMNS = tuple(Row.__dataclass_fields__)
_FLAGS = {"stable", "client_bound"}
_MEBIBYTE = 2**20
_TUNING_COLUMNS = tuple(Tuning.__dataclass_fields__)
_TUNING_FLAGS = ("dynamic_batching", "cuda_graphs")
_ACCURACY = "accuracy"
_ACCURACY_COLUMNS = tuple(Accuracy.__dataclass_fields__)
_POINTS = {"points", "repeats"}


def _pack(result: dict[str, Any]) -> dict[str, Any]:
    """Rows, points and metrics become arrays in the order of their fields: names would take twice the bytes."""
    packed = dict(result)
    for scenario in packed.keys() & _SCENARIOS:
        packed[scenario] = [_pack_row(row) for row in packed[scenario]]
    for name in packed.keys() & {_ACCURACY}:
        packed[name] = [
            [float(f"{value:.7g}") if isinstance(value, float) else value for value in each.values()]
            for each in packed[name]
        ]
    for name in packed.keys() & _POINTS:
        packed[name] = [
            [_pack_tuning(each["tuning"]), _pack_row(each["row"]) if each["row"] else None, each["refused"]]
            for each in packed[name]
        ]
    return packed


def _unpack(result: dict[str, Any]) -> dict[str, Any]:
    unpacked = dict(result)
    for scenario in unpacked.keys() & _SCENARIOS:
        unpacked[scenario] = [_unpack_row(row) for row in unpacked[scenario]]
    for name in unpacked.keys() & {_ACCURACY}:
        unpacked[name] = [dict(zip(_ACCURACY_COLUMNS, each, strict=True)) for each in unpacked[name]]
    for name in unpacked.keys() & _POINTS:
        unpacked[name] = [
            {"tuning": _unpack_tuning(tuning), "row": _unpack_row(row) if row else None, "refused": refused}
            for tuning, row, refused in unpacked[name]
        ]
    return unpacked


def _pack_row(row: dict[str, Any]) -> list[Any]:
    small = row | {"memory_bytes": row["memory_bytes"] // _MEBIBYTE}
    return [round(value, 1) if isinstance(value, float) else int(value) for value in small.values()]


def _unpack_row(row: list[Any]) -> dict[str, Any]:
    if len(row) > len(_COLUMNS):
        raise ValueError(f"a row of {len(row)} columns; there are {len(_COLUMNS)}")
    # Rows of earlier versions have fewer.
    named = dict(zip(_COLUMNS, row, strict=False))
    if "memory_bytes" in named:
        named["memory_bytes"] *= _MEBIBYTE
    return named | {flag: bool(named[flag]) for flag in _FLAGS & named.keys()}


def _pack_tuning(tuning: dict[str, Any]) -> list[Any]:
    return [int(value) if isinstance(value, bool) else value for value in tuning.values()]


def _unpack_tuning(tuning: list[Any]) -> dict[str, Any]:
    named = dict(zip(_TUNING_COLUMNS, tuning, strict=True))
    return named | {flag: bool(named[flag]) for flag in _TUNING_FLAGS}
