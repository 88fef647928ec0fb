"""Whoever has docker, and no program of this repository, can build every image: what its Dockerfile needs is public.

Built here are the same files, from a base that debootstrap makes; the one from NVIDIA's image is not.
"""

import re
import subprocess
from pathlib import Path

import pytest

from hack.imagebuild import base, inputs
from tests.page import blocks

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILES = sorted((ROOT / "images").glob("*/Dockerfile"))
NAMES = [path.parent.name for path in DOCKERFILES]
PUBLIC = re.compile(r"debian:[a-z]+-slim|nvcr\.io/nvidia/pytorch:\d\d\.\d\d-py3")
"""What a Dockerfile starts from without an argument: Debian's of Docker Hub, or NVIDIA's."""
SETTINGS = {"APT_CONFIG=/run/secrets/apt.conf", "PIP_CONFIG_FILE=/run/secrets/pip.conf"}
"""Files that apt and pip do without: apt warns, and pip says nothing."""


def instructions(path: Path) -> list[list[str]]:
    """The words of each instruction, in its order."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
    return [words for line in "\n".join(lines).replace("\\\n", " ").splitlines() if (words := line.split())]


@pytest.mark.parametrize("path", DOCKERFILES, ids=NAMES)
def test_it_starts_from_a_public_image_by_default_and_takes_no_other_argument(path: Path) -> None:
    found = instructions(path)
    assert [words[0] for words in found[:2]] == ["ARG", "FROM"]
    name, _, default = found[0][1].partition("=")
    assert name == "BASE_IMAGE"
    assert PUBLIC.fullmatch(default)
    assert [words for words in found if words[0] in ("ARG", "FROM")] == [found[0], ["FROM", "${BASE_IMAGE}"]]


@pytest.mark.parametrize("path", DOCKERFILES, ids=NAMES)
def test_it_needs_no_secret(path: Path) -> None:
    text = " ".join(word for words in instructions(path) for word in words)
    mounts = re.findall(r"--mount=(\S+)", text)
    assert mounts, "pip and apt take the building machine's settings"
    assert [each for each in mounts if not re.fullmatch(r"type=secret,id=[a-z.]+", each)] == []
    assert set(re.findall(r"\S*/run/secrets\S*", text)) <= SETTINGS


@pytest.mark.parametrize("name", NAMES)
def test_what_it_copies_is_in_the_repository_and_is_sent_to_docker(name: str) -> None:
    copied = inputs.copied((ROOT / inputs.dockerfile(name)).read_text(encoding="utf-8"))
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert copied
    for path in copied:
        tracked = subprocess.run(["git", "ls-files", path], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert tracked, f"{path} is not in the repository"
        assert f"!{path.partition('/')[0]}" in rules


def test_docker_is_sent_what_the_builder_stages_and_no_bytecode() -> None:
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert rules[1] == "*", "everything is left out but what is named"
    left_out = {f"**/{name}" for name in inputs.IGNORED_FOLDERS} | {f"**/*{end}" for end in inputs.IGNORED_SUFFIXES}
    assert set(rules[2:]) - left_out == {"!converters", "!images", "!operator", "!requirements"}
    assert left_out <= set(rules)


def test_the_base_that_is_made_here_stands_for_the_one_of_the_dockerfiles() -> None:
    assert f"docker.io/library/{inputs.DEBIAN}" == base.PULLED
    assert f"debian:{base.SUITE}-slim" == inputs.DEBIAN


def test_the_page_builds_each_image_of_a_release_by_docker_alone() -> None:
    (block,) = blocks("docs/releasing.md", "With docker alone")
    names, command = re.fullmatch(r"for name in ([^;]+); do\n  (.*)\ndone\n", block, re.DOTALL).groups()  # type: ignore[union-attr]  # a block of another form fails here
    assert names.split() == inputs.names()
    assert "--file images/$name/Dockerfile" in command.replace('"', "")
    assert command.endswith(" .")
