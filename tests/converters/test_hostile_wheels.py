"""What a wheel can have pip do, and what comes of it on the claim."""

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pip
import pytest

from tests.converters.hostile_wheels import WRITES, Wheel, up
from tests.converters.https_server import Server
from tests.converters.package_index import PackageIndex, wheel
from tests.converters.test_packages import KEY, install
from triton_converters.claim_store.replay import has_result
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import PackagesRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import PackagesResult
from triton_converters.incoming import documents
from triton_converters.incoming.documents import End, Installed
from triton_converters.packages import modules, pip_alone
from triton_converters.stages.packages import SITE, prepare, publish

REQUEST = PackagesRequest(KEY, "d" * 64, "requirements.txt", "d" * 64)


@pytest.mark.parametrize("make", WRITES.values(), ids=WRITES)
def test_the_claim_is_as_it_was_whatever_a_wheel_says(
    make: Callable[[Path], Wheel], mount: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pip of any version that the development environment has."""
    marker = mount / layout.MARKER
    marked = marker.read_text()
    monkeypatch.setenv("PIP_INDEX_URL", f"https://{server.host}/simple")
    server.behaviour.hub = PackageIndex.of(make(marker))
    try:
        install("evil\n")
    except StageError:
        assert not has_result(layout.packages_directory(KEY), "packages", KEY)
    assert marker.read_text() == marked
    assert [path.name for path in mount.parent.iterdir()] == [mount.name]


def test_what_pip_does_not_install_is_told_once_and_named(
    mount: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"https://{server.host}/simple")
    server.behaviour.hub = PackageIndex.of(WRITES["a file with .. in its name"](mount / layout.MARKER))
    with pytest.raises(StageError) as caught:
        install("evil\n")
    assert (caught.value.reason, caught.value.final) == (Reason.PACKAGE_NOT_FOUND, True)
    assert "a wheel of evil" in caught.value.message


def test_a_wheel_that_pip_cannot_read_is_told_once_and_named(
    mount: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"https://{server.host}/simple")
    twice = {"other-1.0.dist-info/METADATA": "Name: other\nVersion: 1.0\n"}
    server.behaviour.hub = PackageIndex.of(wheel("evil", files=twice))
    with pytest.raises(StageError) as caught:
        install("evil\n")
    assert (caught.value.reason, caught.value.final) == (Reason.PACKAGE_NOT_FOUND, True)
    assert "evil has an invalid wheel" in caught.value.message


@pytest.fixture
def site(mount: Path) -> Path:
    """The directory that pip left in INCOMING_MOUNT; everything beside it is as it should be."""
    documents.write(layout.INCOMING_MOUNT, documents.INSTALLED, Installed(("evil==1.0",)))
    documents.write_end(layout.INCOMING_MOUNT, End())
    found = layout.INCOMING_MOUNT / SITE
    found.mkdir()
    (found / "evil.py").write_text("VERSION = 1\n")
    return found


def published() -> PackagesResult:
    return publish.run(REQUEST, layout.INCOMING_MOUNT)


def refusal() -> str:
    with pytest.raises(StageError) as caught:
        published()
    assert (caught.value.reason, caught.value.final) == (Reason.CRASHED, True)
    assert not layout.packages_directory(KEY).exists()
    return caught.value.message


def test_files_are_published_and_programs_stay_programs(site: Path) -> None:
    (site / "tool").mkdir()
    program = site / "tool" / "run"
    program.write_text("#!")
    program.chmod(0o4777)
    assert published() == PackagesResult(("evil==1.0",), 1, 14)
    target = layout.installed_packages(KEY)
    assert [oct((target / name).stat().st_mode & 0o7777) for name in ("evil.py", "tool/run")] == ["0o644", "0o755"]


def test_what_python_runs_unread_is_left_out(site: Path) -> None:
    for name in ("evil.pth", "__pycache__/evil.cpython-313.pyc", "evil/__pycache__/x.pyc", "evil/x.pth"):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text("import os")
    published()
    target = layout.installed_packages(KEY)
    files = [path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()]
    assert sorted(files) == ["evil.py", "evil/x.pth"]


@pytest.mark.parametrize("kind", ["file", "directory", "claim"])
def test_a_link_is_refused(site: Path, kind: str) -> None:
    targets = {"file": "/etc/passwd", "directory": "/etc", "claim": str(layout.ROOT)}
    (site / "link").symlink_to(targets[kind])
    assert "neither a file nor a directory" in refusal()


def test_a_link_in_place_of_all_modules_is_refused(site: Path) -> None:
    (site / "evil.py").unlink()
    site.rmdir()
    site.symlink_to(layout.MOUNT)
    assert SITE in refusal()


def test_other_names_of_a_file_are_refused(site: Path) -> None:
    os.link(site / "evil.py", site / "other.py")
    assert "hard link" in refusal()


def test_a_pipe_is_refused_without_waiting(site: Path) -> None:
    os.mkfifo(site / "pipe")
    assert "neither a file nor a directory" in refusal()


@pytest.mark.parametrize("name", [b"a\nb", b"a\x1b[31m", b"a\xff", "a\u202eb".encode()])
def test_a_name_that_does_not_print_is_refused(site: Path, name: bytes) -> None:
    (Path(os.fsdecode(bytes(site) + b"/" + name))).write_text("")
    message = refusal()
    assert "does not print" in message
    assert message.isprintable()


def test_numbers_are_bounded(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "MOST_FILES", 3)
    for name in "abc":
        (site / name).mkdir()
    assert "more than" in refusal()


def test_depth_is_bounded(site: Path) -> None:
    (site / "/".join("d" * (modules.DEEPEST + 2))).mkdir(parents=True)
    assert f"more than {modules.DEEPEST} folders deep" in refusal()


def test_what_does_not_fit_is_not_begun(site: Path) -> None:
    with (site / "sparse").open("wb") as file:
        file.truncate(2**43)
    with pytest.raises(StageError) as caught:
        published()
    assert (caught.value.reason, caught.value.final) == (Reason.STORAGE_FULL, False)


def test_without_an_end_there_is_no_result(site: Path) -> None:
    (layout.INCOMING_MOUNT / documents.END).unlink()
    with pytest.raises(StageError) as caught:
        published()
    assert caught.value.reason is Reason.RESULT_MISSING


def test_the_names_of_packages_are_plain_and_short(site: Path) -> None:
    names = ("evil\x1b[31m==1", "x" * 1000, *(f"p{number}==1" for number in range(200)))
    documents.write(layout.INCOMING_MOUNT, documents.INSTALLED, Installed(names))
    result = published()
    assert result.count == 202
    assert len(result.packages) == publish.NAMED
    assert all(each.isprintable() and len(each) <= publish.NAME_CHARACTERS for each in result.packages)


def test_pip_comes_with_the_converters_and_not_from_the_image(mount: Path) -> None:
    """The framework's image may be of a release with an older pip."""
    layout.CONVERTERS_MOUNT.mkdir()
    prepare.copy_tools(layout.CONVERTERS_MOUNT)
    assert not list(layout.CONVERTERS_MOUNT.rglob("__pycache__"))
    command = [sys.executable, "-I", pip_alone.__file__, str(layout.CONVERTERS_MOUNT), str(mount), "--version"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert f"from {layout.CONVERTERS_MOUNT / 'pip'}" in said


def test_up_means_the_same_file_from_any_directory(tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    assert (tmp_path / up(tmp_path / "target")).samefile(tmp_path / "target")


def test_sources_are_not_built_even_if_pip_means_to(tmp_path: Path) -> None:
    """pip would run setup.py, which may do anything, where the index's password is."""
    ran, sources = tmp_path / "ran", tmp_path / "anvil-1.0.tar.gz"
    build = "[build-system]\nrequires=[]\nbuild-backend='setup'\nbackend-path=['.']\n"
    with tarfile.open(sources, mode="w:gz") as archive:
        for name, text in {"setup.py": f"open({str(ran)!r}, 'w')", "pyproject.toml": build}.items():
            entry = tarfile.TarInfo(f"anvil-1.0/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    place, installed = str(Path(pip.__file__).parent.parent), str(tmp_path / "installed")
    options = ["--no-index", "--prefix", str(tmp_path / "prefix"), str(sources)]
    command = [sys.executable, "-I", pip_alone.__file__, place, installed, "install", *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert pip_alone.REFUSED in ended.stdout + ended.stderr
    assert not ran.exists()
