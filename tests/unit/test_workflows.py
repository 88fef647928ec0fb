"""The workflows run what a person runs: each command is a target of the Makefile that exists, and none is forgotten.

That the files are valid workflows is checked by actionlint, in `make lint`.
"""

import re
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
