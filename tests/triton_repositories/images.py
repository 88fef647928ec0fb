"""The Jobs of an object in the images that have them: PyTorch is in the converter's, as on a cluster."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hack.deploy.command import ROOT
from tests.triton_repositories import fixed_paths
from tests.triton_repositories.fixed_paths import ANYBODY
from triton_converters.contract.formats import CONVERTER, CONVERTER_TENSORFLOW

SERVER = "tritonserver-cpu"
INSIDE, SAVED_MODEL = "/trial", "saved_model.pb"
TOOLS, AUTHORITIES = "tools", "authorities.pem"
COPY_TOOLS = "from triton_converters.stages.packages.prepare import copy_tools; from pathlib import Path; copy_tools"
"""The server's image has no pip: a packages Job brings its own."""
USER = "1000:1000"
"""As in a pod: a step that writes next to its files, or makes a folder in the root, fails."""


def run(image: str, folder: Path, *command: str, mounts: Sequence[str] = ()) -> list[str]:
    """Return the program that runs a command in an image, which sees ``folder`` as INSIDE, and ``mounts``."""
    options = ["--user", USER]
    for each in (f"{ROOT}:/src:ro", f"{folder}:{INSIDE}", *mounts):
        options += ["--mount", each]
    options += ["--env", f"PYTHONPATH=/src/converters:/src:{INSIDE}/{TOOLS}"]
    if bundle := os.environ.get("PIP_CERT"):
        shutil.copyfile(bundle, folder / AUTHORITIES)
        options += ["--env", f"PIP_CERT={INSIDE}/{AUTHORITIES}"]
    return [sys.executable, "-m", "hack.imagebuild", "run", image, *options, "--", *command]


class Images:
    """Which image runs a Job of an object."""

    def __init__(self, folder: Path) -> None:
        """``folder``: holds the source, and gets the repository."""
        self.folder = folder
        (folder / TOOLS).mkdir()
        for each in (folder, folder / TOOLS, folder / "repository"):
            each.chmod(ANYBODY)
        # As the planner chooses it: one model of TensorFlow, and the whole reference runs there.
        is_of_tensorflow = any(folder.glob(f"source/**/{SAVED_MODEL}"))
        self.image = CONVERTER_TENSORFLOW if is_of_tensorflow else CONVERTER

    def command(self, stage: str, request: Any) -> list[str]:
        """Return the program that runs a Job; its answer comes last."""
        image = self.image
        if stage == "packages" and request.served:
            image = SERVER
            copy = run(self.image, self.folder, "python3", "-c", f"{COPY_TOOLS}(Path('{INSIDE}/{TOOLS}'))")
            subprocess.run(copy, check=True, stdout=subprocess.DEVNULL)
        program = ("python3", "-m", "tests.triton_repositories.job", INSIDE, stage, request.to_json())
        return run(image, self.folder, *program, mounts=fixed_paths.mounts(self.folder, stage, request))
