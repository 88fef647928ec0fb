"""Formats, accelerators and images: what is tried where, what is skipped, and what a Job's pod is given for it."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.answers import Script, when
from tests.simulation.cluster import SETTINGS, Cluster, framework, pulled
from tests.simulation.deployments import a_model, a_spec, candidate
from tests.states.deployment import a_deployment
from tests.states.pods import without_a_node
from triton_converters.contract.conversion_requests import ConvertRequest, ReferenceRequest
from triton_operator.resources import as_built

Body = dict[str, Any]
PRODUCT = "NVIDIA-A100-SXM4-80GB"
GPU = {"product": PRODUCT}
NVIDIA = "nvcr.io/nvidia/tritonserver"
NO_NODE = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."


def model(*names: str, **fields: Any) -> list[Body]:
    """A model with candidates named FORMAT-PRECISION."""
    return [a_model(candidates=[candidate(name) for name in names], **fields)]


def file_model(form: str, *names: str, **fields: Any) -> list[Body]:
    """A model that comes as a file."""
    (found,) = model(*names, format=form, path=f"model.{form}", **fields)
    del found["entrypoint"]
    return [found]


def jobs(cluster: Cluster, stage: str) -> list[Body]:
    return [each for each in cluster.of_kind("Job") if f"-{stage}-" in each["metadata"]["name"]]


def pod(cluster: Cluster, stage: str) -> Body:
    """Spec of the pods of the stage's first Job."""
    spec: Body = jobs(cluster, stage)[0]["spec"]["template"]["spec"]
    return spec


def request(cluster: Cluster, stage: str, kind: Any) -> Any:
    return kind.from_json(pod(cluster, stage)["containers"][0]["args"][-1])


# What is skipped ---------------------------------------------------------------------------------------------------


def test_on_cpu_a_trt_candidate_is_skipped_at_once_and_the_rest_go_on() -> None:
    cluster = a_deployment().asking(models=model("trt-fp16", "onnx-fp32")).cluster()
    cluster.act()
    skipped = cluster.candidate("trt-fp16")
    assert (skipped["state"], skipped["reason"]) == ("Skipped", "GpuProductMissing")
    assert "set spec.gpu" in skipped["message"]
    cluster.settle()
    assert cluster.story[:5] == ["source", "reference", "metrics", "convert onnx-fp32", "profile onnx-fp32"]
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.condition("Converted")["message"].endswith("not converted: trt-fp16 (GpuProductMissing)")
    assert [each.reason for each in cluster.events].count("GpuProductMissing") == 1


@pytest.mark.parametrize("image", [f"{NVIDIA}:26.03-py3", "triton-operator.local/tritonserver-cpu:0.1.0"])
def test_tensorflow_is_refused_by_a_server_that_does_not_know_it_before_anything_is_converted(image: str) -> None:
    models = file_model("tf-savedmodel", "tf-savedmodel-fp32", "onnx-fp32")
    cluster = a_deployment().asking(models=models, serving={"image": image}).cluster()
    cluster.act()
    skipped = cluster.candidate("tf-savedmodel-fp32")
    assert (skipped["state"], skipped["reason"]) == ("Skipped", "FormatNotServed")
    assert image in skipped["message"]
    assert "onnx" in skipped["message"]
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == "onnx-fp32"
    assert cluster.started("convert") == 1


def test_an_operator_set_that_the_server_does_not_read_is_refused_before_anything_is_converted() -> None:
    """The CPU image reads it: what works on a laptop would end in the server's refusal on the cluster."""
    models = model("onnx-fp32", "ts-trace-fp32", onnx={"opset": 23})
    cluster = a_deployment().asking(models=models, serving={"image": f"{NVIDIA}:24.10-py3"}).cluster()
    cluster.settle()
    skipped = cluster.candidate("onnx-fp32")
    assert (skipped["state"], skipped["reason"]) == ("Skipped", "FormatNotServed")
    assert skipped["message"] == (
        f"image {NVIDIA}:24.10-py3: release 24.10 reads ONNX operator sets up to 21, and the spec asks for 23; set"
        " spec.models[].onnx.opset to at most 21, or spec.serving.image to an image of 25.08 or newer"
    )
    assert cluster.status["serving"]["candidate"] == "ts-trace-fp32"
    assert cluster.started("convert") == 1


