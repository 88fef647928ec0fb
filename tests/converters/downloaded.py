"""A download as a source Job makes it, its Secret, what it left on the claim, and what it said."""

import re
from typing import Any

import pytest

from triton_converters.claim_store.digest import is_published
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.results import SourceResult
from triton_converters.stages import source

KEY = "0123456789abcdef"


def download(uri: str, **fields: Any) -> SourceResult:
    """The result of the Job's stage; raises StageError."""
    return source.run(SourceRequest(KEY, uri, "", **{"sha256": "", **fields}))


def with_secret(**values: str) -> None:
    """Mount a Secret with these keys, and no others."""
    layout.CREDENTIALS_MOUNT.mkdir(exist_ok=True)
    for path in layout.CREDENTIALS_MOUNT.iterdir():
        path.unlink()
    for name, value in values.items():
        (layout.CREDENTIALS_MOUNT / name).write_text(f"{value}\n")


def files(result: SourceResult) -> dict[str, bytes]:
    """The published files by their paths."""
    root = layout.source_directory(result.digest)
    assert is_published(root)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def begun(capfd: pytest.CaptureFixture[str]) -> list[tuple[str, bool]]:
    """The files that were asked for, and whether from the first byte on."""
    found = re.findall(r"^download (.+): (\d\S*) ", capfd.readouterr().out, re.MULTILINE)
    return [(name, have == "0") for name, have in found]
