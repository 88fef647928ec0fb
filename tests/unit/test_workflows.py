"""The workflows run what a person runs: each command is a target of the Makefile that exists, and none is forgotten.

That the files are valid workflows is checked by actionlint, in `make lint`.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z0-9-]+):(?!=)", MAKEFILE, re.MULTILINE))
(SUITES,) = (set(found.split()) for found in re.findall(r"^SUITES := (.+)$", MAKEFILE, re.MULTILINE))
CI = ROOT / ".github/workflows/ci.yaml"
CHECK = ROOT / ".github/actions/check/action.yaml"
WORKFLOWS = sorted(CI.parent.iterdir())


def steps(workflow: Path) -> Iterator[dict[str, Any]]:
    """Every step of every job."""
    for job in yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values():
        yield from job["steps"]


def targets(workflow: Path) -> list[str]:
    """The targets that the commands of a workflow name."""
    return [name for step in steps(workflow) for name in re.findall(r"\bmake ([a-z0-9-]+)", step.get("run", ""))]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_target_that_a_workflow_names_exists(workflow: Path) -> None:
    assert set(targets(workflow)) <= TARGETS
    assert targets(workflow), "nothing of the Makefile is run"


def test_a_pull_request_runs_targets_and_nothing_else() -> None:
    """So what fails there fails by the same command on any machine."""
    commands = [step["run"] for step in steps(CI) if "run" in step]
    assert [each for each in commands if not re.fullmatch(r"make [a-z0-9-]+( [A-Z]+=\S+)?", each)] == []


def test_a_pull_request_runs_all_suites_but_those_that_the_first_lines_name() -> None:
    run = {name.removeprefix("test-") for name in targets(CI)}
    head = CI.read_text(encoding="utf-8").partition("\nname:")[0]
    named = set(re.findall(r"\btest-([a-z0-9]+)\b", head.partition("# Not run here:")[2]))
    assert SUITES - run == SUITES & named
    assert run & named == set()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_an_action_is_pinned_by_its_commit_or_is_in_this_tree(workflow: Path) -> None:
    for action in (step["uses"] for step in steps(workflow) if "uses" in step):
        in_this_tree = action.startswith("./") and (ROOT / action / "action.yaml").is_file()
        assert in_this_tree or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action


def test_every_suite_of_make_test_is_a_target_and_lint_is_the_first() -> None:
    assert {f"test-{name}" for name in SUITES} <= TARGETS
    assert re.search(r"^SUITES := lint ", MAKEFILE, re.MULTILINE)
    assert "exec make test\n" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def of_check(words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the one script of the action `check` that has these words, as a runner would."""
    scripts = [
        each["run"] for each in yaml.safe_load(CHECK.read_text(encoding="utf-8"))["runs"]["steps"] if "run" in each
    ]
    (script,) = (each for each in scripts if words in each)
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", []),
        ("--timeout 30m --unboxed", ["--timeout", "30m", "--unboxed"]),
        ("--timeout 30m\n\n--claim 'models=my models'\n", ["--timeout", "30m", "--claim", "models=my models"]),
    ],
)
def test_the_action_passes_every_option_on(tmp_path: Path, options: str, expected: list[str]) -> None:
    program = tmp_path / "triton/bin/kubectl-triton"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    ran = of_check("kubectl-triton", RUNNER_TEMP=str(tmp_path), MODEL="my model", OPTIONS=options, KEPT="kept")
    assert ran.returncode == 3
    own = ["check", "my model", "--folder", "kept", "--junit", "kept.xml"]
    assert ran.stdout.splitlines() == own + expected


def test_the_action_refuses_options_that_it_would_pass_on_wrongly() -> None:
    assert of_check("kubectl-triton", OPTIONS="--claim 'models=my models").returncode != 0


def test_the_action_names_its_cache_by_what_is_installed(tmp_path: Path) -> None:
    output = tmp_path / "output"
    place = str(CHECK.parent)
    assert of_check("GITHUB_OUTPUT", GITHUB_ACTION_PATH=place, GITHUB_OUTPUT=str(output)).returncode == 0
    assert re.fullmatch("digest=[0-9a-f]{64}\n", output.read_text(encoding="utf-8"))


def test_the_action_goes_on_where_nobody_may_allow_namespaces(tmp_path: Path) -> None:
    for name, status in (("sudo", 1), ("sysctl", 255)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    assert of_check("sysctl", PATH=f"{tmp_path}:{os.environ['PATH']}").returncode == 0
