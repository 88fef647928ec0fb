"""The sample from a text to its language: a tokenizer from a package, inside the server."""

import json
from dataclasses import dataclass

import yaml

from tests.e2e import plugin, requiring, wheels
from tests.e2e.applied import Applied
from tests.e2e.kubectl import Object
from tests.e2e.pictures import LIGHT, SAMPLES
from tests.e2e.state import State
from tests.e2e.suite import Suite

NAME = "texts"


@dataclass(frozen=True)
class Texts:
    """The Ready object, and what a client got."""

    state: State
    answers: Object
    """Labels of some texts, what bytes that are no text got, and what the step imports in the server."""


def run(suite: Suite) -> Texts:
    """To Ready, and a few requests."""
    requiring.start_index(suite.busy, suite.image, suite.certificate)
    wheels.push(suite.busy, NAME)
    pushed = plugin.run(suite.busy, "push", str(SAMPLES / NAME), f"pvc://models/{NAME}")
    assert pushed.returncode == 0, f"{pushed.stdout}\n{pushed.stderr}"
    body = yaml.safe_load((SAMPLES / "text-to-label.yaml").read_text(encoding="utf-8"))
    applied = Applied(suite.busy, suite.watch, body, NAME)
    state = applied.wait_ready(applied.apply({**LIGHT, "source": {"uri": f"pvc://models/{NAME}"}})).state
    asked = suite.workbench.python("texts.py", f"{NAME}.{suite.busy.namespace}")
    return Texts(state, json.loads(asked))
