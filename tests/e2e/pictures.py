"""The sample from a picture's file to its label: Python steps around a network, and a change of one."""

import json
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.deploy.command import ROOT
from tests.e2e import plugin, requiring, wheels
from tests.e2e.applied import Applied
from tests.e2e.kubectl import Object
from tests.e2e.state import State
from tests.e2e.suite import Suite

NAME = "pictures"
SAMPLES = ROOT / "manifests" / "samples"
LIGHT: dict[str, Any] = {
    "source": {"uri": f"pvc://models/{NAME}"},
    "performance": {
        "offline": {"batchSizes": [1]},
        "online": {"batchSize": 1, "concurrency": {"start": 1, "end": 2}},
        "measurement": {"mode": "TimeWindows", "interval": "300ms", "stabilityPercent": 900},
    },
    "repository": {"claimName": "repository"},
    "conversion": {"indexSecretRef": {"name": "our-index"}, "pod": {"resources": {"requests": {"cpu": "20m"}}}},
    "serving": {"pod": {"resources": {"requests": {"cpu": "20m"}}}},
}


@dataclass(frozen=True)
class Pictures:
    """The Ready object, and what a client got before and during a change."""

    state: State
    rounded: State
    """Ready again, after the last step rounds probabilities."""
    first: Object
    """Labels, probabilities, and what a broken file got."""
    during: Object
    """Requests until the first rounded probability: how many were sent, and what failed."""


def run(suite: Suite) -> Pictures:
    """To Ready, and to Ready again with another last step, while a client sends requests one after the other."""
    requiring.start_index(suite.busy, suite.image, suite.certificate)
    wheels.push(suite.busy, NAME)
    push(suite, "")
    body = yaml.safe_load((SAMPLES / "picture-to-label.yaml").read_text(encoding="utf-8"))
    applied = Applied(suite.busy, suite.watch, body, NAME)
    state = applied.wait_ready(applied.apply(LIGHT)).state
    push(suite, ".round(2)")
    with ThreadPoolExecutor(1) as executor:
        host = f"{NAME}.{suite.busy.namespace}"
        asked = executor.submit(suite.workbench.python, "pictures.py", host, f"/models/{NAME}", timeout=900)
        source = {**LIGHT["source"], "version": "2"}
        generation = applied.apply({**LIGHT, "source": source})

        def is_new(now: State) -> bool:
            return now.revision not in ("", state.revision) and now.holds("Ready")

        rounded = applied.wait("the other step", is_new, generation=generation).state
        first, during = map(json.loads, asked.result().splitlines())
    return Pictures(state, rounded, first, during)


def push(suite: Suite, rounding: str) -> None:
    """Put the sample's files on the claim of sources, with something appended to the last step's probability."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(shutil.copytree(SAMPLES / "pictures", Path(name) / NAME))
        for each in ("digits.onnx", "digits.npz"):
            shutil.copy(SAMPLES / "digits" / each, folder)
        step, probability = folder / "name" / "name.py", "probabilities.max(axis=1, keepdims=True)"
        code = step.read_text(encoding="utf-8")
        assert code.count(probability) == 1
        step.write_text(code.replace(probability, probability + rounding), encoding="utf-8")
        pushed = plugin.run(suite.busy, "push", str(folder), f"pvc://models/{NAME}")
    assert pushed.returncode == 0, f"{pushed.stdout}\n{pushed.stderr}"