def test_an_older_image_is_the_way_to_serve_tensorflow() -> None:
    spec = a_spec(models=file_model("tf-savedmodel", "tf-savedmodel-fp32"), serving={"image": f"{NVIDIA}:26.03-py3"})
    cluster = Cluster(spec)
    cluster.settle()
    for kind in ("Ready", "Stalled"):
        assert cluster.condition(kind)["reason"] == "AllCandidatesFailed"
        assert "25.02 or older" in cluster.condition(kind)["message"]
    assert cluster.story == ["source"], "the framework need not run for nothing"
    cluster.edit(serving={"image": f"{NVIDIA}:25.02-py3"})
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_where_no_node_has_the_product_an_engine_is_skipped_and_the_rest_are_unschedulable() -> None:
    cluster = (
        a_deployment().asking(models=model("trt-fp16", "onnx-fp32"), gpu=GPU).where(gpu_product_exists=False).cluster()
    )
    cluster.scripts = when("reference", Script(pending=without_a_node(NO_NODE)))
    cluster.run(8)
    skipped = cluster.candidate("trt-fp16")
    assert (skipped["state"], skipped["reason"]) == ("Skipped", "GpuProductMissing")
    assert f"nvidia.com/gpu.product={PRODUCT}" in skipped["message"]
    assert cluster.candidate("onnx-fp32")["state"] == "Pending"
    ready = cluster.condition("Ready")
    assert ready["reason"] == "Unschedulable"
    assert "Check spec.gpu.product" in ready["message"]
    assert cluster.condition("Stalled")["status"] == "False", "a node may still come"
    cluster.gpu_product_exists, cluster.scripts = True, when("reference", Script())
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == "trt-fp16"


def test_an_engine_that_is_made_stays_when_its_node_goes() -> None:
    cluster = (
        a_deployment().asking(models=model("trt-fp16"), gpu=GPU).where(gpu_product_exists=True).settled().cluster()
    )
    cluster.gpu_product_exists = False
    assert cluster.act() == 0


def test_nodes_are_looked_at_again_where_all_are_skipped_for_want_of_one() -> None:
    cluster = a_deployment().asking(models=model("trt-fp16"), gpu=GPU).where(gpu_product_exists=True).cluster()
    cluster.until(lambda cluster: "reference" in cluster.story)
    cluster.gpu_product_exists = False
    cluster.run(8)
    assert cluster.condition("Stalled")["reason"] == "AllCandidatesFailed"
    assert cluster.intent().requeue_after == 60.0
    cluster.gpu_product_exists = True
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_where_nodes_may_not_be_read_the_schedulers_word_counts_after_the_deadline() -> None:
    cluster = (
        a_deployment().asking(models=model("trt-fp16", "onnx-fp32"), gpu=GPU, conversion={"parallelism": 1}).cluster()
    )
    cluster.settings = replace(SETTINGS, unschedulable_seconds=60)
    cluster.scripts = when("convert", Script(pending=without_a_node(NO_NODE)), "trt-fp16")
    cluster.run(30)
    assert cluster.candidate("trt-fp16")["reason"] == "Unschedulable"
    assert cluster.candidate("trt-fp16")["state"] == "Converting"
    cluster.settle()
    skipped = cluster.candidate("trt-fp16")
    assert (skipped["state"], skipped["reason"]) == ("Skipped", "Unschedulable")
    assert "node affinity/selector" in skipped["message"]
    assert "Given up after 60 s; once there is a node, type: kubectl triton retry digits" in skipped["message"]
    assert cluster.status["serving"]["candidate"] == "onnx-fp32"
    cluster.scripts = when("convert", Script())
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == "onnx-fp32", "nobody asked for another try"
    cluster.retry()
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == "trt-fp16"


def test_if_no_other_candidate_is_left_a_node_that_comes_later_is_found() -> None:
    cluster = (
        a_deployment()
        .asking(models=model("trt-fp16"), gpu=GPU)
        .upgraded(unschedulable_seconds=60)
        .faring(when("convert", Script(pending=without_a_node(NO_NODE)), "trt-fp16"))
        .until_has("AllCandidatesFailed", "Stalled")
        .cluster()
    )
    assert cluster.condition("Stalled")["status"] == "True"
    cluster.scripts = when("convert", Script())
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_the_references_pod_tells_too_that_no_node_takes_the_engine() -> None:
    cluster = a_deployment().asking(models=model("trt-fp16", "onnx-fp32"), gpu=GPU).cluster()
    cluster.settings = replace(SETTINGS, unschedulable_seconds=60)
    cluster.scripts = when("reference", Script(pending=without_a_node(NO_NODE)))
    cluster.run(30)
    assert cluster.candidate("trt-fp16")["state"] == "Pending"
    cluster.run(30)
    assert cluster.candidate("trt-fp16")["state"] == "Skipped"
    assert cluster.candidate("onnx-fp32")["state"] == "Pending"
    cluster.scripts = when("reference", Script())
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == "trt-fp16"


