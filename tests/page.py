"""The command blocks of a page of docs, run in a shell exactly as the page prints them."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.deploy.command import ROOT, executable

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""The language of a block, which commands do not have, and its text."""
BLOCK_SECONDS = 900


def blocks(page: str, heading: str) -> list[str]:
    """Return the command blocks below a heading of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    (section,) = [each for each in sections if each.partition("\n")[0] == heading]
    return [text for language, text in BLOCK.findall(section) if not language]


@dataclass(frozen=True)
class Shell:
    """A shell as a reader of the docs has it: the programs on its PATH, and variables."""

    folder: Path
    environment: Mapping[str, str]

    @classmethod
    def opened(cls, folder: Path, kubeconfig: Path) -> "Shell":
        """A shell in a folder, with a copy of the kubeconfig, and kubectl in the folder `bin`, first on the PATH."""
        (folder / "bin").mkdir()
        (folder / "bin/kubectl").symlink_to(executable("kubectl"))
        inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
        own = shutil.copy(kubeconfig, folder / "kubeconfig")
        return cls(folder, {**inherited, "PATH": path, "KUBECONFIG": str(own)})

    def run(self, block: str, **variables: str) -> str:
        """Run a block, print and return what it printed. Fails if one of its commands fails."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=BLOCK_SECONDS,
            check=False,
        )
        print(f"$ {block}{done.stdout}", flush=True)
        assert done.returncode == 0, f"{block}\n{done.stdout}"
        return done.stdout
