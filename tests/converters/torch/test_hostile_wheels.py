"""The pip of the converter image, which packages Jobs bring along, and wheels that mean to write elsewhere."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pip
import pytest
from packaging.version import Version

from tests.converters.hostile_wheels import WRITES, Wheel
from tests.converters.package_index import wheel
from triton_converters.packages import pip_alone

pytestmark = pytest.mark.torch
PLACE = Path(pip.__file__).parent.parent


def install(made: Wheel, folder: Path) -> "subprocess.CompletedProcess[str]":
    name, content = made
    for each in ("wheels", "installed"):
        (folder / each).mkdir(parents=True, exist_ok=True)
    (folder / "wheels" / name).write_bytes(content)
    options = ["--no-index", "--find-links", str(folder / "wheels"), "--prefix", str(folder / "prefix"), "--no-compile"]
    command = [sys.executable, "-I", pip_alone.__file__, str(PLACE), str(folder / "installed"), "install", *options]
    return subprocess.run([*command, name.partition("-")[0]], capture_output=True, text=True, check=False)


def test_the_image_has_the_pip_of_its_lock_file() -> None:
    """Before 26.2, pip writes a program to whatever absolute path is its name."""
    assert Version(pip.__version__) >= Version("26.3"), PLACE


@pytest.mark.parametrize("make", WRITES.values(), ids=WRITES)
def test_pip_writes_nothing_outside_its_prefix(make: Callable[[Path], Wheel], tmp_path: Path) -> None:
    victim = tmp_path / "victim" / "layout.json"
    victim.parent.mkdir()
    victim.write_text("ours")
    ended = install(make(victim), tmp_path / "pip")
    assert victim.read_text() == "ours", ended.stderr
    ended = install(make(victim.with_name("new")), tmp_path / "pip")
    assert [path.name for path in victim.parent.iterdir()] == ["layout.json"], ended.stderr


def test_a_requirement_by_a_url_is_refused_before_it_is_read(tmp_path: Path) -> None:
    url = (tmp_path / "absent-1.0-py3-none-any.whl").as_uri()
    ended = install(wheel("trap", requires=[f"absent @ {url}"]), tmp_path)
    assert ended.returncode != 0
    assert f"trap requires absent by a URL; {pip_alone.BY_URL}" in ended.stderr
