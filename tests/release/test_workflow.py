"""A dry run of the public workflow: its steps, in their order, with stand-ins for what only GitHub has.

`docker`, `gh` and `make` only note their arguments. What `make` would run is asked of the real one, and what that means
of the program itself. actionlint reads the file in `make lint`; tests/unit/test_workflows.py asks whether its targets
and actions exist.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.release.__main__ import parser
from tests.release.tree import ROOT

FILE = ROOT / ".github/workflows/release.yaml"
(JOB,) = yaml.safe_load(FILE.read_text(encoding="utf-8"))["jobs"].values()
STEPS: list[dict[str, Any]] = [step for step in JOB["steps"] if "run" in step]
EXPRESSION = re.compile(r"\$\{\{\s*(\S+)\s*\}\}")
VARIABLE = re.compile(r"\$\{?([A-Za-z_]+)")
GIVEN = {"GITHUB_REF_NAME": "v1.2.3"}
"""What GitHub sets in each step for the tag v1.2.3."""
CONTEXT = {
    "vars.RELEASE_REGISTRY": "registry.example/team",
    "github.actor": "ann",
    "github.token": "a-token",
    "github.server_url": "https://github.example",
    "github.repository": "team/triton-operator",
    "github.ref_name": "v1.2.3",
}
"""What the expressions of the file stand for. One that is not here fails."""
STAND_IN = """\
#!/bin/sh
printf '%s\\n' "$0" "$@" > "$NOTES/$(basename "$0").argv"
cat > "$NOTES/$(basename "$0").stdin"
"""


def filled(text: str) -> str:
    """The text with the values of its expressions."""
    return EXPRESSION.sub(lambda found: CONTEXT[found[1]], text)


def variables(step: Mapping[str, Any]) -> dict[str, str]:
    """What a step's commands find in their environment, apart from the machine's."""
    return GIVEN | {name: filled(value) for name, value in step.get("env", {}).items()}


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What each program was given, after all steps."""
    folder, programs = tmp_path_factory.mktemp("workflow"), tmp_path_factory.mktemp("programs")
    for name in ("docker", "gh", "make"):
        (programs / name).write_text(STAND_IN)
        (programs / name).chmod(0o755)
    (folder / "dist/1.2.3").mkdir(parents=True)
    for name in ("install.yaml", "checksums.txt"):
        (folder / "dist/1.2.3" / name).touch()
    for step in STEPS:
        environment = {"PATH": f"{programs}{os.pathsep}{os.defpath}", "NOTES": str(folder), **variables(step)}
        argv = ["bash", "-ec", step["run"]]
        subprocess.run(argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, check=True)
    return folder


def words(notes: Path, name: str) -> list[str]:
    """The arguments of a program."""
    return (notes / f"{name}.argv").read_text().splitlines()[1:]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step["name"])
def test_a_step_uses_only_variables_that_it_is_given(step: dict[str, Any]) -> None:
    assert not EXPRESSION.search(step["run"]), "an expression in a command may hold commands"
    assert set(VARIABLE.findall(step["run"])) <= variables(step).keys()


def test_it_logs_in_where_it_pushes_and_the_token_is_no_argument(notes: Path) -> None:
    assert words(notes, "docker") == ["login", "registry.example", "--username", "ann", "--password-stdin"]
    assert (notes / "docker.stdin").read_text() == "a-token\n"


def test_the_release_takes_the_arguments_that_make_passes_on(notes: Path) -> None:
    argv = ["make", "--no-print-directory", "-n", *words(notes, "make")]
    printed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (line,) = [each for each in printed.replace("\\\n", "").splitlines() if "-m hack.release" in each]
    options = vars(parser().parse_args(shlex.split(line)[3:]))
    assert options == {
        "registry": "registry.example/team",
        "version": "1.2.3",
        "key": None,
        "keyless": True,
        "downloads": "https://github.example/team/triton-operator/releases/download/v1.2.3",
        "gpu": False,
    }


def test_it_publishes_all_files_of_the_release(notes: Path) -> None:
    files = sorted(str(path.relative_to(notes)) for path in (notes / "dist/1.2.3").iterdir())
    assert words(notes, "gh") == ["release", "create", "v1.2.3", "--verify-tag", "--generate-notes", *files]


def test_it_may_do_what_it_does_and_nothing_else() -> None:
    assert yaml.safe_load(FILE.read_text(encoding="utf-8"))["permissions"] == {}
    assert JOB["permissions"] == {"contents": "write", "packages": "write", "id-token": "write"}


def test_what_somebody_has_to_set_is_in_the_page() -> None:
    page = (ROOT / "docs/releasing.md").read_text(encoding="utf-8")
    wanted = set(re.findall(r"\b(?:vars|secrets|inputs)\.(\w+)", FILE.read_text(encoding="utf-8")))
    assert wanted == {"RELEASE_REGISTRY"}
    assert all(f"`{name}`" in page for name in wanted)
