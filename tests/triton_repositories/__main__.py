"""`python3 -m tests.triton_repositories --mirrors FOLDER [NAME...]`: make objects of public repositories, and try them.

FOLDER holds a clone of each, with or without a work tree, as OWNER+NAME, OWNER+NAME/repo or OWNER/NAME. Weights that a
repository does not hold are made, as is a dataloader. The planner then runs on each object, and its Jobs up to the
conversion run in this machine's Python, pip among them, or with --images in the images, which have PyTorch. With
--output, each object and its source are left in that folder, to be run on a cluster.
"""

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.simulation.cluster import Cluster
from tests.simulation.objects import SETTINGS
from tests.triton_repositories import fixed_paths, made
from tests.triton_repositories.fixed_paths import ANYBODY
from tests.triton_repositories.images import INSIDE, SAVED_MODEL, Images, run
from tests.triton_repositories.repositories import REPOSITORIES, Repository
from tests.zoo.real_jobs import RealJobs
from triton_converters.contract.formats import CONVERTER, CONVERTER_TENSORFLOW
from triton_plugin.commands.arguments import write
from triton_plugin.drafting.first_object import ObjectOptions, notices, object_name
from triton_plugin.drafting.model_folder import read
from triton_plugin.drafting.run import valid_yaml
from triton_plugin.drafting.triton_repository import pbtxt
from triton_plugin.drafting.triton_repository.distributions import normal
from triton_plugin.errors import FolderError
from triton_plugin.reading.subject import parse

TORCHSCRIPT = ".pt"
STAGES = ("source", "packages", "reference", "convert")
"""The Jobs that run; their packages are installed from the index that this machine's pip trusts."""


@dataclass(frozen=True)
class Row:
    """What became of a pipeline."""

    repository: Repository
    pipeline: str
    taken: bool
    """Whether init made an object that needs nothing but weights and a dataloader."""
    words: str
    """What init said."""
    tried: str = ""
    """What became of the object."""


def command(folder: Path, stage: str, request: Any) -> list[str]:
    """Return the program that runs a Job in this machine's Python."""
    job = [sys.executable, "-m", "tests.triton_repositories.job", str(folder), stage, request.to_json()]
    return fixed_paths.seeing(folder, fixed_paths.mounts(folder, stage, request), job)


