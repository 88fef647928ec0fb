"""One model without a cluster: the planner's Jobs run in their images, up to the conversion. Nothing is served."""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from hack.deploy.command import ROOT
from tests.simulation.cluster import Cluster
from tests.zoo.fetch import fetch
from tests.zoo.models import ZooModel
from tests.zoo.outcome import Outcome, outcome_of, smallest
from tests.zoo.real_jobs import RealJobs
from triton_converters.contract.formats import CONVERTER, SOURCE_FORMATS
from triton_plugin.reading.subject import parse


def command(folder: Path, stage: str, request: Any) -> list[str]:
    """Return the program that runs a Job in its image; ``folder`` holds the source and the repository."""
    image = CONVERTER if stage == "source" else SOURCE_FORMATS[request.model.format].image
    mounts = [f"{ROOT}:/src:ro", f"{folder}/source:/source:ro", f"{folder}/repository:/repository"]
    options = [word for mount in mounts for word in ("--mount", mount)]
    run = [sys.executable, "-m", "hack.imagebuild", "run", image, *options]
    run += ["--env", "PYTHONPATH=/src/converters:/src", "--", "python3", "-m", "tests.zoo.job"]
    return [*run, stage, request.to_json()]


def rehearse(model: ZooModel) -> Outcome:
    """Take a model as far as it goes without a server."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "repository").mkdir()
        (folder / "source" / model.name).mkdir(parents=True)
        path = fetch(model, folder / "source" / model.name)
        cluster = Cluster(smallest(model, path, "")["spec"], RealJobs(partial(command, folder)))
        cluster.settle()
    return outcome_of(model, parse(cluster.body(), None), time.monotonic() - start)
