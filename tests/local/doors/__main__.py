"""`python3 -m tests.local.doors {cluster,check,compare} FOLDER [NAME...]`: one door at a time, then one table."""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hack.deploy.command import TargetCluster
from hack.deploy.images import load
from hack.deploy.install import LATER, install
from hack.devcluster.binaries import program
from hack.devcluster.paths import cluster_paths
from tests.e2e.kubectl import Kubectl
from tests.e2e.outside import Outside, outside
from tests.local.doors.compare import row
from tests.local.doors.doors import ByCheck, ByCluster, Door
from tests.local.doors.objects import OBJECTS, Images, Place
from triton_plugin.reading.subject import Subject, parse_saved

NAMESPACE = "doors"
CLUSTER, CHECK = "cluster", "check"


def main() -> int:
    """Take objects through a door, and keep what it says in FOLDER; or compare what both said. Return the exit status.

    That is 1 if an object came to no end, or the doors differ.
    """
    parser = argparse.ArgumentParser(prog="python3 -m tests.local.doors", description=__doc__)
    parser.add_argument("command", choices=(CLUSTER, CHECK, "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[*OBJECTS, []], metavar="NAME")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    wanted = options.names or list(OBJECTS)
    if options.command == "compare":
        return _compare(options.folder, wanted)
    with _cluster() if options.command == CLUSTER else _check() as (door, servers):
        ended = [_run(door, servers, name, options.folder / f"{name}.{options.command}.json") for name in wanted]
    return 0 if all(ended) else 1


def _run(door: Door, servers: Outside, name: str, file: Path) -> bool:
    """Take one object through a door, and keep what it says; whether it came to an end."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            given = OBJECTS[name](Place(Path(folder), servers, _images()))
            file.write_text(json.dumps(door.run(given, Path(folder))), encoding="utf-8")
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            return False
        finally:
            printed = Path(folder, "printed")
            if printed.exists():
                file.with_suffix(".txt").write_text(printed.read_text(encoding="utf-8"), encoding="utf-8")
    print(f"{name}: {time.monotonic() - start:.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    return True


def _images() -> Images:
    cluster = TargetCluster(cluster_paths().kubeconfig)
    names = ("converter", "tritonserver-cpu")
    built = json.loads(cluster.run("python3", "-m", "hack.imagebuild", "build", "--json", *names, timeout=3600))
    converter, server = ((each["reference"], Path(each["archive"])) for each in built)
    return Images(converter, server)


@contextmanager
def _check() -> Iterator[tuple[Door, Outside]]:
    with tempfile.TemporaryDirectory() as folder, outside(Path(folder), "127.0.0.1") as servers:
        yield ByCheck(servers.authority), servers


@contextmanager
def _cluster() -> Iterator[tuple[Door, Outside]]:
    """The development cluster with the operator, and a fresh namespace."""
    cluster = TargetCluster(cluster_paths().kubeconfig)
    cluster.run("python3", "-m", "hack.devcluster", "up", timeout=1800, show=True)
    kubectl = Kubectl(str(program("kubectl")), cluster.kubeconfig, NAMESPACE)
    addresses = kubectl.items("nodes")[0]["status"]["addresses"]
    address = next(str(each["address"]) for each in addresses if each["type"] == "InternalIP")
    with tempfile.TemporaryDirectory() as folder, outside(Path(folder), address) as servers:
        install(cluster.kubeconfig, {**servers.values(""), "allowed": {"pythonSteps": True}})
        load(cluster, LATER)
        kubectl.run("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout=180)
        kubectl.run("create", "namespace", NAMESPACE)
        try:
            yield ByCluster(kubectl), servers
        finally:
            kubectl.run("delete", "namespace", NAMESPACE, "--wait=false")
            install(cluster.kubeconfig)


def _compare(folder: Path, names: list[str]) -> int:
    table = Table("Object", "Outcome", "Candidates", "Largest errors", "Choice", "Throughput, p99: check by cluster")
    differ = 0
    for name in names:
        files = [folder / f"{name}.{door}.json" for door in (CLUSTER, CHECK)]
        if not all(each.exists() for each in files):
            print(f"{name}: not taken through both doors")
            differ += 1
            continue
        found = row(name, *map(_subject, files))
        table.add_row(found.name, found.outcome, found.candidates, found.errors, found.choice, found.ratio)
        for each in found.differences:
            print(f"{name}: {each}")
        differ += bool(found.differences)
    Console(width=200).print(table)
    return 1 if differ else 0


def _subject(file: Path) -> Subject:
    return parse_saved([json.loads(file.read_text(encoding="utf-8"))])


if __name__ == "__main__":
    sys.exit(main())