def main() -> int:
    """Try the named repositories, or all of them. Return 1 if a clone is missing."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.triton_repositories", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the owner of a repository; default: all")
    parser.add_argument("--mirrors", required=True, type=Path, metavar="FOLDER", help="the clones")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="leave objects and sources there")
    parser.add_argument(
        "--without", action="append", default=[], metavar="PACKAGE", help="do not run what a package too large needs"
    )
    parser.add_argument("--images", action="store_true", help="run the Jobs in their images, built if need be")
    options = parser.parse_args()
    owners = {each.short: each for each in REPOSITORIES}
    names = [name.lower() for name in options.names] or [*owners]
    if unknown := sorted(set(names) - set(owners)):
        parser.error(f"there is no repository of {', '.join(unknown)}; there are {', '.join(owners)}")
    chosen = [owners[name] for name in names]
    rows, missing = [], []
    for repository in chosen:
        if (clone := _clone(options.mirrors, repository)) is None:
            missing.append(repository.name)
            continue
        for pipeline in repository.pipelines:
            with tempfile.TemporaryDirectory() as name:
                place = (options.output or Path(name)) / object_name(
                    f"{repository.short[:9]}-{pipeline.rpartition('/')[2]}"
                )
                row = _row(repository, pipeline, clone, place.resolve(), options)
            print(f"{repository.name}: {pipeline}: {'taken' if row.taken else 'not taken'}: {row.words} {row.tried}\n")
            rows.append(row)
    pipelines = sum(each.taken for each in rows)
    print(f"{pipelines} of {len(rows)} pipelines are taken as they are")
    if missing:
        print(f"{options.mirrors} has no clone of {', '.join(missing)}: git clone them", file=sys.stderr)
    return 1 if missing else 0


def _clone(mirrors: Path, repository: Repository) -> Path | None:
    plus = mirrors / repository.name.replace("/", "+")
    return next((each for each in (plus / "repo", plus, mirrors / repository.name) if each.is_dir()), None)


def _row(repository: Repository, pipeline: str, clone: Path, place: Path, chosen: argparse.Namespace) -> Row:
    source = place / "source" / place.name
    source.mkdir(parents=True)
    _extract(clone, repository, source)
    added = made.weights(source)
    for name, text in repository.graphs.items():
        file = source / name / "1" / "model.onnx"
        file.parent.mkdir(parents=True)
        file.write_bytes(made.graph(pbtxt.read(text.encode())))
        added.append(str(file.relative_to(source)))
    for name, content in repository.data.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        added.append(name)
    for name, program in repository.networks.items():
        _make_network(source / name, program, place if chosen.images else None)
        added.append(name)
    options = ObjectOptions(name=place.name, source=f"pvc://models/{place.name}")
    try:
        first = yaml.safe_load(valid_yaml(read(source, pipeline), options))
        (source / "dataloader.py").write_text(made.dataloader(first["spec"]["ensemble"]), encoding="utf-8")
        # As --write-requirements does.
        lacking = found.requirements_files if (found := read(source, pipeline).pipeline) else ()
        write(source, lacking)
        folder = read(source, pipeline)
        text = valid_yaml(folder, options)
    except FolderError as error:
        return Row(repository, pipeline, False, f"refused: {error}")
    (place / "object.yaml").write_text(text, encoding="utf-8")
    said = list(notices(folder))
    words = "; ".join([*said, *([f"made {', '.join(added)}"] if added else [])])
    if lacking:
        lines = [line for each in lacking for line in each.requirements]
        words = f"{words}; wrote {', '.join(each.path for each in lacking)}: {', '.join(lines) or 'a TODO alone'}"
    if large := sorted(
        set(chosen.without) & {normal(requirement) for each in lacking for requirement in each.requirements}
    ):
        tried = f"-> not run here, because {', '.join(large)} is left out"
    else:
        tried = _tried(text, place, chosen.images)
    return Row(repository, pipeline, not any("TODO" in each for each in said), words, tried)


def _make_network(file: Path, program: str, place: Path | None) -> None:
    """Let a program write a network in its framework's image, which sees ``place``; without one, leave a name."""
    is_torch = file.suffix == TORCHSCRIPT
    written = [file] if is_torch else [file, file / SAVED_MODEL]
    written[-1].parent.mkdir(parents=True, exist_ok=True)
    written[-1].touch()
    if place is None:
        return
    for each in written:
        each.chmod(ANYBODY)
    made_by = (f"/src/tests/triton_repositories/{program}", f"{INSIDE}/{file.relative_to(place)}")
    subprocess.run(run(CONVERTER if is_torch else CONVERTER_TENSORFLOW, place, "python3", *made_by), check=True)


def _tried(text: str, place: Path, in_images: bool) -> str:
    """Return what becomes of the object, whose source is on a claim at ``place``."""
    (place / "repository").mkdir()
    spec = yaml.safe_load(text)["spec"]
    jobs = RealJobs(Images(place).command if in_images else partial(command, place), STAGES)
    cluster = Cluster(spec, jobs)
    cluster.settings = replace(SETTINGS, allowed_python_steps=True)
    cluster.settle()
    subject = parse(cluster.body(), None)
    condition = subject.condition("Ready")
    return f"-> {condition.reason}: {condition.message}" if condition else "-> no condition"


def _extract(clone: Path, repository: Repository, target: Path) -> None:
    """Write the files of the model repository; those that a snapshot lacks are left out."""
    git = ["git", "-C", str(clone)]
    top = f"{repository.commit}:{repository.folder}" if repository.folder != "." else repository.commit
    listed = subprocess.run([*git, "ls-tree", "-r", "-z", top], capture_output=True, check=True).stdout
    for line in filter(None, listed.split(b"\0")):
        meta, name = line.split(b"\t", 1)
        found = subprocess.run([*git, "cat-file", "blob", meta.split()[2]], capture_output=True, check=False)
        if found.returncode == 0:
            file = target / name.decode()
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(found.stdout)


if __name__ == "__main__":
    sys.exit(main())
