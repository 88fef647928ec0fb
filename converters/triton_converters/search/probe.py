"""The private server of a search: it loads one configuration after the other, and each is measured."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from triton_converters.claim_store.dump import read_all, read_batches
from triton_converters.claim_store.replay import published_types
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Measurement, SearchRequest, Sweep
from triton_converters.contract.results import Row, Signature, Tuning
from triton_converters.gates import engines
from triton_converters.gates.answers import scales_of
from triton_converters.gates.candidate import ServedCandidate, judge
from triton_converters.gates.scale import Scale
from triton_converters.measuring.bench import Bench
from triton_converters.measuring.load_input import LoadInput
from triton_converters.measuring.server import Server
from triton_converters.model_config.model import retuned
from triton_converters.search.path import Setup
from triton_converters.user.dataloader import head

REPEAT_SECONDS = 2
"""Shortest window of a repeat. Its three windows are also at least twice as long as the spec's; those of a first
measurement last a second or less."""


@dataclass
class Probe:
    """The server and its current configuration."""

    request: SearchRequest
    server: Server
    signature: Signature
    """The reference's signature."""
    loaded: Tuning | None
    """The loaded configuration; None: unknown."""
    output_bytes: int = 0
    """Largest output of a sample so far, in bytes, for shared memory."""
    inputs: Path | None = None
    """Directory for perf_analyzer's input, which all points share; None: each point's own."""
    made: dict[int, LoadInput] = field(default_factory=dict)
    """perf_analyzer's input that there is already, by batch size."""
    command: str = field(default="")
    """perf_analyzer's command line for the last point."""

    def load(self, tuning: Tuning) -> str:
        """Load a configuration; return why it cannot be served, or an empty string.

        Raises StageError: ServerCrashed if the server ends because of it, ServerUnreachable.
        """
        if self.loaded == tuning:
            return ""
        self.loaded = None
        config = layout.model_repository(self.request.revision) / self.request.model_name / "config.pbtxt"
        if refusal := self.server.reload(retuned(config.read_text(encoding="utf-8"), tuning, self.request.cpus)):
            return f"tritonserver says: {refusal}"
        self.server.wait_ready()
        if failed := self._judge(tuning):
            return failed.message
        self.loaded = tuning
        return ""

    def measure(self, point: Setup, directory: Path, at_least: Row | None = None) -> Row:
        """Measure a point whose configuration is loaded; ``at_least``: its first row, if this is a repeat.

        Raises StageError: InvalidSpec (shared memory that is too small), ServerCrashed, ServerUnreachable,
        InferenceFailed, MeasurementFailed.
        """
        load = self.request.load
        if at_least is not None:
            load = replace(load, measurement=_longer(load.measurement, at_least))
        directory.mkdir(parents=True, exist_ok=True)
        home = layout.reference_directory(self.request.reference)
        bench = Bench(self.server, load, self.signature, home, directory, inputs=self.inputs, made=self.made)
        sweep = Sweep((point.load.batch_size,), (point.load.concurrency,), self.request.sweep.shared_memory)
        measured = bench.sweep(self.request.scenario, sweep, self.output_bytes)
        self.command = measured.command
        return measured.rows[0]

    @property
    def _reference(self) -> Path:
        return layout.reference_directory(self.request.reference)

    @cached_property
    def _scales(self) -> dict[str, Scale]:
        """The outputs' scales, as the profile's gate measures them."""
        batched = self.request.max_batch_size > 0
        return scales_of(read_all(self._reference), batched, self.request.tolerance, self.request.precision)

    def _judge(self, tuning: Tuning) -> StageError | None:
        """Return why a loaded configuration fails on the reference's first samples, in requests of each size."""
        batch = next(read_batches(self._reference))
        candidate = ServedCandidate(
            declared=self.server.signature,
            infer=self.server.infer,
            signature=replace(self.signature, max_batch_size=tuning.max_batch_size),
            precision=self.request.precision,
            tolerance=self.request.tolerance,
            scales=lambda: self._scales,
            batches=[head(batch, tuning.max_batch_size) if tuning.max_batch_size else batch],
            sizes=(),
            files=(),
            published_types=published_types(self.request.revision),
            keep_outputs=False,
            engine_caches=engines.directories(layout.model_repository(self.request.revision)),
        )
        failed = judge(candidate)
        if failed is None and candidate.answers is not None:
            self.output_bytes = max(self.output_bytes, *candidate.answers.output_bytes.values())
        return failed


def _longer(measurement: Measurement, row: Row) -> Measurement:
    """Return windows at least twice as long, and long enough for the throughput of the row."""
    requests = row.throughput / row.batch_size * REPEAT_SECONDS
    return replace(
        measurement,
        request_count=max(2 * measurement.request_count, math.ceil(requests)),
        interval_milliseconds=max(2 * measurement.interval_milliseconds, 1000 * REPEAT_SECONDS),
    )
