"""`python3 -m bench.conversions [NAME...] [--check FOLDER]`: what became of publicly reported wrong conversions.

Each report is rebuilt and converted by today's versions, which requirements.txt pins, in a virtual environment of the
cache folder, and compared with its library. --check saves the reports' models, as their libraries do it and as ONNX,
and without NAME sixty right ones too, and says what `kubectl triton check` makes of each file, in a minute or two.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import venv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bench.machine import cpu_model
from hack.deploy.command import ROOT
from tests.zoo.fetch import once

HERE = Path(__file__).parent
LIBRARIES = ("xgboost", "lightgbm", "sklearn", "catboost")
OUTPUT = ROOT / "bench/results/conversions.json"
Row = dict[str, Any]
SHORT = {
    "offline": {"batchSizes": [1]},
    "online": {"concurrency": {"start": 1, "end": 1}},
    "measurement": {"requestCount": 10},
}
"""A check is of the gates: `spec.performance` that measures next to nothing."""


def reports() -> dict[str, Row]:
    """Return the reports by their names, which their functions have too."""
    found = yaml.safe_load((HERE / "reports.yaml").read_text(encoding="utf-8"))["reports"]
    return {_name(each["link"]): each for each in found}


def _name(link: str) -> str:
    repository, _, number = link.split("/")[-3:]
    return f"{repository}_{number}".replace("-", "_")


def main(argv: Sequence[str] | None = None) -> int:
    """Rebuild, print a line each and write all of them, or check files; return the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m bench.conversions", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a report; default: all of them")
    parser.add_argument("--check", type=Path, metavar="FOLDER", help="save all models in this folder and check them")
    options = parser.parse_args(argv)
    known = reports()
    if unknown := set(options.names) - set(known):
        parser.error(f"there is no report {', '.join(sorted(unknown))}; the names are {', '.join(known)}")
    chosen = {name: known[name] for name in options.names or known}
    python = once(f"conversions-{_digest()}", _install) / "bin/python"
    if options.check:
        options.check.mkdir(parents=True, exist_ok=True)
    found = {row["name"]: row for library in LIBRARIES for row in _rebuilt(python, library, chosen, options.check)}
    rows = [{**report, **found[name]} for name, report in chosen.items()]
    print(", ".join(f"{count} {outcome}" for outcome, count in Counter(row["outcome"] for row in rows).items()))
    document = {"date": time.strftime("%Y-%m-%d"), "machine": cpu_model(), "rows": rows}
    if not options.names:
        OUTPUT.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if options.check:
        if not options.names:
            list(_lines(python, "right", str(options.check.resolve())))
        checks = [_checked(file) for file in sorted(options.check.iterdir()) if file.is_file()]
        OUTPUT.with_name("conversions-checks.json").write_text(json.dumps(checks, indent=1) + "\n", encoding="utf-8")
    return 0


def _digest() -> str:
    return hashlib.sha256((HERE / "requirements.txt").read_bytes()).hexdigest()[:12]


def _install(folder: Path) -> None:
    """Make the virtual environment. Raises subprocess.CalledProcessError if a package is not to be had."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    subprocess.run([*pip, "--requirement", str(HERE / "requirements.txt")], check=True)


def _lines(python: Path, module: str, *arguments: str) -> Iterator[str]:
    """Run a module of the models and yield the lines that it prints. Raises subprocess.CalledProcessError.

    The libraries get one thread: theirs wait for each other at full speed.
    """
    argv = [str(python), "-m", f"bench.conversions.models.{module}", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        yield from running.stdout
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, argv)


def _rebuilt(python: Path, library: str, chosen: Mapping[str, Row], folder: Path | None) -> Iterator[Row]:
    """Yield what came of each report of a library. ``folder``: where models that a source format covers are saved."""
    known = {name: each for name, each in chosen.items() if each["library"] == library}
    cannot = {name: each["cannot"] for name, each in known.items() if "cannot" in each}
    yield from ({"name": name, "outcome": "cannot be rebuilt", "why": why} for name, why in cannot.items())
    covered = [name for name in known if name not in cannot and known[name]["covered"] != "none"]
    others = [name for name in known if name not in cannot and name not in covered]
    for names, place in ((covered, str(folder.resolve()) if folder else ""), (others, "")):
        for line in _lines(python, "run", library, place, *names) if names else ():
            print(line, end="", flush=True)
            yield json.loads(line)


def _checked(file: Path) -> Row:
    """Return what `kubectl triton check` says of a file: the reason of Ready, its message and the largest difference.

    What is measured is as little as can be. What an earlier run checked in the same folder is not checked again.
    """
    folder = file.with_name(f"{file.name}-check")
    row: Row = {"file": file.name}
    if not (status := _settled(folder)):
        row |= _check(file, folder)
        status = _settled(folder)
    if status:
        errors = [each["maxAbsoluteError"] for each in status.get("candidates", []) if each.get("maxAbsoluteError")]
        ready = next(each for each in status["conditions"] if each["type"] == "Ready")
        row |= {"reason": ready["reason"], "message": ready["message"], "largest": max(errors, key=float, default=None)}
    print(row, flush=True)
    return row


def _settled(folder: Path) -> Row:
    """Return the status of the object that was checked in the folder; empty: it is neither ready nor stalled."""
    objects = folder / "objects.json"
    if not objects.is_file():
        return {}
    status: Row = json.loads(objects.read_text(encoding="utf-8"))["items"][0].get("status", {})
    true = {each["type"] for each in status.get("conditions", []) if each["status"] == "True"}
    return status if true & {"Ready", "Stalled"} else {}


def _check(file: Path, folder: Path) -> Row:
    """Check a file; return the last words on standard error, if it was refused before anything ran."""
    claim = file.with_name(f"{file.name}-claim")
    (claim / "model").mkdir(parents=True, exist_ok=True)
    shutil.copy(file, claim / "model")
    plugin = [sys.executable, "-m", "triton_plugin"]
    init = [*plugin, "init", str(claim / "model" / file.name), "--source", "pvc://models/model", "--name", "model"]
    drafted = subprocess.run(init, cwd=ROOT, capture_output=True, text=True, check=False)
    if drafted.returncode:
        return {"message": drafted.stderr.strip().rpartition("\n")[2]}
    document = yaml.safe_load(drafted.stdout)
    document["spec"]["performance"] = SHORT
    triton_deployment = claim / "object.yaml"
    triton_deployment.write_text(yaml.safe_dump(document), encoding="utf-8")
    options = ["--claim", f"models={claim}", "--folder", str(folder), "--timeout", "20m"]
    done = subprocess.run(
        [*plugin, "check", str(triton_deployment), *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {"message": done.stderr.strip().rpartition("\n")[2]} if done.returncode else {}


if __name__ == "__main__":
    sys.exit(main())
