"""One model without a cluster: the planner's Jobs run in their images, up to the conversion. Nothing is served."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hack.deploy.command import ROOT
from tests.simulation.answers import Script
from tests.simulation.cluster import Cluster
from tests.zoo.fetch import fetch
from tests.zoo.models import ZooModel
from tests.zoo.outcome import Outcome, outcome_of, smallest
from triton_converters.contract import envelope
from triton_converters.contract.formats import CONVERTER, SOURCES
from triton_converters.contract.reasons import Reason
from triton_plugin.subject import parse

STAGES = ("source", "reference", "convert")
LAST_WORDS = 300


class Jobs:
    """What becomes of each Job of one object."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scripts: dict[str, Script] = {}

    def __call__(self, stage: str, candidate: str, request: Any) -> Script:
        """Return how the Job ends; those that need a server end well."""
        if stage not in STAGES:
            return Script()
        if request.key not in self.scripts:
            self.scripts[request.key] = self._run(stage, request)
        return self.scripts[request.key]

    def _run(self, stage: str, request: Any) -> Script:
        image = CONVERTER if stage == "source" else SOURCES[request.model.format].image
        mounts = [f"{ROOT}:/src:ro", f"{self.folder}/source:/source:ro", f"{self.folder}/repository:/repository"]
        options = [word for mount in mounts for word in ("--mount", mount)]
        command = [sys.executable, "-m", "hack.imagebuild", "run", image, *options]
        command += ["--env", "PYTHONPATH=/src/converters:/src", "--", "python3", "-m", "tests.zoo.job"]
        done = subprocess.run(
            [*command, stage, request.to_json()], cwd=ROOT, capture_output=True, text=True, check=False
        )
        answer = next(iter(done.stdout.splitlines()[-1:]), "")
        try:
            outcome = envelope.Outcome.from_json(answer)
        except ValueError:
            return Script(exit_code=envelope.EXIT_FINAL, reason=Reason.CRASHED, message=done.stderr[-LAST_WORDS:])
        if outcome.reason is None:
            return Script(answer=answer)
        return Script(exit_code=envelope.EXIT_FINAL, reason=outcome.reason, message=outcome.message)


def rehearse(model: ZooModel) -> Outcome:
    """Take a model as far as it goes without a server."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "repository").mkdir()
        (folder / "source" / model.name).mkdir(parents=True)
        path = fetch(model, folder / "source" / model.name)
        cluster = Cluster(smallest(model, path, "")["spec"], Jobs(folder))
        cluster.settle()
    return outcome_of(model, parse(cluster.body(), None), time.monotonic() - start)
