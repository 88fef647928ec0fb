"""Samples of different shapes: which are sent, in which order, and what stands for them in larger requests. Pure.

Triton's dynamic batcher never puts requests of different shapes into one batch, so a server is as fast as the shapes
that its clients send, and as their order: seen with perf_analyzer 2.60, requests whose two shapes took turns ran at
406 a second, the same requests sorted by shape at 1,199. So requests of one sample have the samples' own shapes, in an
order by chance, as clients that know nothing of each other send them. perf_analyzer makes no request of several samples
whose shapes differ, and neither can a client: there each shape is measured, and counts as often as samples have it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, prod
from random import Random

from triton_converters.contract.results import Lengths, Mix, Row, Signature
from triton_converters.measuring.settings import SETTINGS
from triton_converters.model_config.shapes import Shape

PERCENTILES = (("p50", 50), ("p90", 90), ("p95", 95), ("p99", 99))
MEANS = ("client_send", "network", "queue", "compute_input", "compute_infer", "compute_output", "client_receive")


@dataclass(frozen=True)
class Picked:
    """A sample of the reference: where it is, and how large."""

    batch: int
    """Number of its batch."""
    index: int
    """The sample's place in the batch; 0 for a model without a batch dimension, whose batch is one request."""
    shapes: tuple[Shape, ...]
    """The shape of each input in requests, in the signature's order, without the batch dimension."""
    size: int = 0
    """Bytes that it takes in perf_analyzer's input."""


@dataclass(frozen=True)
class Group:
    """Samples that one shape stands for."""

    shapes: tuple[Shape, ...]
    """The shape of each input."""
    samples: int
    """How many there are."""


def is_mixed(samples: Sequence[Picked]) -> bool:
    """Whether the samples have several shapes."""
    return len({each.shapes for each in samples}) > 1


def sent(samples: Sequence[Picked], limit_bytes: int) -> tuple[Picked, ...]:
    """Return the samples that are sent in turn: evenly by size if there are too many, in an order by chance.

    Those at the end that do not fit into ``limit_bytes`` together are left out, but for the first.
    """
    ordered = sorted(samples, key=lambda each: (_elements(each.shapes), each.shapes))
    if len(ordered) > SETTINGS.most_mixed_samples:
        last = len(ordered) - 1
        most = SETTINGS.most_mixed_samples
        ordered = [ordered[number * last // (most - 1)] for number in range(most)]
    Random(SETTINGS.seed).shuffle(ordered)  # noqa: S311 - the same order each time, and no secret
    taken = ordered[:1]
    left = limit_bytes - sum(each.size for each in ordered[:1])
    for each in ordered[1:]:
        left -= each.size
        if left < 0:
            break
        taken.append(each)
    return tuple(taken)


def groups(samples: Sequence[Picked]) -> tuple[Group, ...]:
    """Return at most ``most_shapes`` shapes, from small to large, and how many of the samples each stands for."""
    ordered = sorted((each.shapes for each in samples), key=lambda shapes: (_elements(shapes), shapes))
    if len(set(ordered)) <= SETTINGS.most_shapes:
        return tuple(Group(shapes, ordered.count(shapes)) for shapes in dict.fromkeys(ordered))
    found: dict[tuple[Shape, ...], int] = {}
    start = 0
    for percent in SETTINGS.shape_percentiles:
        end = ceil(len(ordered) * percent / 100)
        if end > start:
            found[ordered[end - 1]] = found.get(ordered[end - 1], 0) + end - start
        start = end
    return tuple(Group(shapes, count) for shapes, count in found.items())


def describe(samples: Sequence[Picked], signature: Signature) -> Mix:
    """Return how long the dimensions are that vary over the samples; equal lengths are told of one input."""
    columns: dict[tuple[int, ...], Lengths] = {}
    for number, tensor in enumerate(signature.inputs):
        for dimension, sizes in enumerate(zip(*(each.shapes[number] for each in samples), strict=True)):
            if len(set(sizes)) > 1 and sizes not in columns:
                columns[sizes] = _lengths(tensor.name, dimension, sorted(sizes))
    return Mix(len(samples), len({each.shapes for each in samples}), tuple(columns.values())[: SETTINGS.most_lengths])


def combined(rows: Sequence[Row], counts: Sequence[int]) -> Row:
    """Return the figures of one load over shapes that were measured one by one; ``counts``: how many samples have each.

    The requests of a client take turns, so the time of a sample is the mean, and so are the parts of a latency. From
    percentiles alone no percentile of all is known: the figure is the least that is certainly not too small.
    """
    total = sum(counts)
    weighted = list(zip(rows, counts, strict=True))
    means = {name: round(sum(getattr(row, name) * count for row, count in weighted) / total) for name in MEANS}
    percentiles = {name: _percentile(weighted, level) for name, level in PERCENTILES}
    return replace(
        rows[0],
        **means,
        **percentiles,
        throughput=total / sum(count / row.throughput for row, count in weighted),
        average=round(sum(row.average * count for row, count in weighted) / total),
        stable=all(row.stable for row in rows),
        spread=max(row.spread for row in rows),
        client_bound=any(row.client_bound for row in rows),
        memory_bytes=max(row.memory_bytes for row in rows),
    )


def _percentile(rows: Sequence[tuple[Row, int]], level: int) -> int:
    """Return the lowest latency below which ``level`` percent of all requests certainly are."""
    total = sum(count for _, count in rows)
    known: list[int] = sorted(getattr(row, name) for row, _ in rows for name, _ in PERCENTILES)

    def below(latency: int) -> int:
        return sum(
            count * max((percent for name, percent in PERCENTILES if getattr(row, name) <= latency), default=0)
            for row, count in rows
        )

    return next(latency for latency in known if below(latency) >= level * total)


def _elements(shapes: tuple[Shape, ...]) -> int:
    return sum(map(prod, shapes))


def _lengths(name: str, dimension: int, ordered: Sequence[int]) -> Lengths:
    def at(percent: int) -> int:
        return ordered[ceil(len(ordered) * percent / 100) - 1]

    return Lengths(name, dimension, ordered[0], at(50), at(90), ordered[-1])
