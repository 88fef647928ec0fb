"""What runs users' code, and what asks a server that does, can write to nothing that a container of ours believes."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_model, a_spec, candidate
from triton_operator import names

Body = dict[str, Any]
USER_CODE = {"reference", "convert", "metrics"}
SHARED = {"dshm": "/dev/shm", "incoming": "/incoming"}
"""The only volumes that a container of ours has beside one that is not, and where: no Python imports from there."""
SPECS = {
    "plain": a_spec(),
    "metrics": a_spec(
        metrics={"entrypoint": "metrics.py"},
        accuracy={"thresholds": [{"metric": "accuracy", "min": 0.9}]},
    ),
    "search": a_spec(selection={"search": {"mode": "Quick"}}),
    "engine": a_spec(models=[a_model(candidates=[candidate("trt-fp16")])], gpu={"count": 1}),
    "engines of a graph": a_spec(
        models=[a_model(candidates=[{**candidate("onnx-fp16"), "name": "onnx-trt", "accelerator": "trt"}])],
        gpu={"count": 1},
    ),
    "own image": a_spec(conversion={"image": "mine/framework:1"}),
}


def settled(spec: Body) -> Cluster:
    cluster = Cluster(spec)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True", cluster.status
    return cluster


def pods(cluster: Cluster) -> Iterator[tuple[str, Body]]:
    for each in [*cluster.of_kind("Job"), *cluster.of_kind("Deployment")]:
        stage = each["metadata"]["labels"].get(names.STAGE_LABEL, "server")
        yield stage, each["spec"]["template"]["spec"]


def containers(pod: Body) -> list[Body]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def is_foreign(stage: str, container: Body) -> bool:
    return container["name"] == "tritonserver" or (container["name"] == "run" and stage in USER_CODE)


def mounts(container: Body) -> list[Body]:
    found: list[Body] = container["volumeMounts"]
    return found


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_no_container_of_ours_shares_a_volume_that_another_writes(spec: Body) -> None:
    for stage, pod in pods(settled(spec)):
        foreign = [each for each in containers(pod) if is_foreign(stage, each)]
        written = {
            each["name"]
            for container in foreign
            for each in mounts(container)
            if not each.get("readOnly") and each["name"] != "repository"
        }
        for container in containers(pod):
            if container not in foreign:
                # The client of a private server lists the names of the engines that the server built.
                listed = {"engines"} if container["name"] == "run" else set()
                assert all(each["readOnly"] for each in mounts(container) if each["name"] in listed), stage
                own = {each["name"]: each["mountPath"] for each in mounts(container) if each["name"] not in listed}
                shared = {name: own[name] for name in written & own.keys()}
                assert shared.items() <= SHARED.items(), (stage, container["name"])


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_whoever_meets_users_code_reads_its_inputs_and_writes_to_incoming_alone(spec: Body) -> None:
    for stage, pod in pods(settled(spec)):
        for container in containers(pod):
            if container["name"] in ("run", "tritonserver"):
                claim = [each for each in mounts(container) if each["name"] == "repository"]
                caches = [each for each in claim if "/caches/" in each["mountPath"]]
                assert all(each["readOnly"] and each["subPath"] for each in claim if each not in caches), stage
                assert not caches or container["name"] == "tritonserver"
            if container["name"] == "run":
                writable = {each["mountPath"] for each in mounts(container) if not each.get("readOnly")}
                assert writable <= {"/incoming", "/tmp", "/dev/shm"}, stage
            elif container["name"] == stage and stage in {*USER_CODE, "profile", "search", "measure"}:
                assert {"name": "incoming", "mountPath": "/incoming", "readOnly": True} in mounts(container)
                assert "dshm" not in {each["name"] for each in mounts(container)}


def test_containers_beside_a_server_import_nothing_from_their_working_directory() -> None:
    seen = 0
    for _, pod in pods(settled(SPECS["search"])):
        ours = [each for each in containers(pod) if each["name"] not in ("tritonserver", "revision")]
        if len(ours) == len(containers(pod)) or not ours:
            continue
        for container in ours:
            seen += 1
            assert container["workingDir"] == "/"
            assert {"name": "PYTHONSAFEPATH", "value": "1"} in container["env"]
    assert seen >= 4
