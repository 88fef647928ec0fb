"""On which GPU each candidate was measured, by the labels of its node, and that figures of two are not ranked."""

import json
from collections.abc import Mapping
from typing import Any

from tests.simulation.answers import Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_model, candidate
from tests.simulation.test_cut_answers import long_profiles
from tests.states.deployment import a_deployment
from triton_operator.observed.gpu import NodeGpu, gpu_of

A100, L4 = "NVIDIA-A100-SXM4-80GB", "NVIDIA-L4"
DRIVER = {"nvidia.com/cuda.driver-version.full": "580.159.04", "nvidia.com/cuda.runtime-version.full": "13.0"}


def node(product: str) -> dict[str, str]:
    return {"nvidia.com/gpu.product": product} | DRIVER


def on_nodes(nodes: Mapping[str, Mapping[str, str]], **fields: Any) -> Cluster:
    """An object with a GPU of any product, each of whose candidates is measured on the node of its name."""
    gpu = {"gpu": {"count": 1}} | fields
    cluster = a_deployment().candidates("onnx-fp32", "ts-trace-fp32").asking(**gpu).where(nodes=nodes).cluster()
    cluster.settle()
    return cluster


def recorded(cluster: Cluster) -> dict[str, Any]:
    """What the results ConfigMap says of GPUs, by the stage."""
    data = cluster.objects["ConfigMap", "digits-results"]["data"]
    return {name.split(".")[1]: json.loads(text) for name, text in data.items() if name.startswith("gpu.")}


def test_figures_of_two_products_are_not_ranked() -> None:
    cluster = on_nodes({"onnx-fp32": node(A100), "ts-trace-fp32": node(L4)})
    selected = cluster.condition("Selected")
    assert selected["status"] == "True"
    assert "not ranked: ts-trace-fp32: it was measured elsewhere" in selected["message"]
    assert f"GPU differs: {L4} and {A100}" in selected["message"]
    assert "spec.gpu.product" in selected["message"]
    cluster.nodes = {"onnx-fp32": node(A100), "ts-trace-fp32": node(A100)}
    cluster.edit(gpu={"product": A100})
    cluster.settle()
    assert all("rank" in cluster.candidate(each) for each in ("onnx-fp32", "ts-trace-fp32"))


def test_what_serves_stays_chosen_where_another_product_measured_a_worse_one() -> None:
    cluster = on_nodes({"onnx-fp32": node(A100)}, models=[a_model(candidates=[candidate("onnx-fp32")])])
    cluster.nodes = {"onnx-fp32": node(A100), "ts-script-fp32": node(L4)}
    cluster.scripts = when("profile", Script(speed=0.5), "ts-script-fp32")
    cluster.edit(models=[a_model(candidates=[candidate("onnx-fp32"), candidate("ts-script-fp32")])])
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.status["serving"]["candidate"] == "onnx-fp32"
    assert cluster.candidate("ts-script-fp32")["reason"] == "NotCompared"


def test_the_status_names_the_product_and_the_driver_that_the_node_has() -> None:
    cluster = on_nodes({"onnx-fp32": node(A100), "ts-trace-fp32": node(A100)})
    environment = cluster.status["performance"]["environment"]
    assert environment["gpuProduct"] == A100
    assert environment["gpuDriver"] == "580.159.04, CUDA 13.0"
    assert recorded(cluster) == {"profile": {"product": A100, "driver": "580.159.04, CUDA 13.0"}}
    requests = len(cluster.story)
    cluster.nodes = {}
    cluster.settle()
    assert cluster.status["performance"]["environment"] == environment, "it is recorded with the result"
    assert len(cluster.story) == requests


def test_an_answer_that_the_kubelet_cut_is_of_the_node_that_measured() -> None:
    cluster = (
        a_deployment()
        .candidates("onnx-fp32", "ts-trace-fp32")
        .asking(gpu={"count": 1})
        .faring(long_profiles)
        .where(nodes={"onnx-fp32": node(A100), "ts-trace-fp32": node(A100)})
        .serving()
        .cluster()
    )
    assert cluster.status["performance"]["environment"]["gpuProduct"] == A100


def test_where_nodes_tell_nothing_candidates_are_ranked_as_before() -> None:
    cluster = on_nodes({})
    assert cluster.condition("Ready")["status"] == "True"
    assert "gpuDriver" not in cluster.status["performance"]["environment"]
    assert recorded(cluster) == {}


def test_an_object_on_the_cpu_asks_for_no_node() -> None:
    cluster = on_nodes({"onnx-fp32": node(A100), "ts-trace-fp32": node(L4)}, gpu=None)
    assert cluster.condition("Ready")["status"] == "True"
    assert recorded(cluster) == {}


def test_a_mig_device_has_a_label_of_its_own_name() -> None:
    labels = node(A100) | {"nvidia.com/mig-1g.5gb.product": f"{A100}-MIG-1g.5gb"}
    assert gpu_of(labels, "nvidia.com/mig-1g.5gb").product == f"{A100}-MIG-1g.5gb"
    assert gpu_of(labels, "nvidia.com/gpu").product == A100


def test_older_labels_tell_the_major_versions() -> None:
    older = {"nvidia.com/cuda.driver.major": "535", "nvidia.com/cuda.runtime.major": "12"}
    assert gpu_of(older, "nvidia.com/gpu") == NodeGpu("", "535, CUDA 12")
    assert gpu_of({}, "nvidia.com/gpu") == NodeGpu()
