"""A pod ends with its engine, however that ends and however far the pod is."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import Fault
from tests.local.orphans import KILLS, PATIENCE_SECONDS, SEED, left, orphans_come_here

ROOT = Path(__file__).parents[2]
STARTS = 2 * KILLS


@contextmanager
def killed_at_the_end(engine: "subprocess.Popen[bytes]") -> Iterator[None]:
    try:
        yield
    finally:
        engine.kill()


def wait_for_programs(folder: Path) -> None:
    """Wait until the last program of the pod has taken back that it dies with its parent."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not [*folder.rglob("taken-back")]:
        assert time.monotonic() < end, "they were not started"
        time.sleep(0.05)


@pytest.mark.parametrize("runtime", ["box", "plain"])
def test_a_pod_ends_with_its_engine_however_far_it_is(runtime: str, tmp_path: Path, fault: Fault) -> None:
    chance = random.Random(f"{SEED}-{runtime}")
    for number in range(STARTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        argv = [sys.executable, "-m", "tests.local.starting", str(folder), runtime]
        with orphans_come_here() as others:
            with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE) as engine, killed_at_the_end(engine):
                assert engine.stdout is not None
                assert engine.stdout.readline() == b"starts\n"
                # On a busy machine a program starts slowly, so the last one is killed when it is there.
                if number == STARTS - 1:
                    wait_for_programs(folder)
                time.sleep(chance.uniform(0, 0.5))
            assert left(others) == [], f"seed {SEED}"
    fault(f"the engine is killed while a pod starts: {runtime}", STARTS, "no process is left")
