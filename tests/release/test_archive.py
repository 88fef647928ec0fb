"""The archive that needs no Python, as far as it needs no PyInstaller: test_release.py runs a real one."""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from hack.release import archive, archive_entry
from hack.release.__main__ import https, parser
from tests.release.tree import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What PyInstaller writes: a program, libraries of a wheel with a link to them, and one with symbols."""
    built = tmp_path / "kubectl-triton"
    (built / "_internal/numpy.libs").mkdir(parents=True)
    (built / "kubectl-triton").write_text('#!/bin/sh\necho "$@"\n')
    (built / "kubectl-triton").chmod(0o755)
    (built / "_internal/numpy.libs/liba.so.1").write_text("no ELF, so strip would fail on it")
    (built / "_internal/liba.so.1").symlink_to("numpy.libs/liba.so.1")
    shutil.copyfile(sys.executable, built / "_internal/libb.so")
    return built


def test_the_archive_is_named_after_its_version_and_machine() -> None:
    assert archive.name("1.2.3-rc.1") == "kubectl-triton-1.2.3-rc.1-linux-amd64.tar.gz"


def test_links_to_the_libraries_of_wheels_go_and_these_stay_whole(folder: Path) -> None:
    archive.slim(folder)
    assert not (folder / "_internal/liba.so.1").exists()
    assert (folder / "_internal/numpy.libs/liba.so.1").read_text().startswith("no ELF")


def test_the_archive_has_no_link_which_krew_refuses_and_names_nobody(folder: Path, tmp_path: Path) -> None:
    (folder / "link").symlink_to("kubectl-triton")
    with tarfile.open(archive.pack(folder, tmp_path / "a.tar.gz", archive.FOLDER)) as tar:
        members = tar.getmembers()
    assert {each.type for each in members} == {tarfile.REGTYPE, tarfile.DIRTYPE}
    assert {(each.uid, each.gid, each.uname, each.gname) for each in members} == {(0, 0, "", "")}
    assert {each.name.partition("/")[0] for each in members} == {"kubectl-triton"}
    assert next(each for each in members if each.name == "kubectl-triton/kubectl-triton").mode & 0o111


def test_the_archive_passes_on_every_license(folder: Path, tmp_path: Path) -> None:
    for name in ("a-1.dist-info/licenses/deep/LICENSE.txt", "b_c-2.dist-info/COPYING", "b_c-2.dist-info/METADATA"):
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(name)
    archive.complete(folder, ROOT / "LICENSE", tmp_path / "site")
    found = {str(path.relative_to(folder / "licenses")) for path in (folder / "licenses").rglob("*") if path.is_file()}
    assert found == {"a-1/licenses/deep/LICENSE.txt", "b_c-2/COPYING"}
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_completion_finds_its_program_through_a_link(folder: Path, tmp_path: Path) -> None:
    archive.complete(folder, ROOT / "LICENSE", tmp_path / "none")
    link = tmp_path / "kubectl_complete-triton"
    link.symlink_to(folder / "kubectl_complete-triton")
    said = subprocess.run([link, "report", "-o", ""], capture_output=True, text=True, check=True).stdout
    assert said == "__complete report -o \n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["--help"], "usage: kubectl triton"), ([archive_entry.COMPLETE, "repo"], "report\tWrite all")],
)
def test_the_program_is_the_plugin_and_its_completion(words: list[str], expected: str) -> None:
    argv = [sys.executable, str(ROOT / "hack/release/archive_entry.py"), *words]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"}).stdout
    assert said.startswith(expected)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"LD_LIBRARY_PATH": "/archive/_internal"}, {}),
        ({"LD_LIBRARY_PATH": "/archive/_internal:/opt", "LD_LIBRARY_PATH_ORIG": "/opt"}, {"LD_LIBRARY_PATH": "/opt"}),
        ({"HOME": "/root"}, {"HOME": "/root"}),
    ],
)
def test_other_programs_get_the_libraries_that_they_had(before: dict[str, str], after: dict[str, str]) -> None:
    archive_entry.restore(before)
    assert before == after


def test_krews_manifest_names_the_archive_by_its_digest(tmp_path: Path) -> None:
    file = tmp_path / archive.name("1.2.3")
    file.write_bytes(b"an archive")
    manifest = yaml.safe_load(archive.krew_manifest(file, "1.2.3", "https://models.example/v1.2.3/"))
    assert (manifest["apiVersion"], manifest["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert manifest["metadata"]["name"] == "triton", "krew wants the name of the file triton.yaml"
    assert manifest["spec"]["version"] == "v1.2.3"
    assert 0 < len(manifest["spec"]["shortDescription"]) <= 50
    (platform,) = manifest["spec"]["platforms"]
    assert platform == {
        "selector": {"matchLabels": {"os": "linux", "arch": "amd64"}},
        "uri": "https://models.example/v1.2.3/kubectl-triton-1.2.3-linux-amd64.tar.gz",
        "sha256": hashlib.sha256(b"an archive").hexdigest(),
        "bin": "kubectl-triton/kubectl-triton",
    }


@pytest.mark.parametrize("url", ["http://models.example", "models.example", "https://", "https://a b", ""])
def test_files_are_downloaded_by_https(url: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no https URL"):
        https(url)


def test_without_a_place_of_the_files_there_is_no_manifest() -> None:
    words = ["--registry", "registry.example", "--version", "1.2.3", "--keyless"]
    assert parser().parse_args(words).downloads is None
    assert parser().parse_args([*words, "--downloads", "https://a.example"]).downloads == "https://a.example"
