"""`python3 -m tests.zoo [NAME...]`: serve other projects' models by the smallest object, and print a table."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from hack.deploy.command import CommandError, TargetCluster
from hack.deploy.environment import set_up
from hack.deploy.images import load
from hack.deploy.install import LATER
from hack.devcluster.paths import ClusterError
from tests.zoo.models import BY_NAME, MODELS, ZooModel
from tests.zoo.outcome import MESSAGE_CHARACTERS, Outcome, are_enough, read, summary, worse, write
from tests.zoo.rehearsal import rehearse
from tests.zoo.run import NAMESPACE, run

AT_ONCE = 2
"""Objects at a time. Their sweeps share the cores: the table says what becomes of models, and not how fast they are.
Four on two cores left servers without the time to start."""


def main() -> int:
    """Run the named models, or all of them. Return the exit status: 0 if enough are ready, and none is worse."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.zoo", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a model; default: all of them")
    parser.add_argument("--output", type=Path, metavar="FILE", help="keep the rows in this file, as JSON")
    parser.add_argument(
        "--at-once", type=int, default=AT_ONCE, metavar="N", help="objects at a time; default: %(default)s"
    )
    parser.add_argument("--rehearse", action="store_true", help="without a cluster, up to the conversion")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BY_NAME):
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    chosen = [BY_NAME[name] for name in dict.fromkeys(arguments.names)] or list(MODELS)
    try:
        each = rehearse if arguments.rehearse else _on(_cluster())
    except (CommandError, ClusterError) as error:
        print(f"zoo: {error}", file=sys.stderr)
        return 1
    before = read(arguments.output) if arguments.output else {}
    outcomes: list[Outcome] = []
    start = time.monotonic()
    for outcome in _ended(each, chosen, arguments.at_once):
        outcomes.append(outcome)
        print(f"{len(outcomes)}/{len(chosen)}  {outcome.line()}", flush=True)
        if arguments.output:
            # After each row: a run that is interrupted leaves those that it has.
            write(arguments.output, [outcome], "rehearsal" if arguments.rehearse else "cluster")
    print(f"{summary(outcomes)} in {(time.monotonic() - start) / 60:.0f} min")
    if lost := worse(before, outcomes):
        print(f"worse than in {arguments.output}: {', '.join(lost)}")
    return 0 if are_enough(outcomes) and not lost else 1


def _ended(each: Callable[[ZooModel], Outcome], chosen: list[ZooModel], at_once: int) -> Iterator[Outcome]:
    """Take the models through, and yield what became of each one when it ends."""
    with ThreadPoolExecutor(at_once) as threads:
        for future in as_completed([threads.submit(_outcome, each, model) for model in chosen]):
            yield future.result()


def _outcome(each: Callable[[ZooModel], Outcome], model: ZooModel) -> Outcome:
    """Return what became of a model; an exception ends its row, and not the others'."""
    start = time.monotonic()
    try:
        return each(model)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error)[-MESSAGE_CHARACTERS:]}"
        return Outcome(model, False, reason, "", time.monotonic() - start)


def _cluster() -> TargetCluster:
    """Return the cluster with this tree's operator, and an empty namespace for the models."""
    cluster = set_up(LATER)
    load(cluster, LATER)
    cluster.run("kubectl", "delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=180s", timeout=200)
    cluster.run("kubectl", "create", "namespace", NAMESPACE)
    return cluster


def _on(cluster: TargetCluster) -> Callable[[ZooModel], Outcome]:
    return lambda model: run(cluster, model)


if __name__ == "__main__":
    sys.exit(main())
