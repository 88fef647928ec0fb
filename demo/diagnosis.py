"""What to read when the demonstration did not get there: conditions, events, and the last pods' logs."""

from typing import Any

from demo.example import NAME, NAMESPACE, status_of
from deploy.command import Cluster, CommandError
from deploy.install import NAMESPACE as OPERATOR_NAMESPACE
from deploy.install import RELEASE

PODS = 3
LINES = 25
LINE_CHARACTERS = 500


def report(cluster: Cluster) -> str:
    """Everything worth reading, as text; what cannot be had is said in its place."""
    return "\n\n".join(f"--- {title}\n{_attempt(read, cluster)}" for title, read in SECTIONS)


def _attempt(read: Any, cluster: Cluster) -> str:
    try:
        text = str(read(cluster)).rstrip() or "none"
    except CommandError as error:
        text = str(error)
    return "\n".join(line[:LINE_CHARACTERS] for line in text.splitlines())


def _conditions(cluster: Cluster) -> str:
    status = status_of(cluster.get("tritondeployment", NAME, "--namespace", NAMESPACE))
    lines = [f"{c.type}={c.status} {c.reason}: {c.message}" for c in status.conditions]
    return "\n".join([*lines, *(f"{c.name}: {c.state} {c.reason}: {c.message}" for c in status.candidates)])


def _events(cluster: Cluster) -> str:
    text = cluster.run("kubectl", "get", "events", "--namespace", NAMESPACE, "--sort-by=.lastTimestamp")
    return "\n".join(text.splitlines()[-LINES:])


def _pods(cluster: Cluster) -> str:
    text = cluster.run("kubectl", "get", "pods", "--namespace", NAMESPACE, "--output", "wide")
    made = cluster.get("pods", "--namespace", NAMESPACE, "--sort-by=.metadata.creationTimestamp")["items"]
    names = [pod["metadata"]["name"] for pod in made[-PODS:]]
    return "\n".join(
        [text, *(f"{name}:\n{_attempt(lambda c, n=name: _log(c, NAMESPACE, n), cluster)}" for name in names)]
    )


def _log(cluster: Cluster, namespace: str, *what: str) -> str:
    return cluster.run(
        "kubectl", "logs", *what, "--namespace", namespace, "--all-containers", "--prefix", f"--tail={LINES}"
    )  # fmt: skip


def _operator(cluster: Cluster) -> str:
    return _log(cluster, OPERATOR_NAMESPACE, f"deployment/{RELEASE}", "--all-pods")


SECTIONS = (
    ("conditions and candidates", _conditions),
    ("events", _events),
    ("pods", _pods),
    ("operator", _operator),
)
