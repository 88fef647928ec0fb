"""A Job in this Python: `python3 -m tests.triton_repositories.job FOLDER STAGE REQUEST`; its answer comes last."""

import inspect
import json
import os
import sys
from pathlib import Path

from tests.zoo.job import main
from triton_converters.contract import layout
from triton_converters.fetch.connection import CA_BUNDLE


def place(folder: Path) -> None:
    """Let every path of the Jobs lie below the folder."""
    root = folder / "repository" / layout.ROOT.name
    for locate in vars(layout).values():
        if inspect.isfunction(locate) and locate.__defaults__ == (layout.ROOT,):
            locate.__defaults__ = (root,)
    mounts = {"MOUNT": root.parent, "SOURCE_MOUNT": folder / "source", "INCOMING_MOUNT": folder / "incoming"}
    for name, path in {**mounts, "ROOT": root}.items():
        setattr(layout, name, path)


def import_packages(request: str) -> None:
    """Put the packages that the request names on the import path, as the container with user code has them."""
    if key := json.loads(request).get("packages"):
        sys.path.append(str(layout.installed_packages(key)))


def trust() -> None:
    """Let the Job's pip trust the authorities that this machine's pip trusts."""
    if bundle := os.environ.get("PIP_CERT"):
        os.environ.setdefault(CA_BUNDLE, Path(bundle).read_text(encoding="utf-8"))


if __name__ == "__main__":
    place(Path(sys.argv[1]))
    import_packages(sys.argv[3])
    trust()
    main(sys.argv[2], sys.argv[3])
