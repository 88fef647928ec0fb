"""The API server takes the objects of an engine as they are: a container before the server, a mount in a mount."""

from typing import Any

from tests.apiserver.kubectl import Kubectl
from tests.simulation.deployments import a_model, candidate
from tests.states.deployment import a_deployment


def test_the_jobs_and_the_server_of_an_engine_are_valid(kubectl: Kubectl) -> None:
    accelerated = {**candidate("onnx-fp16"), "accelerator": "trt"}
    models = [a_model(candidates=[candidate("trt-fp16"), accelerated])]
    cluster = (
        a_deployment()
        .asking(models=models, gpu={"product": "NVIDIA-A100-SXM4-80GB"})
        .where(gpu_product_exists=True)
        .cluster()
    )
    wanted: dict[str, dict[str, Any]] = {}
    while cluster.serving() is None:
        wanted |= {each["metadata"]["name"]: each for each in cluster.intent().objects}
        cluster.run(1)
    kinds = {"Job", "Deployment"}
    bodies = [each for each in wanted.values() if each["kind"] in kinds]
    assert {each["kind"] for each in bodies} == kinds
    for body in bodies:
        metadata = {name: value for name, value in body["metadata"].items() if name != "ownerReferences"}
        metadata["namespace"] = kubectl.namespace
        said = kubectl("create", "--validate=strict", "--dry-run=server", "-f", "-", body=body | {"metadata": metadata})
        assert "created (server dry run)" in said
