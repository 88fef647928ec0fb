"""The sample of a cascade: a Python step that asks two models by itself, on the real server."""

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.e2e import plugin
from tests.e2e.applied import Applied
from tests.e2e.kubectl import Object
from tests.e2e.pictures import LIGHT, SAMPLES
from tests.e2e.state import State
from tests.e2e.suite import Suite

NAME = "cascade"
FIXED = {"mountPath": "/fixed/cascade/1", "scratchPaths": ["/fixed-cache"]}
NAMES_PATHS = """

from pathlib import Path

with Path("/fixed/cascade/1/note.txt").open(encoding="utf-8") as note:
    Path("/fixed-cache/made").mkdir(exist_ok=True)
    Path("/fixed-cache/made/note.txt").write_text(note.read(), encoding="utf-8")
for path in ("/fixed/cascade/1/new", "/fixed/new", "/new"):
    try:
        Path(path).touch()
    except OSError:
        continue
    raise RuntimeError(f"{path} was written")
"""
"""What the sample's step does besides: it fails wherever it lacks its paths, or may write to more than it should."""


@dataclass(frozen=True)
class Cascade:
    """The Ready object, and what a client got."""

    state: State
    answers: Object
    """How many pictures were told rightly, and how many requests and pictures each model answered meanwhile."""


def run(suite: Suite) -> Cascade:
    """To Ready, and some pictures one after the other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(shutil.copytree(SAMPLES / NAME, Path(name) / NAME))
        shutil.copytree(SAMPLES / "digits", folder, dirs_exist_ok=True)
        (folder / "cascade/note.txt").write_text("read", encoding="utf-8")
        with (folder / "cascade/cascade.py").open("a", encoding="utf-8") as step:
            step.write(NAMES_PATHS)
        pushed = plugin.run(suite.busy, "push", str(folder), f"pvc://models/{NAME}")
    assert pushed.returncode == 0, f"{pushed.stdout}\n{pushed.stderr}"
    body = yaml.safe_load((SAMPLES / f"{NAME}.yaml").read_text(encoding="utf-8"))
    body["spec"]["models"][0] |= FIXED
    applied = Applied(suite.busy, suite.watch, body, NAME)
    conversion = {"pod": LIGHT["conversion"]["pod"]}
    changes = {**LIGHT, "source": {"uri": f"pvc://models/{NAME}"}, "conversion": conversion}
    state = applied.wait_ready(applied.apply(changes)).state
    asked = suite.workbench.python("cascade.py", f"{NAME}.{suite.busy.namespace}", f"/models/{NAME}")
    return Cascade(state, json.loads(asked))
