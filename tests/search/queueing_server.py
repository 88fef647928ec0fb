"""Rows of a simulated server: Triton's dynamic batcher event by event, with clients that wait for their answers.

Unlike `served_row` it knows that a batch fills only as requests gather, that a delay lets them, and that latencies
scatter.
"""

from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from triton_converters.contract.results import Row, Tuning
from triton_converters.search.path import Setup

REQUESTS = 300
ARRIVED, ANSWERED, WAITED = range(3)


@dataclass
class QueueingServer:
    """A machine and its model; times in microseconds."""

    processors: int
    call: float
    """Of one execution alone."""
    sample: float
    """Of each sample in it."""
    client: float
    """From an answer to the next request."""

    def row(self, point: Setup, random: Random) -> Row:
        """What perf_analyzer would say of some hundred requests of one sample."""
        answered = _Run(self, point.tuning, random).answers(point.load.concurrency)
        steady = answered[2 * point.load.concurrency :]
        throughput = (len(steady) - 1) / (steady[-1][0] - steady[0][0]) * 1e6
        latencies = sorted(int(latency) for _, latency in steady)
        average = sum(latencies) // len(latencies)
        p50, p90, p95, p99 = (latencies[int(share * (len(latencies) - 1))] for share in (0.5, 0.9, 0.95, 0.99))
        concurrency = point.load.concurrency
        return Row(1, concurrency, throughput, 0, 0, 0, 0, average, 0, 0, p50, p90, p95, p99, average, True)


@dataclass
class _Run:
    server: QueueingServer
    tuning: Tuning
    random: Random
    queue: list[float] = field(default_factory=list)
    """Arrivals."""
    events: list[tuple[float, int, list[float]]] = field(default_factory=list)
    """When, what, and the arrivals of a batch that is answered."""
    busy: int = 0

    def answers(self, concurrency: int) -> list[tuple[float, float]]:
        """When each request was answered, and its latency."""
        found: list[tuple[float, float]] = []
        for _ in range(concurrency):
            heappush(self.events, (self.random.random() * self.server.call, ARRIVED, []))
        while len(found) < REQUESTS + 4 * concurrency:
            now, kind, batch = heappop(self.events)
            self.queue += [now] * (kind == ARRIVED)
            self.busy -= kind == ANSWERED
            for arrival in batch:
                found.append((now, now - arrival))
                heappush(self.events, (now + self.server.client * self.random.uniform(0.5, 1.5), ARRIVED, []))
            while self.queue and self.busy < self.tuning.instances and (size := self._batch(now)):
                taken, self.queue = self.queue[:size], self.queue[size:]
                self.busy += 1
                heappush(self.events, (now + self._seconds(size), ANSWERED, taken))
        return found

    def _batch(self, now: float) -> int:
        """How many requests an instance that is free takes; none while the first of them may still wait for more."""
        tuning, waiting = self.tuning, min(len(self.queue), self.tuning.max_batch_size)
        if not tuning.dynamic_batching:
            return 1
        fitting = [size for size in tuning.preferred_batch_sizes or (tuning.max_batch_size,) if size <= waiting]
        if fitting:
            return max(fitting)
        until = self.queue[0] + tuning.max_queue_delay_microseconds
        if now >= until - 1e-6:
            return waiting
        heappush(self.events, (until, WAITED, []))
        return 0

    def _seconds(self, size: int) -> float:
        crowd = max(1.0, self.busy / self.server.processors) * (1 + 0.05 * (self.busy - 1))
        hiccup = 1 + (self.random.random() < 0.02) * self.random.random()
        return (self.server.call + self.server.sample * size) * crowd * hiccup * self.random.lognormvariate(0, 0.08)
