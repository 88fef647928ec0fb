"""Collects what to read if an example fails: conditions, events and the last pods' logs."""

from collections.abc import Callable
from functools import partial

from examples.example import Example, status_of
from hack.deploy.command import CommandError, TargetCluster
from hack.deploy.install import NAMESPACE as OPERATOR_NAMESPACE
from hack.deploy.install import RELEASE

PODS = 3
LINES = 25
LINE_CHARACTERS = 500


def report(cluster: TargetCluster, example: Example) -> str:
    """Return everything worth reading as text; errors take the place of what cannot be read."""
    parts = [(title, _attempt(partial(read, cluster, example))) for title, read in SECTIONS]
    return "\n\n".join(f"--- {title}\n{text}" for title, text in parts)


def _attempt(read: Callable[[], str]) -> str:
    try:
        text = read().rstrip() or "none"
    except CommandError as error:
        text = str(error)
    return "\n".join(line[:LINE_CHARACTERS] for line in text.splitlines())


def _conditions(cluster: TargetCluster, example: Example) -> str:
    status = status_of(cluster.get("tritondeployment", example.name, "--namespace", example.namespace))
    lines = [f"{c.type}={c.status} {c.reason}: {c.message}" for c in status.conditions]
    return "\n".join([*lines, *(f"{c.name}: {c.state} {c.reason}: {c.message}" for c in status.candidates)])


def _events(cluster: TargetCluster, example: Example) -> str:
    text = cluster.run("kubectl", "get", "events", "--namespace", example.namespace, "--sort-by=.lastTimestamp")
    return "\n".join(text.splitlines()[-LINES:])


def _pods(cluster: TargetCluster, example: Example) -> str:
    text = cluster.run("kubectl", "get", "pods", "--namespace", example.namespace, "--output", "wide")
    made = cluster.get("pods", "--namespace", example.namespace, "--sort-by=.metadata.creationTimestamp")["items"]
    names = [pod["metadata"]["name"] for pod in made[-PODS:]]
    return "\n".join(
        [text, *(f"{name}:\n{_attempt(partial(_log, cluster, example.namespace, name))}" for name in names)]
    )


def _log(cluster: TargetCluster, namespace: str, *what: str) -> str:
    # A container that has not started yet has no log, which is no error of the others.
    shown = ("--all-containers", "--ignore-errors", "--prefix", f"--tail={LINES}")
    return cluster.run("kubectl", "logs", *what, "--namespace", namespace, *shown)


def _operator(cluster: TargetCluster, example: Example) -> str:
    return _log(cluster, OPERATOR_NAMESPACE, f"deployment/{RELEASE}", "--all-pods")


SECTIONS = (
    ("conditions and candidates", _conditions),
    ("events", _events),
    ("pods", _pods),
    ("operator", _operator),
)
