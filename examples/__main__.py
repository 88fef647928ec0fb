"""`python3 -m examples [NAME...]`: run examples one after the other, from the manifests to a measured server."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from examples import champion, diagnosis, pipeline, verdict
from examples.example import Example, apply, build, drift, find, read, remove, train, variant
from examples.line import heading, line
from examples.pipeline import PIPELINES, Pipeline
from examples.recording import record
from examples.reduced import reductions
from examples.trust import Trust, trusted
from examples.waiting import ExampleError, Watcher
from hack.deploy.command import CommandError, TargetCluster
from hack.deploy.environment import set_up
from hack.deploy.install import install
from hack.devcluster.paths import ClusterError
from triton_operator.api.spec import TritonDeploymentSpec
from triton_plugin import terminal


def main() -> int:
    """Run the named examples, or all of them. Return the exit status: 0 if each one is as its manifest says."""
    parser = argparse.ArgumentParser(prog="python3 -m examples", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="an example or NAME/overlays/OVERLAY; default: every example"
    )
    parser.add_argument(
        "--record", type=Path, help="write each object and its results at the end to NAME.yaml in this folder"
    )
    parser.add_argument("--keep", action="store_true", help="keep the examples' objects in the cluster")
    options = parser.parse_args()
    console = terminal.console()
    try:
        names = options.names or [*(each.namespace for each in find()), *PIPELINES]
        chosen = [PIPELINES.get(name) or (variant(name) if "/" in name else read(name)) for name in names]
        with trusted() as trust:
            values = trust.values if any(map(needs_servers, chosen)) else None
            cluster = set_up(more=values)
            try:
                lines, failed = run_all(cluster, chosen, console, trust, options)
            finally:
                if values:
                    # The authority ends with this process.
                    install(cluster.kubeconfig)
    except (CommandError, ClusterError, LookupError) as error:
        console.print(f"examples: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    for text in (heading(), *lines):
        console.print(text, markup=False, soft_wrap=True)
    for text in failed:
        console.print(f"failed: {text}", style="red", markup=False, soft_wrap=True)
    return 1 if failed else 0


def needs_servers(each: Example | Pipeline) -> bool:
    """Whether the operator has to reach servers of ours for an example."""
    return isinstance(each, Pipeline) or each.namespace == champion.NAME


def run_all(
    cluster: TargetCluster,
    chosen: Sequence[Example | Pipeline],
    console: Console,
    trust: Trust,
    options: argparse.Namespace,
) -> tuple[list[str], list[str]]:
    """Run one after the other; return the lines of those that are as they should be, and what failed."""
    lines, failed = [], []
    for each in chosen:
        example = each.example if isinstance(each, Pipeline) else each
        try:
            if isinstance(each, Pipeline):
                lines.append(pipeline.run(cluster, each, console, trust, options.record))
            elif each.namespace == champion.NAME:
                lines.append(champion.run(cluster, each, console, trust, options.record))
            else:
                lines.append(run(cluster, each, console, options.record))
        except (CommandError, ExampleError) as error:
            console.print(diagnosis.report(cluster, example), markup=False, soft_wrap=True)
            failed.append(f"{example.namespace}: {error}")
        finally:
            if not options.keep:
                remove(cluster, example)
    return lines, failed


def run(cluster: TargetCluster, example: Example, console: Console, folder: Path | None) -> str:
    """Train, apply, wait for Ready, judge; return the example's lines. Raises CommandError or ExampleError.

    The TritonDeployment is applied once its source exists: the operator looks for a missing source less and less often.
    """
    console.print(f"--- {example.namespace}", markup=False)
    remove(cluster, example)
    images = build(cluster, example)
    start = time.monotonic()
    train(cluster, example, images)
    watcher = Watcher(str(cluster.kubeconfig), example, console)
    console.print(f"trained in {watcher.trained():.0f} s")
    apply(cluster, example, images)
    status = watcher.ready()
    text = "\n    ".join([line(example.namespace, status, time.monotonic() - start), *reductions(example)])
    if folder is not None:
        (folder / f"{example.namespace}.yaml").write_text(record(cluster, example), encoding="utf-8")
    for failure in verdict.failures(status):
        console.print(failure, markup=False, soft_wrap=True)
    faults = verdict.faults(TritonDeploymentSpec.model_validate(example.deployment["spec"]), status)
    faults += drift(cluster, example, images)
    if faults:
        raise ExampleError("; ".join(faults))
    console.print(text, markup=False, soft_wrap=True)
    return text


if __name__ == "__main__":
    sys.exit(main())
