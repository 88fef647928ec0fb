"""Rows of a server that exists on paper only: instances share processors, batches share a fixed cost, queues wait."""

from collections.abc import Callable
from dataclasses import dataclass, field

from triton_converters.contract.results import Row, Tuning
from triton_converters.search.path import Setup
from triton_converters.search.space import LoadLevel, Space

BASE = Tuning(8, 1, False, (), 0, False)
LOADS = tuple(LoadLevel(1, concurrency) for concurrency in (1, 2, 4, 8, 16, 32))


def space(base: Tuning = BASE, instances: int = 5, loads: tuple[LoadLevel, ...] = LOADS) -> Space:
    return Space(base, instances, False, loads)


def row(point: Setup, processors: int = 2, call: float = 300.0, sample: float = 40.0) -> Row:
    """``call`` and ``sample``: microseconds of one execution, and of each sample in it."""
    tuning, load = point
    waiting = load.concurrency * load.batch_size / tuning.instances
    batch = min(max(1, tuning.max_batch_size), waiting) if tuning.dynamic_batching else load.batch_size
    batch = max(1.0, batch)
    service = (call + sample * batch) * (1 + 0.05 * (tuning.instances - 1))
    wanted = min(tuning.preferred_batch_sizes, default=tuning.max_batch_size)
    delay = tuning.max_queue_delay_microseconds if tuning.dynamic_batching and waiting < wanted else 0
    most = min(tuning.instances, processors) * batch / service * 1e6
    latency = int(max(service + delay, load.concurrency * load.batch_size / most * 1e6))
    throughput = load.concurrency * load.batch_size * 1e6 / latency
    return Row(
        load.batch_size, load.concurrency, throughput, 0, 0, 0, 0, latency, 0, 0,
        latency, int(latency * 1.2), int(latency * 1.3), int(latency * 1.5), latency, True,
    )  # fmt: skip


@dataclass
class Server:
    """Answers points and remembers which it was asked for."""

    rows: Callable[[Setup], Row | None] = row
    asked: list[Setup] = field(default_factory=list)

    def __call__(self, point: Setup) -> Row | None:
        self.asked.append(point)
        return self.rows(point)
