"""`kubectl triton check` with this tree's images instead of an installation; also a program, for who ends it.

``python3 -m tests.local.checking CONVERTER SERVER ARGUMENT...``, with the archives of the two images.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from hack.devcluster.paths import cache_home
from triton_local.images import Images
from triton_local.install import CONVERTER, SERVER
from triton_local.interpreter import Python
from triton_local.runtime import Image
from triton_plugin.__main__ import main

ROOT = Path(__file__).parents[2]
COMMAND = "triton_plugin.commands.machine"
"""Where the commands have what the images stand in for."""
UNPACKED = cache_home() / "unpacked"


def built_archives() -> dict[str, Path]:
    """The archives of the images that installations stand for."""
    argv = [sys.executable, "-m", "hack.imagebuild", "build", "--json", "converter", "tritonserver-cpu"]
    built = json.loads(subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    by_name = {each["name"]: Path(each["archive"]) for each in built}
    return {CONVERTER: by_name["converter"], SERVER: by_name["tritonserver-cpu"]}


def stand_ins(archives: Mapping[str, Path]) -> Mapping[str, Any]:
    """What stands for the command's own Installation and python()."""
    images = Images(UNPACKED)

    class FromImages:
        def __init__(self, *_: object, has_packages: bool) -> None:
            assert not has_packages

        def name(self, repository: str) -> str:
            return images.add(repository, archives.get(repository, archives[CONVERTER]))

        def image(self, name: str) -> Image:
            return images.image(name)

    own = Path(sys.executable)
    interpreter = Python(own, Path(sys.base_prefix), Path(sys.prefix), (), (3, 13, 0), own, ())
    return {"Installation": FromImages, "python": lambda _: interpreter}


if __name__ == "__main__":
    with mock.patch.multiple(COMMAND, **stand_ins({CONVERTER: Path(sys.argv[1]), SERVER: Path(sys.argv[2])})):
        sys.exit(main(["check", *sys.argv[3:]]))