# Engines and caches ------------------------------------------------------------------------------------------------


def test_an_engine_of_another_tensorrt_never_reaches_the_server() -> None:
    cluster = a_deployment().asking(models=model("trt-fp16", "onnx-fp32"), gpu=GPU).cluster()
    cluster.scripts = when("profile", Script(server_tensorrt="10.8.0.43"), "trt-fp16")
    cluster.settle()
    failed = cluster.candidate("trt-fp16")
    assert (failed["state"], failed["reason"]) == ("Failed", "FormatNotServed")
    assert "10.9.0.34" in failed["message"]
    assert "10.8.0.43" in failed["message"]
    assert cluster.status["serving"]["candidate"] == "onnx-fp32"
    (job, _) = jobs(cluster, "profile")
    prepare, check, server, run = job["spec"]["template"]["spec"]["initContainers"]
    assert (prepare["name"], check["name"], server["name"], run["name"]) == (
        "prepare",
        "tensorrt",
        "tritonserver",
        "run",
    )
    assert check["image"] == server["image"]
    assert check["args"][2] == "10.9.0.34"
    final = [each["onExitCodes"]["containerName"] for each in job["spec"]["podFailurePolicy"]["rules"][:-1]]
    assert final == ["prepare", "tensorrt", "profile"]


def test_only_engines_are_checked_and_their_tensorrt_is_recorded() -> None:
    cluster = a_deployment().asking(models=model("onnx-fp32"), gpu=GPU).settled().cluster()
    assert [each["name"] for each in pod(cluster, "profile")["initContainers"]] == ["prepare", "tritonserver", "run"]
    cluster.edit(models=model("trt-fp16"))
    cluster.settle()
    for stage in ("profile", "measure"):
        variables = {each["name"]: each["value"] for each in pod(cluster, stage)["containers"][0]["env"]}
        assert variables["TENSORRT_VERSION"] == "10.9.0.34"
    assert [each["name"] for each in pod(cluster, "measure")["initContainers"]] == ["prepare", "run"], (
        "the server that it asks was checked when it was profiled, in another pod"
    )


def accelerated() -> Cluster:
    """A candidate whose server builds engines."""
    found = {**candidate("onnx-fp16"), "name": "onnx-trt", "accelerator": "trt"}
    cluster = a_deployment().asking(models=[a_model(candidates=[found])], gpu=GPU).cluster()
    cluster.settle()
    return cluster


def of_claim(container: Body) -> list[Body]:
    return [each for each in container["volumeMounts"] if each["name"] == "repository"]


def test_each_pod_keeps_the_engines_that_its_server_builds() -> None:
    cluster = accelerated()
    told = request(cluster, "convert", ConvertRequest).engine_cache
    assert told.startswith(f"/repository/.triton-operator/caches/{PRODUCT}/"), (
        "beside it come the server's release or image, and a key"
    )
    (deployment,) = cluster.of_kind("Deployment")
    serving, profiled = deployment["spec"]["template"]["spec"], pod(cluster, "profile")
    _, sidecar, client = profiled["initContainers"]
    for container in (serving["containers"][0], sidecar):
        assert {"name": "engines", "mountPath": told} in container["volumeMounts"]
        assert [each["readOnly"] for each in of_claim(container)] == [True]
    assert {"name": "engines", "mountPath": told, "readOnly": True} in client["volumeMounts"]
    for each in (serving, profiled):
        assert {"name": "engines", "emptyDir": {"sizeLimit": "10Gi"}} in each["volumes"]
    assert serving["volumes"][0]["persistentVolumeClaim"]["readOnly"] is True


def strangeness(cluster: Cluster, *volumes: Body) -> str | None:
    """What is strange about the template of the cluster's server, if its pods had these volumes too."""
    (deployment,) = cluster.of_kind("Deployment")
    made = as_built.ServerNames("digits", deployment["metadata"]["name"], cluster.status["serving"]["revision"])
    template = deepcopy(deployment["spec"]["template"])
    template["spec"]["volumes"] += volumes
    return as_built._strangeness(made, template)


