"""Walk on all cores until so many steps were taken, and print what was done and what did not hold."""

import argparse
import json
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.simulation.api_server import BrokenError
from tests.simulation.walk.shortest import shortest
from tests.simulation.walk.walking import LENGTH, Failed, Walk, drawn, why

BATCH = 2
"""Walks that a process takes before it tells."""
MOST_FAILURES = 20
"""After so many failures, the walk ends early."""


@dataclass
class Told:
    """What some walks did."""

    passes: int = 0
    plans: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    failed: list[Failed] = field(default_factory=list)


def take(seed: int) -> Told:
    """Take the walks of one seed."""
    logging.disable(logging.CRITICAL)
    told, walks = Told(), drawn(seed)
    for _ in range(BATCH):
        gpus, steps = next(walks)
        walk = Walk(gpus)
        try:
            for each in steps:
                walk.take(each)
            walk.end()
        except (BrokenError, Exception):
            kept, said = shortest(walk.taken, lambda fewer, gpus=gpus: why(gpus, fewer))  # type: ignore[misc]  # a default binds the loop variable
            told.failed.append(Failed(gpus, kept, said or "it does not fail again"))
        told.kinds.update(name for name, _ in walk.taken)
        told.passes += walk.world.passes
        told.plans += walk.world.plans
    return told


def walk_all(seed: int, steps: int, cores: int) -> Iterator[Told]:
    """Take so many steps with seeds from that one on, and yield what each batch tells."""
    batches = max(1, round(steps / LENGTH / BATCH))
    if cores == 1:
        yield from map(take, range(seed, seed + batches))
        return
    with ProcessPoolExecutor(cores) as pool:
        yield from pool.map(take, range(seed, seed + batches))


def table(failed: Failed) -> str:
    """A failure as a table of its steps, and the command that walks them again."""
    rows = [f"  {name:26} {json.dumps(what)}" for name, what in failed.steps]
    again = json.dumps([failed.gpus, failed.steps])
    return "\n".join(
        [failed.why, f"  GPUs: {failed.gpus}", *rows, f"  python3 -m tests.simulation.walk --replay '{again}'"]
    )


def _replay(text: str) -> int:
    """Walk by a list of steps, and print what the object says after each."""
    gpus, steps = json.loads(text if text.startswith("[") else Path(text).read_text())
    walk = Walk(gpus)
    try:
        for name, what in steps:
            walk.take((name, what))
            status: Any = walk.world.cluster.status
            ready: Any = next((each for each in status.get("conditions", []) if each["type"] == "Ready"), {})
            said = f"{ready.get('status')} {ready.get('reason')}: {ready.get('message', '')[:100]}"
            print(f"{walk.world.cluster.now:%H:%M:%S} {name}: {json.dumps(what)}\n    {said}")
        walk.end()
    except BrokenError as error:
        print(f"{walk.world.cluster.now:%H:%M:%S} {walk.taken[-1:]}\n{error}")
        return 1
    return 0


def main() -> int:
    """Walk, or walk again by a list of steps."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.simulation.walk", description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000, help="how many; default: a million")
    parser.add_argument("--seed", type=int, default=1, help="of the first batch of walks; default: 1")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="processes; default: one for each core")
    parser.add_argument("--replay", help="the steps of a failure, or a file with them: [GPUs, [[NAME, VALUE], ...]]")
    options = parser.parse_args()
    if options.replay:
        return _replay(options.replay)
    began, told = time.monotonic(), Told()
    for each in walk_all(options.seed, options.steps, options.cores):
        told.passes += each.passes
        told.plans += each.plans
        told.kinds += each.kinds
        told.failed += each.failed
        print(
            f"{told.kinds.total()} steps, {told.passes} passes, {len(told.failed)} failures",
            file=sys.stderr,
            flush=True,
        )
        for failed in each.failed:
            print(table(failed), flush=True)
        if len(told.failed) >= MOST_FAILURES:
            break
    seconds = time.monotonic() - began
    for name, count in told.kinds.most_common():
        print(f"{count:9} {name}")
    print(
        f"{told.kinds.total()} steps, {told.passes} passes, {told.plans} plans checked, {len(told.failed)} failures,"
        f" {seconds:.0f} s"
    )
    return 1 if told.failed else 0


if __name__ == "__main__":
    sys.exit(main())
