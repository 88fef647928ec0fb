"""A claim in a temporary directory, and sources made of text."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from triton_converters import claim

WriteSource = Callable[[Mapping[str, str]], Path]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "torch: runs inside the converter image")


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty claim; every path function of claim.py points there."""
    root = tmp_path / "repository"
    root.mkdir()
    for locate in (
        claim.source_directory,
        claim.reference_directory,
        claim.candidate_directory,
        claim.revision_directory,
        claim.model_repository,
        claim.measurement_directory,
    ):
        monkeypatch.setattr(locate, "__defaults__", (root,))
    monkeypatch.setattr(claim, "MOUNT", root)
    monkeypatch.setattr(claim, "SOURCE_MOUNT", tmp_path / "source")
    return root


@pytest.fixture
def write_source(tmp_path: Path) -> WriteSource:
    """Writes a source directory from texts by file name."""

    def write(files: Mapping[str, str]) -> Path:
        source = tmp_path / "published"
        for name, text in files.items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return source

    return write


@pytest.fixture(autouse=True)
def forget_user_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """User files of one test are not another's: sys.path and sys.modules are as before afterwards."""
    import sys

    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        file = str(getattr(module, "__file__", "") or "")
        if "/published/" in file or "/sources/" in file or name.startswith(("deployment_toolkit", "triton.")):
            del sys.modules[name]
