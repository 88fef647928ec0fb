"""Sweeps against one server, as the profile, search and measure stages need them."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from math import ceil, prod
from pathlib import Path

from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Load, OpenLoop, Sweep
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Row, Signature, Tensor
from triton_converters.measuring import load_input
from triton_converters.measuring.budget import FEWEST_POINTS, Budget, total_seconds
from triton_converters.measuring.environment import device, free_shared_bytes, memory_bytes
from triton_converters.measuring.load_input import LoadInput
from triton_converters.measuring.pace import Pace
from triton_converters.measuring.perf_analyzer import Point, Target, allocator
from triton_converters.measuring.server import Server
from triton_converters.measuring.settings import SETTINGS
from triton_converters.measuring.sweep import Measured, Plan, measure, points, rates, run_process
from triton_converters.model_config.data_types import BYTES, numpy_type, wire_bytes


@dataclass(frozen=True)
class Alone:
    """How one request went, with nothing else under way; zeros if none was sent."""

    seconds: float = 0.0
    """The shortest time that it took."""
    largest_output: int = 0
    """In bytes."""
    output_bytes: int = 0
    """All outputs together."""
    input_bytes: int = 0
    """All inputs together."""


@dataclass(frozen=True)
class Bench:
    """A server that is ready to be measured, with the load for it."""

    server: Server
    load: Load
    signature: Signature
    reference: Path
    """Directory of the reference."""
    directory: Path
    """perf_analyzer's working directory."""
    pace: Pace = field(default_factory=Pace)
    inputs: Path | None = None
    """Directory of perf_analyzer's input, if something has to be made; None: ``directory``."""
    made: dict[int, LoadInput] = field(default_factory=dict)
    """The input that there is already, by batch size; benches whose directories are neighbours may share it."""
    seconds: int = 0
    """Time of all sweeps together, as ``budget.total_seconds`` takes it. It ends those that go on until saturation."""

    def sweep(self, scenario: str, sweep: Sweep, output_bytes: int = 0, later: tuple[Point, ...] = ()) -> Measured:
        """Measure every point; ``output_bytes``: a sample's largest output in the reference, for shared memory.

        ``later``: the points that are measured after these, which the log counts in.

        Raises StageError: InvalidSpec (input shapes, or shared memory that is too small), MeasurementFailed,
        InferenceFailed, ServerCrashed, ServerUnreachable.
        """
        if not sweep.batch_sizes:
            return Measured((), "")
        if self.signature.max_batch_size:
            return self._measure(sweep, points(scenario, sweep), output_bytes, later)
        # Requests of each size come from their own file.
        sizes = [replace(sweep, batch_sizes=(size,)) for size in sweep.batch_sizes]
        of_size = [points(scenario, each, batched=False) for each in sizes]
        after = [(*chain.from_iterable(of_size[number:]), *later) for number in range(1, len(sizes) + 1)]
        parts = [
            self._measure(each, wanted, output_bytes, rest)
            for each, wanted, rest in zip(sizes, of_size, after, strict=True)
        ]
        return Measured(tuple(row for part in parts for row in part.rows), parts[0].command)

    def at_rates(self, asked: OpenLoop, sweep: Sweep, rows: Sequence[Row], output_bytes: int = 0) -> Measured:
        """Measure request rates; ``sweep`` and ``rows``: the online sweep and what it measured.

        ``output_bytes``: as of ``sweep``, which also tells what this raises.
        """
        wanted = rates(asked, sweep, rows, self.signature.max_batch_size > 0)
        if not wanted:
            return Measured((), "")
        return self._measure(replace(sweep, until_saturated=False), wanted, output_bytes)

    def _measure(
        self, sweep: Sweep, wanted: Sequence[Point], output_bytes: int, later: tuple[Point, ...] = ()
    ) -> Measured:
        found = self._input(sweep.batch_sizes[0])
        varies = bool(self.load.input_shapes or found.mixed_file)
        # It needs gRPC, which is avoided if possible for a server that is measured over HTTP.
        asks = self.load.protocol == "grpc" or (sweep.shared_memory and varies)
        alone = [self._one_request(each.document, asks) for each in found.of_shapes]
        of_shapes = tuple(
            replace(self._target(sweep, each.file, of_one, each.document), weight=each.samples)
            for each, of_one in zip(found.of_shapes, alone, strict=True)
        )
        whole = _whole(alone, [each.samples for each in found.of_shapes])
        target = of_shapes[0]
        if found.mixed_file:
            target = replace(self._target(sweep, found.mixed_file, whole), samples=found.mixed_samples)
        region = None
        if sweep.shared_memory:
            region = max(output_bytes, SETTINGS.output_room * whole.largest_output) if varies else output_bytes
        used_memory = partial(self.server.used_memory, device(self.server.configs()))
        shapes = of_shapes if found.mixed_file else ()
        budget = Budget(
            total_seconds(self.seconds, target.sample_seconds),
            min(len(wanted), FEWEST_POINTS) if sweep.until_saturated else len(wanted),
            sweep.until_saturated,
        )
        plan = Plan(
            target=target,
            measurement=self.load.measurement,
            directory=self.directory,
            output_bytes=region,
            used_memory=used_memory,
            later=later,
            pace=self.pace,
            of_shapes=shapes,
            budget=budget,
            look=self.server.configs,
        )
        if region is not None:
            self._check_shared_memory(plan, wanted, region)
        most = memory_bytes() * SETTINGS.memory_percent // 100
        invoke = partial(run_process, environment=allocator(target, wanted), most_bytes=most)
        return measure(plan, wanted, invoke)

    def _check_shared_memory(self, plan: Plan, wanted: Sequence[Point], region: int) -> None:
        """Raise StageError(InvalidSpec) if there is no room for perf_analyzer's regions.

        ``region``: bytes of a sample's output whose size varies. Content in base64 is a third longer than in a region,
        which leaves room for what the server itself keeps there. Whoever writes to more than there is gets a SIGBUS.
        """
        outputs = sum(_fixed_bytes(each) or region for each in self.signature.outputs)
        needed = {
            point: point.client_batch_size
            * (outputs + max((self.directory / run.target.input_data).stat().st_size for run in plan.runs(point)))
            for point in wanted
        }
        largest, free = max(needed, key=needed.__getitem__), free_shared_bytes()
        if needed[largest] > free:
            scenario = "Offline" if largest.scenario == "offline" else "Online"
            raise StageError(
                Reason.INVALID_SPEC,
                f"the shared memory for {largest} ({largest.scenario}) takes up to {needed[largest] >> 20} MiB of"
                f" /dev/shm, which has {free >> 20} left; raise spec.serving.sharedMemorySize, lower the batch size, or"
                f" take {scenario} out of spec.performance.sharedMemory",
            )

    def _input(self, batch_size: int) -> LoadInput:
        """Return perf_analyzer's input, named from its working directory. Raises StageError(InvalidSpec)."""
        if batch_size in self.made:
            return self.made[batch_size]
        written = self.inputs or self.directory
        written.mkdir(exist_ok=True)
        found = load_input.prepare(self.reference, written, self.load.input_shapes, self.signature, batch_size)
        if self.inputs is not None:
            found = found.below(Path(os.path.relpath(written, self.directory)))
        self.made[batch_size] = found
        return found

    def _target(self, sweep: Sweep, file: str, alone: Alone, document: str = "") -> Target:
        """Return what is measured with a file; ``document``: its content, if all of its samples have one shape."""
        samples = 1 if self.signature.max_batch_size else sweep.batch_sizes[0]
        return Target(
            self.server.model,
            str(self.server.load),
            self.load.protocol,
            file,
            load_input.varying_shapes(document, self.signature) if document else (),
            alone.seconds / samples or (self.pace.sample_seconds if self.seconds else 0.0),
            0 if sweep.shared_memory else ceil((alone.input_bytes + alone.output_bytes) / samples),
            memory_bytes() // 2,
        )

    def _one_request(self, document: str, asks: bool) -> Alone:
        """Send one real request in the document's shapes, and again while that takes little time; unless not ``asks``.

        The size of the request is known in any case.
        """
        request = load_input.first_request(document, self.signature)
        inputs = sum(map(wire_bytes, request.values()))
        if not asks:
            return Alone(input_bytes=inputs)
        names = tuple(tensor.name for tensor in self.signature.outputs)
        times: list[float] = []
        while len(times) < SETTINGS.alone_requests and sum(times) < SETTINGS.alone_seconds:
            started = time.monotonic()
            answer = self.server.infer(request, names)
            times.append(time.monotonic() - started)
        outputs = [wire_bytes(array) for array in answer.values()]
        return Alone(min(times), max(outputs), sum(outputs), inputs)


def _fixed_bytes(tensor: Tensor) -> int:
    """Return the bytes of a sample's tensor; 0 if they vary."""
    if tensor.data_type == BYTES or -1 in tensor.dims:
        return 0
    return prod(tensor.dims) * numpy_type(tensor.data_type).itemsize


def _whole(alone: Sequence[Alone], counts: Sequence[int]) -> Alone:
    """Return the mean time of requests of several shapes, and the most bytes; ``counts``: how many have each shape."""
    seconds = sum(each.seconds * count for each, count in zip(alone, counts, strict=True)) / sum(counts)
    largest = max(alone, key=lambda each: each.input_bytes + each.output_bytes)
    return replace(largest, seconds=seconds, largest_output=max(each.largest_output for each in alone))
