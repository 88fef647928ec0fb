"""What a download left on the claim, and what it said."""

import re

import pytest

from triton_converters.claim_store.digest import is_published
from triton_converters.contract import layout
from triton_converters.contract.results import SourceResult


def files(result: SourceResult) -> dict[str, bytes]:
    """The published files by their paths."""
    root = layout.source_directory(result.digest)
    assert is_published(root)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def begun(capfd: pytest.CaptureFixture[str]) -> list[tuple[str, bool]]:
    """The files that were asked for, and whether from the first byte on."""
    found = re.findall(r"^download (.+): (\d\S*) ", capfd.readouterr().out, re.MULTILINE)
    return [(name, have == "0") for name, have in found]
