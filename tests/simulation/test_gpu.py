"""Objects with spec.gpu, on GPUs that are pretended: the converter image for them, TF32, and where their pods run."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.answers import Script, when
from tests.simulation.cluster import SETTINGS, Cluster, framework, pulled
from tests.simulation.deployments import a_model, candidate
from tests.simulation.edits import another_version
from tests.states.deployment import a_deployment
from triton_converters.contract import layout
from triton_converters.contract.reasons import Reason
from triton_operator import names

Body = dict[str, Any]
PRODUCT = "NVIDIA-A100-SXM4-80GB"
GPU = {"product": PRODUCT}
IMAGE = "example/converter-gpu:1"
WITH_IMAGE = replace(SETTINGS, converter_gpu_image=IMAGE)
TF32_OFF = {"name": "NVIDIA_TF32_OVERRIDE", "value": "0"}


def settled(settings: Any = WITH_IMAGE, scripts: Any = None, **fields: Any) -> Cluster:
    """An object with a GPU and the candidates onnx-fp32 and trt-fp16, at rest."""
    cluster = (
        a_deployment()
        .candidates("onnx-fp32", "trt-fp16")
        .asking(**{"gpu": GPU} | fields)
        .where(settings=settings)
        .cluster()
    )
    if scripts is not None:
        cluster.scripts = scripts
    cluster.settle()
    return cluster


def pods(cluster: Cluster) -> Iterator[tuple[str, Body]]:
    """The pods of every Job and server that exists, by the Job's stage or `server`."""
    for body in [*cluster.of_kind("Job"), *cluster.of_kind("Deployment")]:
        yield body["metadata"]["labels"].get(names.STAGE_LABEL, "server"), body["spec"]["template"]["spec"]


def user_images(cluster: Cluster) -> set[str]:
    """The images of the containers that run user code."""
    return {framework(pod)["image"] for stage, pod in pods(cluster) if stage in ("reference", "convert", "metrics")}


# The converter image for GPUs --------------------------------------------------------------------------------------


def test_user_code_of_an_object_with_a_gpu_runs_in_the_image_for_gpus_and_all_else_in_ours() -> None:
    cluster = settled()
    assert user_images(cluster) == {IMAGE, pulled(IMAGE)}
    ours = {
        each["image"]
        for _, pod in pods(cluster)
        for each in [*pod.get("initContainers", []), *pod["containers"]]
        if each["name"] not in ("run", "tritonserver", "tensorrt")
    }
    assert ours == {SETTINGS.converter_image}
    assert cluster.status["images"]["converterGpu"] == IMAGE
    assert cluster.condition("Ready")["status"] == "True"


def test_containers_of_ours_know_whose_timing_cache_they_hand_on_and_user_code_does_not() -> None:
    told = {
        each["name"]
        for stage, pod in pods(settled())
        for each in [*pod.get("initContainers", []), *pod["containers"]]
        if stage == "convert" and {"name": layout.OBJECT, "value": "digits"} in each["env"]
    }
    assert told == {"prepare", "convert"}


def test_what_the_image_for_gpus_needs_is_installed_in_it() -> None:
    cluster = settled(conversion={"requirements": "requirements.txt"})
    (pod,) = [pod for stage, pod in pods(cluster) if stage == "packages"]
    assert [each["image"] for each in pod["initContainers"] if each["name"] == "run"] == [IMAGE]


@pytest.mark.parametrize(
    ("fields", "image"),
    [
        ({"gpu": None}, SETTINGS.converter_image),
        ({"gpu": {"count": 0}}, SETTINGS.converter_image),
        (
            {"models": [a_model(format="tf-keras", candidates=[candidate("onnx-fp32")])]},
            "example/converter-tensorflow:1",
        ),
        ({"conversion": {"image": "example/torch:1"}}, "example/torch:1"),
    ],
    ids=str,
)
def test_others_do_not_run_in_the_image_for_gpus(fields: Body, image: str) -> None:
    assert user_images(settled(**fields)) == {image, pulled(image)}


def test_an_object_on_the_cpu_does_not_see_the_image_for_gpus() -> None:
    with_image, without = (settled(settings, gpu=None) for settings in (WITH_IMAGE, SETTINGS))
    assert with_image.status == without.status
    assert set(with_image.objects) == set(without.objects)


def test_the_operator_chooses_an_engine_where_the_image_builds_one() -> None:
    models = [a_model(candidates=[])]
    found = [
        [each["name"] for each in settled(each, models=models).status["candidates"]] for each in (WITH_IMAGE, SETTINGS)
    ]
    assert found == [["onnx-fp32", "onnx-trt-fp16", "trt-fp16"], ["onnx-fp32", "onnx-trt-fp16", "onnx-fp16"]]


# Upgrades ----------------------------------------------------------------------------------------------------------


def test_an_image_for_gpus_that_comes_later_does_nothing_until_the_source_changes() -> None:
    cluster = settled(SETTINGS)
    story = list(cluster.story)
    cluster.settings = WITH_IMAGE
    cluster.settle()
    assert cluster.story == story
    cluster.edit(another_version())
    cluster.settle()
    assert user_images(cluster) == {IMAGE, pulled(IMAGE)}


