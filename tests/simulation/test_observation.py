"""Traces and the log of requests: a rollout and a measurement with them, and no new profile."""

from dataclasses import replace
from typing import Any

from tests.simulation.cluster import SETTINGS
from tests.states.deployment import a_deployment

OTLP = {"ports": [{"protocol": "TCP", "port": 4318}]}
INSTALLED = replace(SETTINGS, tracing_endpoint="http://collector:4318/v1/traces", tracing_egress=(OTLP,))
OBSERVED = {"tracing": True, "arguments": ["--trace-config=rate=10", "--log-verbose=1"]}


def arguments(pod: dict[str, Any], name: str) -> list[str]:
    """The arguments of a container that say what its server tells of requests."""
    (found,) = [each for each in [*pod.get("initContainers", []), *pod["containers"]] if each["name"] == name]
    return [each for each in found["args"] if each.startswith(("--trace", "--log-verbose", "--log-format"))]


def test_only_servers_behind_a_service_tell_of_their_requests() -> None:
    cluster = a_deployment().asking(serving=OBSERVED).where(settings=INSTALLED).settled().cluster()
    (deployment,) = cluster.of_kind("Deployment")
    assert arguments(deployment["spec"]["template"]["spec"], "tritonserver") == [
        "--trace-config=rate=10",
        "--log-verbose=1",
        "--log-format=ISO8601",
        "--trace-config=mode=opentelemetry",
        "--trace-config=level=TIMESTAMPS",
        "--trace-config=opentelemetry,url=http://collector:4318/v1/traces",
        "--trace-config=opentelemetry,resource=service.name=digits",
        "--trace-config=opentelemetry,resource=service.namespace=vision",
    ]
    private = [
        arguments(job["spec"]["template"]["spec"], "tritonserver")
        for job in cluster.of_kind("Job")
        if job["metadata"]["labels"]["triton-operator.dev/stage"] == "profile"
    ]
    assert private
    assert not any(private)


def test_only_servers_that_send_traces_are_let_out() -> None:
    def egress(serving: dict[str, Any]) -> list[Any]:
        cluster = a_deployment().asking(serving=serving).where(settings=INSTALLED).settled().cluster()
        policies = {each["metadata"]["name"]: each["spec"] for each in cluster.of_kind("NetworkPolicy")}
        assert policies["digits-servers"]["egress"] == []
        found: list[Any] = policies.get("digits-traces", {}).get("egress", [])
        return found

    assert egress(OBSERVED) == [OTLP]
    assert egress({"arguments": ["--log-verbose=1"]}) == []


def test_an_object_that_is_to_be_observed_is_rolled_out_and_measured_and_not_profiled_again() -> None:
    cluster = a_deployment().where(settings=INSTALLED).settled().cluster()
    before = len(cluster.story)
    cluster.edit(serving=OBSERVED)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert [each for each in cluster.story[before:] if "profile" in each or "convert" in each] == []
    assert any("measure" in each for each in cluster.story[before:])
