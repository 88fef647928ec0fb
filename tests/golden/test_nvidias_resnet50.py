"""The GPU variant of NVIDIA's ResNet50: config.pbtxt, sweeps and containers compared with its tables."""

from typing import Any

import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from tests.states.nvidias_resnet50 import COMMAND, PRODUCT, TABLE
from tests.states.passes import planned, reached
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.measurement_requests import ProfileRequest
from triton_converters.contract.results import Signature, Tensor
from triton_converters.model_config.model import Execution, render

CASE = "resnet50-on-an-a100"
SIGNATURE = Signature((Tensor("INPUT__0", "FP32", (3, 224, 224)),), (Tensor("OUTPUT__0", "FP32", (1000,)),), 128)


@pytest.fixture(scope="module")
def profile() -> dict[str, Any]:
    """Spec of the profile Job's pod."""
    job = next(each for each in planned(CASE).objects if "-profile-" in each["metadata"]["name"])
    spec: dict[str, Any] = job["spec"]["template"]["spec"]
    return spec


@pytest.fixture(scope="module")
def convert() -> dict[str, Any]:
    """Spec of the convert Job's pod, which the plan of the case no longer asks for."""
    children = reached(CASE).objects.values()
    job = next(each for each in children if each["kind"] == "Job" and "-convert-" in each["metadata"]["name"])
    spec: dict[str, Any] = job["spec"]["template"]["spec"]
    return spec


def test_config_pbtxt_is_the_tables(convert: dict[str, Any]) -> None:
    request = ConvertRequest.from_json(convert["containers"][0]["args"][-1])
    execution = Execution(
        request.format,
        request.accelerator,
        request.tensorrt.workspace_bytes,
        request.engine_cache,
    )
    text = render(SIGNATURE, request.config, execution, {"INPUT__0": (3, 224, 224)})
    message = text_format.Parse(text, model_config_pb2.ModelConfig())
    (group,) = message.instance_group
    (provider,) = message.optimization.execution_accelerators.gpu_execution_accelerator
    assert {
        "Max Batch Size": message.max_batch_size,
        "Number of model instances": group.count,
        "Triton Max Queue Delay": message.dynamic_batching.max_queue_delay_microseconds,
        "Triton Preferred Batch Sizes": list(message.dynamic_batching.preferred_batch_size),
        "Model format": request.format,
        "Backend": message.backend,
        "Backend accelerator": provider.name,
        "Precision": request.precision.upper(),
    } == {name: value for name, value in TABLE.items() if name[:6] not in ("Client", "Concur")}
    assert {
        "--onnx-opset": request.onnx_opset,
        "--onnx-optimized": int(request.onnx_optimized),
        "--max-workspace-size": int(provider.parameters["max_workspace_size_bytes"]),
        "--capture-cuda-graph": int(message.optimization.cuda.graphs),
    } == COMMAND
    assert group.kind == model_config_pb2.ModelInstanceGroup.KIND_GPU
    assert provider.parameters["trt_engine_cache_path"] == request.engine_cache


def test_the_sweeps_are_the_tables_rows(profile: dict[str, Any]) -> None:
    request = ProfileRequest.from_json(profile["containers"][0]["args"][-1])
    assert list(request.offline.batch_sizes) == TABLE["Client Batch Size"]
    assert request.offline.concurrencies == (1,)
    assert list(request.online.concurrencies) == TABLE["Concurrent client requests"]
    assert request.online.batch_sizes == (1,)


def test_one_gpu_of_the_product_goes_to_who_runs_the_model(convert: dict[str, Any], profile: dict[str, Any]) -> None:
    _, server, client = profile["initContainers"]
    prepare, run_ = convert["initContainers"]
    assert run_["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert prepare["resources"] == convert["containers"][0]["resources"] == {}
    assert server["resources"] == {"limits": {"memory": "16Gi", "nvidia.com/gpu": "1"}}
    assert client["resources"] == {}
    for pod in (convert, profile):
        assert pod["nodeSelector"] == {"nvidia.com/gpu.product": PRODUCT}


def test_the_server_may_write_to_its_engines_and_to_nothing_else(
    convert: dict[str, Any], profile: dict[str, Any]
) -> None:
    cache = ConvertRequest.from_json(convert["containers"][0]["args"][-1]).engine_cache
    assert cache.startswith(f"{layout.ROOT}/caches/{PRODUCT}/26.03/")
    writable = [each["mountPath"] for each in profile["initContainers"][1]["volumeMounts"] if not each.get("readOnly")]
    assert writable == ["/dev/shm", "/tmp", cache]