# Without the image -------------------------------------------------------------------------------------------------


NO_TENSORRT = when(
    "convert",
    Script(
        exit_code=42,
        reason=Reason.TENSOR_RT_UNAVAILABLE,
        message="the image has no TensorRT; set spec.conversion.image",
    ),
    "trt-fp16",
)


@pytest.mark.parametrize(
    ("later", "advice"),
    [
        (SETTINGS, "or ask the administrator who installed the operator to set the Helm value images.converterGpu"),
        (WITH_IMAGE, "or use the image of the Helm value images.converterGpu: for that, change spec.source.version"),
    ],
    ids=["none", "later"],
)
def test_an_engine_that_the_image_for_cpus_cannot_build_names_the_helm_value(later: Any, advice: str) -> None:
    cluster = settled(SETTINGS, NO_TENSORRT)
    cluster.settings = later
    cluster.settle()
    failed = cluster.candidate("trt-fp16")
    assert (failed["state"], failed["reason"]) == ("Failed", "TensorRtUnavailable")
    assert advice in failed["message"]
    assert cluster.condition("Ready")["status"] == "True"


def test_an_image_of_the_user_without_tensorrt_is_the_users_to_change() -> None:
    failed = settled(WITH_IMAGE, NO_TENSORRT, conversion={"image": "example/torch:1"}).candidate("trt-fp16")
    assert failed["message"] == "the image has no TensorRT; set spec.conversion.image"


# TF32 --------------------------------------------------------------------------------------------------------------


def environment(pod: Body) -> list[Body]:
    return [pair for each in [*pod.get("initContainers", []), *pod["containers"]] for pair in each.get("env", [])]


def test_every_container_with_a_gpu_computes_fp32_without_tf32_and_no_other_is_told() -> None:
    found = {
        (stage, each["name"]): TF32_OFF in each.get("env", [])
        for stage, pod in pods(settled())
        for each in [*pod.get("initContainers", []), *pod["containers"]]
    }
    on_gpu = {("reference", "run"), ("convert", "run"), ("profile", "tritonserver"), ("server", "tritonserver")}
    assert {key for key, told in found.items() if told} == on_gpu


def test_no_container_of_an_object_on_the_cpu_is_told_of_tf32() -> None:
    cluster = settled(gpu=None)
    assert "tf32" not in cluster.status["images"]
    assert not [each for _, pod in pods(cluster) for each in environment(pod) if each == TF32_OFF]


# Where pods run ----------------------------------------------------------------------------------------------------


SHARED = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteMany"]}}}
OF_SERVERS = {
    "nodeSelector": {"pool": "gpu"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
            ]
        }
    },
}


def places(cluster: Cluster) -> dict[str, Body]:
    """The choice of nodes by stage, without the claim's own affinity."""
    return {
        stage: {
            "selector": pod.get("nodeSelector", {}),
            "tolerated": [each["key"] for each in pod.get("tolerations", [])],
            "affinity": {name: terms for name, terms in pod.get("affinity", {}).items() if name != "podAffinity"},
        }
        for stage, pod in pods(cluster)
    }


def test_every_pod_runs_where_servers_with_a_gpu_may_run_if_the_claim_is_attached_to_one_node() -> None:
    """The first pod that uses the claim, the source Job's, decides where the volume is made."""
    found = places(settled(serving={"pod": OF_SERVERS}))
    assert {"source", "reference", "convert", "profile", "measure", "server"} <= found.keys()
    for stage, place in found.items():
        assert place == {
            "selector": {"pool": "gpu", names.GPU_PRODUCT_LABEL: PRODUCT},
            "tolerated": ["dedicated", "nvidia.com/gpu"],
            "affinity": OF_SERVERS["affinity"],
        }, stage


def test_the_choice_of_nodes_for_conversion_comes_before_that_of_the_servers() -> None:
    found = places(
        settled(
            pod={"nodeSelector": {"pool": "any", "disk": "fast"}},
            conversion={"pod": {"nodeSelector": {"rack": "7"}}},
            serving={"pod": {"nodeSelector": {"pool": "gpu", "rack": "8"}}},
        )
    )
    product = {names.GPU_PRODUCT_LABEL: PRODUCT}
    assert found["source"]["selector"] == {"pool": "gpu", "disk": "fast", "rack": "7"} | product
    assert found["server"]["selector"] == {"pool": "gpu", "disk": "fast", "rack": "8"} | product


@pytest.mark.parametrize(
    "fields", [{"repository": SHARED}, {"repository": {"claimName": "own"}}, {"gpu": None}], ids=str
)
def test_other_pods_run_anywhere_if_the_claim_is_shared_or_the_users_or_no_gpu_is_asked_for(fields: Body) -> None:
    models = [a_model(candidates=[candidate("onnx-fp32")])]
    found = places(settled(models=models, serving={"pod": OF_SERVERS}, **fields))
    assert found["server"]["selector"]["pool"] == "gpu"
    for stage in ("source", "measure"):
        assert found[stage]["selector"] == {}, stage
