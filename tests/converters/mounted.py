"""A claim in a folder."""

import inspect
from pathlib import Path

import pytest

from triton_converters.claim_store.root import mark
from triton_converters.contract import layout


def mounted(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """The root of an empty claim, and an empty INCOMING_MOUNT; every path function of layout.py points there."""
    root, incoming = folder / "repository" / layout.ROOT.name, folder / "incoming"
    root.mkdir(parents=True)
    mark(root)
    incoming.mkdir()
    for locate in vars(layout).values():
        if inspect.isfunction(locate) and locate.__defaults__ == (layout.ROOT,):
            patch.setattr(locate, "__defaults__", (root,))
    patch.setattr(layout, "MOUNT", root.parent)
    patch.setattr(layout, "ROOT", root)
    patch.setattr(layout, "INCOMING_MOUNT", incoming)
    for name in ("CONVERTERS", "SOURCE", "PACKAGES", "CREDENTIALS", "SIGNING"):
        patch.setattr(layout, f"{name}_MOUNT", folder / name.lower())
    return root
