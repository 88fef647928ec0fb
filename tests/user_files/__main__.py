"""`python3 -m tests.user_files --checkout FOLDER [NAME...]`: run NVIDIA's user files, and print a table.

FOLDER is a clone of https://github.com/NVIDIA/DeepLearningExamples, with or without a work tree. --dllogger names one
of https://github.com/NVIDIA/dllogger, which some files import and no package index has.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.machine import cpu_model
from hack.deploy.command import ROOT
from tests.user_files import fetch
from tests.user_files.projects import PROJECTS, Project

WIDTH = 200
LAST_LINES = 15


@dataclass(frozen=True)
class Row:
    """A step of a project."""

    project: Project
    step: str
    passed: bool
    words: str
    rehearsed: bool = False


def main() -> int:
    """Run the named projects, or all of them. Return 1 if a checkout is missing or a process broke."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.user_files", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a project; default: all of them")
    parser.add_argument("--checkout", default="", metavar="FOLDER", help="a clone of DeepLearningExamples")
    parser.add_argument("--dllogger", default="", metavar="FOLDER", help="a clone of dllogger")
    parser.add_argument("--extra", default="", metavar="FOLDER", help="packages that no index has for the image")
    options = parser.parse_args()
    chosen = [each for each in PROJECTS if not options.names or each.name in options.names]
    missing = [name for name in ("checkout", "dllogger") if not _is_repository(getattr(options, name))]
    if missing:
        print(
            "the user files are NVIDIA's and not part of this repository:"
            " git clone https://github.com/NVIDIA/DeepLearningExamples and https://github.com/NVIDIA/dllogger, then"
            f" run make test-user-files CHECKOUT=FOLDER DLLOGGER=FOLDER (no Git repository: {', '.join(missing)})",
            file=sys.stderr,
        )
        return 1
    console, rows, commit = Console(), list[Row](), ""
    for project in chosen:
        with tempfile.TemporaryDirectory() as folder:
            commit, found = _run(project, options, Path(folder))
        for row in found:
            words = f"{row.words} (rehearsed)" if row.rehearsed else row.words
            console.print(f"{project.name}: {row.step}: {words}", markup=False, highlight=False, soft_wrap=True)
        rows += found
    if not options.names:
        _write(rows, commit)
    return 1 if any(row.step == "broken" for row in rows) else 0


def table(rows: Sequence[Row]) -> Table:
    """Return a line for each step."""
    made = Table("project", "step", "passed", "rehearsed", "what", box=None)
    for row in rows:
        words = f"{row.words} (a dataloader of ours)" if row.project.standin and row.step == "reference" else row.words
        made.add_row(
            row.project.name, row.step, "yes" if row.passed else "no", "yes" if row.rehearsed else "", words
        )  # fmt: skip
    return made


def _run(project: Project, options: argparse.Namespace, work: Path) -> tuple[str, list[Row]]:
    source = work / "source"
    for name in ("source", "data", "repository", "incoming", "message", "extra"):
        (work / name).mkdir()
    if options.extra:
        shutil.copytree(options.extra, work / "extra", dirs_exist_ok=True)
    commit = fetch.extract(project, Path(options.checkout), Path(options.dllogger), source)
    packages = fetch.packages(project.packages)
    seeded = _inside(project, work, packages, "tests.user_files.seeds", project.name, "/source", "/data")
    if seeded.returncode:
        return commit, [Row(project, "broken", False, _last(seeded.stderr))]
    ended = _inside(project, work, packages, "tests.user_files.inside", project.name)
    steps = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    rows = [Row(project, each["name"], each["passed"], each["words"], each["rehearsed"]) for each in steps]
    return commit, rows if not ended.returncode else [*rows, Row(project, "broken", False, _last(ended.stderr))]


def _inside(
    project: Project, work: Path, packages: Path, module: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run a module in the image, as a Job without a GPU sees it."""
    mounts = [f"{work / name}:/{name}" for name in ("source", "data", "repository", "incoming")]
    mounts += [
        f"{work / 'message'}:/work",
        f"{ROOT}:/src:ro",
        f"{packages}:/packages:ro",
        f"{work / 'extra'}:/extra:ro",
    ]
    environment = {
        "PYTHONPATH": "/src/converters:/src:/packages:/extra",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "" if module.endswith("seeds") else "1",
    }
    argv = [sys.executable, "-m", "hack.imagebuild", "run", project.image]
    argv += [word for mount in mounts for word in ("--mount", mount)]
    argv += [word for name, value in environment.items() if value for word in ("--env", f"{name}={value}")]
    command = [*argv, "--", "python3", "-m", module, *arguments]
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)


def _last(text: str) -> str:
    return " | ".join(line.strip() for line in text.splitlines()[-LAST_LINES:] if line.strip())


def _is_repository(folder: str) -> bool:
    command = ["git", "-C", folder, "rev-parse", "HEAD"]
    return bool(folder) and subprocess.run(command, capture_output=True, check=False).returncode == 0


def _write(rows: Sequence[Row], commit: str) -> None:
    today = datetime.now(UTC).date().isoformat()
    with (ROOT / f"bench/results/{today}-user-files.txt").open("w", encoding="utf-8") as file:
        console = Console(file=file, width=WIDTH)
        words = f"make test-user-files on {today}, {cpu_model()}; DeepLearningExamples {commit}"
        console.print(words, highlight=False)
        console.print(table(rows))


if __name__ == "__main__":
    sys.exit(main())
