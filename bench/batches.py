"""`python3 -m bench.batches`: what a sample costs in batches of 1 to 32, for the zoo's models and `bench.defaults`'.

One thread of ONNX Runtime runs all sizes in turns, and its own CPU time counts, so that other work on the machine
changes little. Models without a batch dimension, and those of a quarter of a second, are left out. docs/decisions.md
has the figures. It takes 10 minutes, and asks PyPI for the zoo's packages the first time. No server runs.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy
import onnx
import onnxruntime

from bench.defaults import SUBJECTS
from bench.gates import subjects
from bench.machine import cpu_model
from tests.zoo.fetch import fetch
from tests.zoo.models import BY_NAME
from triton_converters.claim_store.dump import Array

SIZES = (1, 4, 8, 16, 32)
ROUNDS = 5
ROUND_SECONDS = 0.08
"""About how long each size runs in a round."""
SLOW_SECONDS = 0.25
REQUEST_MILLISECONDS = 0.2
"""What a server and its client take for a request besides the model."""
WORTH = 1.05
"""How much more throughput a batch twice as large has to give."""


def main() -> int:
    """Print a line for each model, and write the raw figures; return the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m bench.batches", description=__doc__)
    parser.add_argument("output", type=Path, metavar="FILE", help="where the raw figures go")
    options = parser.parse_args()
    found: dict[str, Mapping[int, float]] = {}
    for name, graph, sample in models():
        costs = milliseconds(graph, sample)
        if costs is None:
            continue
        found[name] = costs
        largest = grown(costs)
        told = ", ".join(f"{size}: {cost:.3f}" for size, cost in costs.items())
        print(f"{name}: {told} ms; up to {largest}, {gain(costs, largest):+.0%}", flush=True)
    document = {"cpu": cpu_model(), "millisecondsOfASample": found}
    options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def models() -> Iterator[tuple[str, Any, Mapping[str, Array]]]:
    """Yield the name, the graph and a sample of each model."""
    for name, subject in SUBJECTS.items():
        yield f"bench-{name}", subject.make(), subject.samples()[0]
    for each in subjects.SUBJECTS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, fetch(BY_NAME[each.model], Path(folder)))
            if path.suffix == ".onnx" and each.derive is None:
                yield each.name, onnx.load(path), each.sample(numpy.random.default_rng(0))


def milliseconds(graph: Any, sample: Mapping[str, Array]) -> Mapping[int, float] | None:
    """Return the CPU time of a sample in a batch of each size; None: the model is slow, or takes no batch."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    ranks = {each.name: len(each.shape) for each in session.get_inputs()}
    if any(numpy.ndim(array) + 1 != ranks[name] for name, array in sample.items()):
        return None
    feeds = {size: {name: numpy.stack([array] * size) for name, array in sample.items()} for size in SIZES}
    seconds(session, feeds[1], 1)
    alone = seconds(session, feeds[1], 1)
    if alone > SLOW_SECONDS:
        return None
    costs: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(ROUNDS):
        for size, feed in feeds.items():
            times = max(1, int(ROUND_SECONDS / (alone * size)))
            costs[size].append(1000 * seconds(session, feed, times) / times / size)
    return {size: statistics.median(each) for size, each in costs.items()}


def seconds(session: Any, feed: Mapping[str, Array], times: int) -> float:
    """Return the CPU time of this thread for some runs."""
    began = time.thread_time()
    for _ in range(times):
        session.run(None, feed)
    return time.thread_time() - began


def grown(costs: Mapping[int, float]) -> int:
    """Return where a batch of 4 ends that doubles as long as that is worth it."""
    size = 4
    while 2 * size in costs and gain(costs, 2 * size, size) >= WORTH - 1:
        size *= 2
    return size


def gain(costs: Mapping[int, float], size: int, other: int = 4) -> float:
    """Return how much more throughput batches of one size give than of another, as a share."""
    return (costs[other] + REQUEST_MILLISECONDS) / (costs[size] + REQUEST_MILLISECONDS) - 1


if __name__ == "__main__":
    sys.exit(main())
