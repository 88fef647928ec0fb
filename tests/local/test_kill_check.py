"""`kubectl triton check` is killed at any moment: the next one goes on, and does nothing again that was recorded."""

import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Fault
from tests.local.checking import ROOT, built_archives
from tests.local.orphans import KILLS, SEED, left, orphans_come_here
from tests.local.test_check import an_object
from tests.simulation.truths import Told, broken
from triton_converters.contract.records import record_name
from triton_operator import names
from triton_plugin.exits import Exit

Body = dict[str, Any]
MOST_PODS, LONGEST_SECONDS = 3, 3.0
"""How many pods an engine that is killed may start first, and how much later it dies: a check has six pods."""


@pytest.fixture(scope="module")
def archives() -> Mapping[str, Path]:
    return built_archives()


@dataclass
class Run:
    """A check in a folder, of which each engine may be killed."""

    folder: Path
    argv: list[str]
    records: set[str] = field(default_factory=set)
    """What the results of the object have recorded so far."""
    record_of: dict[str, str] = field(default_factory=dict)
    """What each Job that was ever seen records."""

    def engine(self, pods: float = math.inf, seconds: float = 0.0) -> int | None:
        """Run an engine, and kill it so long after it started so many pods; its exit status, None: it was killed."""
        before, end = self.pods(), math.inf
        with (self.folder / "printed").open("ab") as printed:
            process = subprocess.Popen(self.argv, cwd=self.folder, stdout=printed, stderr=printed)
        while process.poll() is None and time.monotonic() < end:
            self.look()
            if math.isinf(end) and len(self.pods() - before) >= pods:
                end = time.monotonic() + seconds
            time.sleep(0.02)
        is_killed = process.poll() is None
        process.kill()
        code = process.wait()
        self.look()
        return None if is_killed else code

    def look(self) -> None:
        """See what is saved."""
        file = self.folder / "digits-check/objects.json"
        items = json.loads(file.read_text(encoding="utf-8"))["items"] if file.exists() else []
        for each in items:
            metadata = each["metadata"]
            if each["kind"] == "Job":
                labels = metadata["labels"]
                self.record_of[metadata["name"]] = record_name(labels[names.STAGE_LABEL], labels[names.KEY_LABEL])
            elif metadata["name"] == names.results("digits"):
                self.records |= each["data"].keys()

    def pods(self) -> set[str]:
        """All that were ever started."""
        place = self.folder / "digits-check/pods"
        return set(os.listdir(place)) if place.exists() else set()

    def told(self) -> Told:
        """The object and its children as they are saved."""
        items = json.loads((self.folder / "digits-check/objects.json").read_text(encoding="utf-8"))["items"]
        return Told(items[0], {(each["kind"], each["metadata"]["name"]): each for each in items[1:]})


@pytest.mark.images
def test_an_engine_that_is_killed_leaves_nothing_and_the_next_one_goes_on(
    archives: Mapping[str, Path], tmp_path: Path, fault: Fault
) -> None:
    (tmp_path / "models").mkdir()
    shutil.copy(ROOT / "manifests/samples/digits/digits.onnx", tmp_path / "models")
    (tmp_path / "object.yaml").write_text(an_object("digits.onnx"), encoding="utf-8")
    words = ["object.yaml", "--claim", "models=models"]
    run = Run(tmp_path, [sys.executable, "-m", "tests.local.checking", *map(str, archives.values()), *words])
    chance = random.Random(SEED)
    twice, killed = [], 0
    with orphans_come_here() as others:
        for _ in range(KILLS):
            records, pods = set(run.records), run.pods()
            if run.engine(chance.randrange(MOST_PODS), chance.uniform(0, LONGEST_SECONDS)) is None:
                killed += 1
            assert left(others) == [], f"seed {SEED}"
            twice += [each for each in run.pods() - pods if run.record_of.get(each.rpartition("-")[0]) in records]
        records, pods = set(run.records), run.pods()
        assert run.engine() == Exit.OK, (tmp_path / "printed").read_text(encoding="utf-8")
        twice += [each for each in run.pods() - pods if run.record_of.get(each.rpartition("-")[0]) in records]
        assert left(others) == [], f"seed {SEED}"
    fault("the engine is killed", killed, f"Ready after {len(run.pods())} pods")
    assert twice == [], f"seed {SEED}"
    assert list(broken(run.told(), rests=True)) == [], f"seed {SEED}"
    repository = tmp_path / "digits-check/claims/digits-repository"
    assert [str(each) for each in repository.rglob(".tmp-*")] == [], f"seed {SEED}"
    assert [each for each in run.pods() if Path(f"/dev/shm/triton-local-{each}").exists()] == [], f"seed {SEED}"
