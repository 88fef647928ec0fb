"""Installs the operator of this working tree into a cluster: images, then the Helm chart."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from hack.deploy.command import CommandError, TargetCluster
from hack.deploy.images import load, reference

RELEASE = "triton-operator"
NAMESPACE = "triton-operator"
CHART = "charts/triton-operator"
IMAGES = ("operator", "converter", "tritonserver-cpu")
LATER = "converter-tensorflow"
"""The image that only TensorFlow's models need. It has 900 MB, so an example that needs it loads it."""
CHART_IMAGES = {
    "operator": "operator",
    "converter": "converter",
    "converter-tensorflow": "converterTensorflow",
    "converter-gpu": "converterGpu",
    "tritonserver-cpu": "serverCpu",
}
"""The chart's value in `images` by the name of the image."""
READY_SECONDS = 180
"""How long the operator may take to be ready; its image is on the node already."""


def values(references: dict[str, str]) -> dict[str, object]:
    """The chart's values for images that were loaded into the node, on a cluster whose servers run on CPU.

    Whoever installs a working tree writes the steps that run in its servers, so these are allowed.
    """
    images = {}
    for name, image in references.items():
        repository, _, tag = image.rpartition(":")
        images[CHART_IMAGES[name]] = {"repository": repository, "tag": tag}
    server = {"cpu": True, "instanceGroupKind": "Auto"}
    return {"images": images, "server": server, "allowed": {"pythonSteps": True}}


def install(kubeconfig: str | Path, more: Mapping[str, object] | None = None) -> None:
    """Build and load the images, install or upgrade the release, and wait until the operator is ready.

    ``more``: values of the chart besides those that this tree needs.

    Doing it again with nothing changed leaves the running operator alone.
    Raises deploy.command.CommandError where a step fails.
    """
    cluster = TargetCluster(Path(kubeconfig))
    references = load(cluster, *IMAGES) | {LATER: reference(cluster, LATER)}
    try:
        cluster.run(
            "helm", "upgrade", RELEASE, CHART, "--install", "--namespace", NAMESPACE, "--create-namespace",
            "--take-ownership", "--values", "-", "--wait", "--timeout", f"{READY_SECONDS}s",
            stdin=yaml.safe_dump({**values(references), **(more or {})}), timeout=READY_SECONDS + 60,
        )  # fmt: skip
    except CommandError as error:
        raise CommandError(f"{error}\nThe operator's log ends:\n{_last_words(cluster)}") from error


def _last_words(cluster: TargetCluster) -> str:
    """The end of the operator's log, or why it has none."""
    try:
        log = cluster.run(
            "kubectl", "logs", f"deployment/{RELEASE}", "--all-pods", "--prefix", "--namespace", NAMESPACE, "--tail=5"
        )  # fmt: skip
    except CommandError as error:
        return str(error)
    return "\n".join(line[:500] for line in log.splitlines()) or "it printed nothing"