def test_a_record_of_a_server_that_keeps_its_engines_is_one_of_ours() -> None:
    assert strangeness(accelerated()) is None
    other = {"name": "engines", "hostPath": {"path": "/"}}
    assert strangeness(accelerated(), other) == "template.spec.volumes"


@pytest.mark.parametrize("field", ["product", "resourceName"])
def test_another_gpu_is_another_engine(field: str) -> None:
    cluster = a_deployment().asking(models=model("trt-fp16"), gpu=GPU).settled().cluster()
    first = cluster.status["serving"]["revision"]
    cluster.edit(gpu=GPU | {field: "nvidia.com/mig-1g.10gb" if field == "resourceName" else "NVIDIA-H200"})
    cluster.settle()
    assert cluster.status["serving"]["revision"] != first
    assert cluster.started("convert") == 2


@pytest.mark.parametrize(
    ("names", "fields", "converts"),
    [
        (("trt-fp16",), {"tensorrt": {"workspace": "2Gi"}}, True),
        (("trt-fp16",), {"tensorrt": {"builderOptimizationLevel": 5}}, True),
        (("trt-fp16",), {"tensorrt": {"builderOptimizationLevel": 3, "workspace": "1Gi"}}, False),
        (("trt-fp16",), {"onnx": {"optimized": True}}, True),
        (("onnx-fp32",), {"onnx": {"opset": 13}}, True),
        (("onnx-fp32",), {"onnx": {"opset": 17}}, False),
        (("onnx-fp32",), {"tensorrt": {"workspace": "2Gi"}}, False),
        (("ts-trace-fp32",), {"onnx": {"optimized": True}, "tensorrt": {"workspace": "2Gi"}}, False),
    ],
)
def test_options_are_part_of_the_keys_of_what_they_change(names: tuple[str, ...], fields: Body, converts: bool) -> None:
    cluster = a_deployment().asking(models=model(*names), gpu=GPU).settled().cluster()
    cluster.edit(models=model(*names, **fields))
    cluster.settle()
    assert cluster.started("convert") == (2 if converts else 1)


BATCHING = {"maxBatchSize": 8, "dynamicBatching": {}}


@pytest.mark.parametrize(
    ("name", "fields", "is_another"),
    [
        ("trt-fp16", {"config": BATCHING | {"dynamicBatching": {"preferredBatchSizes": [2, 4]}}}, True),
        ("trt-fp16", {"config": BATCHING | {"dynamicBatching": {"preferredBatchSizes": [8]}}}, False),
        ("trt-fp16", {"config": BATCHING | {"dynamicBatching": {"maxQueueDelay": "100us"}}}, False),
        ("trt-fp16", {"config": BATCHING | {"instances": 2}}, False),
        ("onnx-fp32", {"config": BATCHING | {"dynamicBatching": {"preferredBatchSizes": [2, 4]}}}, False),
    ],
)
def test_an_engine_is_another_one_for_another_optimal_batch_size_alone(
    name: str, fields: Body, is_another: bool
) -> None:
    before, after = (a_deployment().asking(models=model(name, **each), gpu=GPU).cluster() for each in ({}, fields))
    before.settle()
    after.settle()
    old, new = (request(each, "convert", ConvertRequest) for each in (before, after))
    assert (new.conversion_key != old.conversion_key) is is_another
    assert new.key != old.key, "config.pbtxt is another one"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # TensorRT's shapes and the tracer's example come from the reference's samples.
        (a_spec(models=model("trt-fp16"), gpu=GPU), {"accuracy": {"maxSamples": 100}}),
        (a_spec(models=model("onnx-fp32")), {"accuracy": {"maxSamples": 100}}),
        (
            a_spec(models=model("tf-trt-fp16", format="tf-keras"), gpu=GPU),
            {"models": model("tf-trt-fp16", format="tf-keras", tensorrt={"workspace": "2Gi"})},
        ),
    ],
)
def test_what_else_shapes_a_file_is_in_its_key(before: Body, after: Body) -> None:
    clusters = [Cluster(before), Cluster(before | after)]
    for each in clusters:
        each.settle()
    old, new = (request(each, "convert", ConvertRequest).conversion_key for each in clusters)
    assert old != new


