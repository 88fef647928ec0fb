"""`python3 -m examples [NAME...]`: each example from its manifests to a measured server, one after the other."""

import argparse
import sys
import time
from pathlib import Path

import yaml
from rich.console import Console

from deploy.command import Cluster, CommandError
from deploy.environment import set_up
from devcluster.paths import ClusterError
from examples import diagnosis, verdict
from examples.example import Example, apply, build, find, read, remove
from examples.line import heading, line
from examples.waiting import ExampleError, Watcher
from triton_operator.api.spec import TritonDeploymentSpec


def main() -> int:
    """Run the named examples, or all; returns the exit status, 0 only where each is as its manifest says."""
    parser = argparse.ArgumentParser(prog="python3 -m examples", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="an example; all of them if none is named")
    parser.add_argument("--record", type=Path, help="folder for each TritonDeployment as it ended: NAME.yaml")
    parser.add_argument("--keep", action="store_true", help="leave what was made in the cluster")
    options = parser.parse_args()
    console = Console(highlight=False)
    try:
        chosen = [read(name) for name in options.names] or find()
        cluster = set_up()
    except (CommandError, ClusterError, LookupError) as error:
        console.print(f"examples: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    lines, failed = [], []
    for example in chosen:
        try:
            lines.append(run(cluster, example, console, options.record))
        except (CommandError, ExampleError) as error:
            console.print(diagnosis.report(cluster, example), markup=False, soft_wrap=True)
            failed.append(f"{example.namespace}: {error}")
        finally:
            if not options.keep:
                remove(cluster, example)
    for text in (heading(), *lines):
        console.print(text, markup=False, soft_wrap=True)
    for text in failed:
        console.print(f"failed: {text}", style="red", markup=False, soft_wrap=True)
    return 1 if failed else 0


def run(cluster: Cluster, example: Example, console: Console, record: Path | None) -> str:
    """Apply, wait until it is Ready, judge; returns the example's line. Raises CommandError or ExampleError."""
    console.print(f"--- {example.namespace}", markup=False)
    remove(cluster, example)
    start = time.monotonic()
    apply(cluster, example, build(cluster, example))
    watcher = Watcher(str(cluster.kubeconfig), example, console)
    console.print(f"trained in {watcher.trained():.0f} s")
    status = watcher.ready()
    text = line(example.namespace, status, time.monotonic() - start)
    if record is not None:
        (record / f"{example.namespace}.yaml").write_text(recorded(watcher.resource()), encoding="utf-8")
    for failure in verdict.failures(status):
        console.print(failure, markup=False, soft_wrap=True)
    faults = verdict.faults(TritonDeploymentSpec.model_validate(example.deployment["spec"]), status)
    if faults:
        raise ExampleError("; ".join(faults))
    console.print(text, markup=False, soft_wrap=True)
    return text


def recorded(resource: dict[str, object]) -> str:
    """A TritonDeployment as YAML, without what the API server adds."""
    metadata = resource["metadata"]
    assert isinstance(metadata, dict)
    kept = {name: metadata[name] for name in ("name", "namespace", "generation")}
    return yaml.safe_dump({**resource, "metadata": kept, "status": resource["status"]}, sort_keys=False, width=120)


if __name__ == "__main__":
    sys.exit(main())
