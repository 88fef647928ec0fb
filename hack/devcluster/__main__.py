"""Command line: python3 -m hack.devcluster VERB."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hack.devcluster.apiserver import ApiServer
from hack.devcluster.binaries import MODULES, build_all, built, download_all
from hack.devcluster.cluster import DevCluster, require_root, set_up_modules
from hack.devcluster.commands import run
from hack.devcluster.image_loaders import load_command
from hack.devcluster.kubeconfig import foreign_kubeconfig
from hack.devcluster.paths import ClusterError, ClusterPaths, cluster_paths

SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")
PLUGIN_FOLDER = Path(__file__).parents[1] / "bin"
"""Holds kubectl-triton, which kubectl finds on PATH."""


def main(arguments: Sequence[str]) -> int:
    """Run one verb; returns the exit status."""
    chosen = _parser().parse_args(arguments)
    # Root's shell may lack them (`su` without `-`), and containerd finds runc by PATH.
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS])
    try:
        _dispatch(chosen, cluster_paths())
    except ClusterError as error:
        print(f"devcluster {chosen.verb}: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="devcluster", description="A real Kubernetes for development, of one node or a few."
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("prepare", help="fetch what `up` and helm need: Debian packages, and sources of what is not built")
    up = verbs.add_parser("up", help="start the cluster, or use the one KUBECONFIG names")
    up.add_argument("--nodes", type=int, metavar="NUMBER", help="number of nodes; by default one, or those that run")
    verbs.add_parser("down", help="remove the cluster and whatever killed ones left")
    verbs.add_parser("env", help="print the shell variables that reach the cluster and its programs")
    load = verbs.add_parser("load-image", help="import docker-archives for the kubelet")
    load.add_argument("archives", nargs="+", type=Path, metavar="ARCHIVE")
    binaries = verbs.add_parser("binaries", help="build the programs that are not in the cache")
    binaries.add_argument(
        "modules", nargs="*", metavar="MODULE", help=f"of {', '.join(MODULES)}; by default all that `make test` needs"
    )
    for verb, text in (
        ("apiserver-up", "start an API server alone"),
        ("apiserver-down", "end it, empty its folder"),
    ):
        verbs.add_parser(verb, help=text).add_argument("folder", type=Path, metavar="DIR")
    return parser


def _dispatch(chosen: argparse.Namespace, paths: ClusterPaths) -> None:
    match chosen.verb:
        case "prepare":
            _prepare(paths)
        case "up":
            _up(paths, chosen.nodes)
        case "down":
            _down(paths)
        case "env":
            _print_environment(paths)
        case "load-image":
            _load_images(chosen.archives, paths)
        case "binaries":
            print("\n".join(str(folder) for folder in build_all(chosen.modules)))
        case "apiserver-up":
            server = ApiServer(chosen.folder)
            server.up()
            print(server.kubeconfig)
        case "apiserver-down":
            ApiServer(chosen.folder).down()


def _prepare(paths: ClusterPaths) -> None:
    foreign = foreign_kubeconfig(paths) is not None
    if not foreign:
        require_root()
    with ThreadPoolExecutor() as pool:
        sources = pool.submit(download_all, set_up_modules(foreign=foreign))
        if not foreign:
            DevCluster(paths).prepare()
        sources.result()


def _up(paths: ClusterPaths, nodes: int | None) -> None:
    foreign = foreign_kubeconfig(paths)
    if foreign is None:
        DevCluster(paths).up(nodes)
        return
    print(f"using the cluster of KUBECONFIG={foreign}, building none:", flush=True)
    print(run(["kubectl", "get", "nodes", "--request-timeout=10s"]), end="")


def _down(paths: ClusterPaths) -> None:
    foreign = foreign_kubeconfig(paths)
    if foreign is not None:
        print(f"leaving the cluster of KUBECONFIG={foreign} alone", flush=True)
        if os.geteuid() != 0:
            return
    DevCluster(paths).down()


def _load_images(archives: Sequence[Path], paths: ClusterPaths) -> None:
    foreign = foreign_kubeconfig(paths)
    if foreign is None:
        DevCluster(paths).load_images(archives)
        return
    context = run(["kubectl", "config", "current-context"]).strip()
    for archive in archives:
        try:
            command = load_command(context, archive)
        except LookupError as error:
            raise ClusterError(
                f"KUBECONFIG={foreign}: {error}: make a release into a registry that its nodes reach"
                " (docs/releasing.md), and install that"
            ) from error
        run(command, timeout=600)


def _print_environment(paths: ClusterPaths) -> None:
    folders = [str(PLUGIN_FOLDER), *(str(module.target()) for module in MODULES.values() if built(module))]
    kubeconfig = foreign_kubeconfig(paths) or str(paths.kubeconfig)
    print(f"export KUBECONFIG={shlex.quote(kubeconfig)}")
    print(f"export PATH={shlex.quote(os.pathsep.join([*folders, os.environ.get('PATH', os.defpath)]))}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