# Images ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "image"),
    [
        (model("onnx-fp32"), "example/converter:1"),
        (file_model("onnx", "onnx-fp32"), "example/converter:1"),
        (file_model("ts-script", "onnx-fp32"), "example/converter:1"),
        (model("onnx-fp32", format="tf-keras"), "example/converter-tensorflow:1"),
        (model("onnx-fp32", format="tf-estimator"), "example/converter-tensorflow:1"),
        (file_model("tf-savedmodel", "onnx-fp32"), "example/converter-tensorflow:1"),
    ],
)
def test_tensorflow_runs_where_it_is_needed_and_nowhere_else(models: list[Body], image: str) -> None:
    cluster = a_deployment().asking(models=models).settled().cluster()
    found = {stage: framework(pod(cluster, stage))["image"] for stage in ("source", "reference", "convert")}
    assert found == {"source": "example/converter:1", "reference": image, "convert": pulled(image)}
    assert {framework(pod(cluster, stage))["image"] for stage in ("profile", "measure")} == {"example/converter:1"}
    assert cluster.status["images"]["converterTensorflow"] == "example/converter-tensorflow:1"


@pytest.mark.parametrize(
    ("models", "conversion", "container", "told"),
    [
        (file_model("tf-savedmodel", "onnx-fp32"), {}, "run", True),
        (file_model("tf-savedmodel", "onnx-fp32"), {}, "prepare", False),
        (file_model("tf-savedmodel", "onnx-fp32"), {"image": "example/mine:1"}, "run", False),
        (file_model("onnx", "onnx-fp32"), {}, "run", False),
    ],
    ids=["ours", "the converter's", "the user's", "no TensorFlow"],
)
def test_the_image_of_tensorflow_that_cannot_be_pulled_says_where_it_comes_from(
    models: list[Body], conversion: Body, container: str, told: bool
) -> None:
    state = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
    pending = {"phase": "Pending", "initContainerStatuses": [{"name": container, "state": state}]}
    cluster = (
        a_deployment()
        .asking(models=models, conversion=conversion)
        .faring(when("reference", Script(pending=pending)))
        .cluster()
    )
    cluster.run(25)
    ready = cluster.condition("Ready")
    assert ready["reason"] == "ImagePullFailed"
    assert (
        "the Helm value images.converterTensorflow; docs/tensorflow.md says how to build it" in ready["message"]
    ) is told
    assert ("change spec.source.version too" in ready["message"]) is told


def test_an_image_of_the_users_is_for_the_framework_alone() -> None:
    cluster = a_deployment().asking(conversion={"image": "example/mine:1"}).settled().cluster()
    for stage, image in (
        ("source", "example/converter:1"),
        ("reference", "example/mine:1"),
        ("convert", pulled("example/mine:1")),
        ("profile", "example/converter:1"),
        ("metrics", pulled("example/mine:1")),
        ("measure", "example/converter:1"),
    ):
        spec = pod(cluster, stage)
        assert framework(spec)["image"] == image
        copied = any(each["name"] == "converters" for each in spec["volumes"])
        assert copied is image.startswith("example/mine")
        assert spec["containers"][0]["image"] == "example/converter:1", "what publishes is ours"


# Sources that are files ----------------------------------------------------------------------------------------------


def test_a_file_is_given_to_the_jobs_by_its_path() -> None:
    cluster = a_deployment().asking(models=file_model("onnx", "onnx-fp32")).settled().cluster()
    for stage, kind in (("reference", ReferenceRequest), ("convert", ConvertRequest)):
        code = request(cluster, stage, kind).model
        assert (code.format, code.entrypoint.path, dict(code.entrypoint.arguments)) == ("onnx", "model.onnx", {})


@pytest.mark.parametrize(
    ("models", "opset"),
    [
        (model("onnx-fp32"), 17),
        (model("onnx-fp32", onnx={"opset": 11}), 11),
        (file_model("onnx", "onnx-fp32"), 0),
        (file_model("onnx", "onnx-fp32", onnx={"opset": 15}), 15),
    ],
)
def test_a_graph_keeps_its_opset_unless_another_is_asked_for(models: list[Body], opset: int) -> None:
    cluster = a_deployment().asking(models=models).settled().cluster()
    assert request(cluster, "convert", ConvertRequest).onnx_opset == opset


# Shared memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tag", "passed"), [("26.03-py3", False), ("26.04-py3", True)])
def test_only_the_profiled_server_shares_memory_with_its_client(tag: str, passed: bool) -> None:
    cluster = a_deployment().asking(serving={"image": f"{NVIDIA}:{tag}"}).settled().cluster()
    (deployment,) = cluster.of_kind("Deployment")
    flag = "--allow-client-shm=true"
    assert (flag in pod(cluster, "profile")["initContainers"][1]["args"]) is passed
    assert flag not in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
