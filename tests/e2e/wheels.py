"""Real wheels for the tests' own index, which this machine downloads: the cluster need not reach any index."""

import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.utils import parse_wheel_filename

from hack.deploy.command import ROOT
from tests.e2e import plugin
from tests.e2e.kubectl import Kubectl

LOCK = ROOT / "requirements/samples.txt"
PLACE = "pvc://models/wheels-{}"
"""The index looks into each such folder."""
PYTHON = "3.13"
"""Of the converter image and of the server's."""
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")


def push(kubectl: Kubectl, who: str) -> None:
    """Put the wheels that the samples' steps require, at their locked versions, to where the index finds them.

    ``who``: the folder's own name, so that two objects do not push to one.
    """
    with tempfile.TemporaryDirectory() as name:
        downloaded, folder = Path(name) / "downloaded", Path(name) / "wheels"
        platforms = [word for each in PLATFORMS for word in ("--platform", each)]
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *platforms]
        argv += ["--only-binary", ":all:", "--python-version", PYTHON, "--dest", str(downloaded)]
        subprocess.run([*argv, "--no-deps", "--require-hashes", "--requirement", str(LOCK)], check=True)
        for wheel in downloaded.iterdir():
            project = folder / "simple" / parse_wheel_filename(wheel.name)[0]
            project.mkdir(parents=True, exist_ok=True)
            wheel.rename(project / wheel.name)
        pushed = plugin.run(kubectl, "push", str(folder), PLACE.format(who))
    assert pushed.returncode == 0, f"{pushed.stdout}\n{pushed.stderr}"
