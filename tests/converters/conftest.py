"""A claim in a temporary directory, and sources made of text."""

import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.converters.https_server import Server, make_authority, serving
from tests.converters.mounted import mounted
from tests.converters.sources import WriteSource
from triton_converters.fetch import connection, patience

FRAMEWORKS = ("tensorflow", "torch")
"""Each has a folder here, a marker, and an image where it is."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Folders whose modules cannot even be imported where their framework is not are left to their own suite."""
    if collection_path.parent != Path(__file__).parent:
        return None
    name, suite = collection_path.name, config.option.markexpr
    if name in FRAMEWORKS and suite not in ("", name):
        return importlib.util.find_spec(name) is None or None
    if name == "tensorrt" and suite in FRAMEWORKS:
        return True
    return None


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of an empty claim, and an empty INCOMING_MOUNT; every path function of layout.py points there."""
    return mounted(tmp_path, monkeypatch)


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
def forget_user_modules() -> Iterator[None]:
    """User files of one test are not another's: the import system is as before afterwards."""
    path, finders, modules = list(sys.path), list(sys.meta_path), set(sys.modules)
    yield
    sys.path[:] = path
    sys.meta_path[:] = finders
    for name in set(sys.modules) - modules:
        # A folder without __init__.py has no file.
        file = str(getattr(sys.modules[name], "__file__", None) or list(getattr(sys.modules[name], "__path__", ())))
        if "/published/" in file or "/sources/" in file or name.split(".")[0] in ("deployment_toolkit", "triton"):
            del sys.modules[name]


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def trusting(mount: Path, authority: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage trusts the servers' authority, and does not pause long."""
    monkeypatch.setenv(connection.CA_BUNDLE, authority[0].read_text())
    monkeypatch.delenv(connection.PROXY, raising=False)
    monkeypatch.setattr(patience, "PAUSES", (0.01, 0.01))
    connection._pool.cache_clear()


@pytest.fixture
def server(trusting: None, authority: tuple[Path, Path]) -> Iterator[Server]:
    """A server whose authority the stage trusts."""
    with serving(authority[1]) as server:
        yield server
