"""Arguments of tritonserver in a spec: on the server, and wherever its candidates are measured."""

from dataclasses import replace
from typing import Any

from tests.simulation.cluster import SETTINGS, Cluster
from tests.states.deployment import a_deployment

ARGUMENTS = ["--http-thread-count=16", "--rate-limit=execution_count"]


def of_servers(cluster: Cluster, kind: str, stage: str = "") -> list[list[str]]:
    """What of them is among the arguments of each server in the pods of a kind."""
    found: list[dict[str, Any]] = [each for each in cluster.of_kind(kind) if stage in each["metadata"]["name"]]
    pods = [each["spec"]["template"]["spec"] for each in found]
    containers = [each for pod in pods for each in [*pod.get("initContainers", []), *pod["containers"]]]
    servers = [each for each in containers if each["name"] == "tritonserver"]
    return [[each for each in server["args"] if each in ARGUMENTS] for server in servers]


def test_the_candidates_are_measured_with_the_arguments_of_the_server() -> None:
    cluster = a_deployment().asking(serving={"arguments": ARGUMENTS}, selection={"search": {"mode": "Quick"}}).cluster()
    cluster.settle()
    for stage in ("profile", "search"):
        private = of_servers(cluster, "Job", stage)
        assert private, stage
        assert private == [ARGUMENTS] * len(private)
    assert of_servers(cluster, "Deployment") == [ARGUMENTS]


def test_another_argument_profiles_again_converts_nothing_and_rolls_out(serving: Cluster) -> None:
    (before,) = serving.of_kind("Deployment")
    told = len(serving.story)
    serving.edit(serving={"arguments": ARGUMENTS})
    serving.settle()
    (after,) = serving.of_kind("Deployment")
    assert after["metadata"]["name"] != before["metadata"]["name"]
    assert of_servers(serving, "Deployment") == [ARGUMENTS]
    assert serving.condition("Ready")["status"] == "True"
    since = serving.story[told:]
    assert any("profile" in each for each in since)
    assert not [each for each in since if "convert" in each]


def test_an_argument_of_the_installation_wins() -> None:
    installed = replace(SETTINGS, server_arguments=("--http-thread-count=4",))
    cluster = a_deployment().asking(serving={"arguments": ARGUMENTS}).where(settings=installed).settled().cluster()
    (deployment,) = cluster.of_kind("Deployment")
    (server,) = deployment["spec"]["template"]["spec"]["containers"]
    given = [each for each in server["args"] if each.startswith("--http-thread-count")]
    assert given == ["--http-thread-count=16", "--http-thread-count=4"]
