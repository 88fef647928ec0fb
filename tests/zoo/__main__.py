"""`python3 -m tests.zoo [NAME...]`: serve other projects' models by the smallest object, and print a table."""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from bench.machine import cpu_model
from hack.deploy.command import ROOT, CommandError, TargetCluster
from hack.deploy.environment import set_up
from hack.deploy.images import load
from hack.deploy.install import LATER
from hack.devcluster.paths import ClusterError
from tests.zoo.models import MODELS
from tests.zoo.run import NAMESPACE, Outcome, run

AT_ONCE = 2
"""Models at a time: more would not measure anything on two cores."""
READY_SHARE = 0.9
WIDTH = 150


def main() -> int:
    """Run the named models, or all of them. Return the exit status: 0 if enough of them are ready."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.zoo", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a model; default: all of them")
    names = parser.parse_args().names
    chosen = [model for model in MODELS if not names or model.name in names]
    console = Console()
    try:
        cluster = set_up(LATER)
        load(cluster, LATER)
        _namespace(cluster)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            outcomes = []
            for outcome in threads.map(lambda model: run(cluster, model), chosen):
                console.print(f"{outcome.model.name}: {outcome.reason}", markup=False, highlight=False)
                outcomes.append(outcome)
    except (CommandError, ClusterError) as error:
        console.print(f"zoo: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    ready = sum(outcome.is_ready for outcome in outcomes)
    console.print(table(outcomes))
    console.print(f"{ready} of {len(outcomes)} ready")
    if not names:
        _write(outcomes, ready)
    return 0 if ready >= READY_SHARE * len(outcomes) else 1


def table(outcomes: Sequence[Outcome]) -> Table:
    """Return a row for each model."""
    made = Table("model", "kind", "special", "Ready", "candidates", "seconds", "reason", box=None)
    for each in outcomes:
        is_ready = "yes" if each.is_ready else "no"
        made.add_row(
            each.model.name, each.model.kind, each.model.traits, is_ready, each.passed, f"{each.seconds:.0f}",
            "" if each.is_ready else each.reason,
        )  # fmt: skip
    return made


def _namespace(cluster: TargetCluster) -> None:
    cluster.run("kubectl", "delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=180s", timeout=200)
    cluster.run("kubectl", "create", "namespace", NAMESPACE)


def _write(outcomes: Sequence[Outcome], ready: int) -> None:
    today = datetime.now(UTC).date().isoformat()
    with (ROOT / f"bench/results/{today}-zoo.txt").open("w", encoding="utf-8") as file:
        console = Console(file=file, width=WIDTH)
        console.print(f"make test-zoo on {today}, {cpu_model()}: {ready} of {len(outcomes)} ready", highlight=False)
        console.print(table(outcomes))


if __name__ == "__main__":
    sys.exit(main())
