"""The operator's requests for each variant of the resnet50-tf example, compared with the tables of NVIDIA's README."""

import importlib.util
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml

from tests.simulation.answers import GOOD, Script
from tests.simulation.cluster import SETTINGS, Cluster, pulled
from triton_converters.contract.conversion_requests import ConvertRequest, ReferenceRequest
from triton_converters.contract.measurement_requests import ProfileRequest
from triton_plugin.drafting.validation.structural import faults
from triton_plugin.drafting.validation.validate import schema

FOLDER = Path(__file__).resolve().parents[2] / "manifests/examples/resnet50-tf"
CPU_SERVER = replace(SETTINGS, server_image="triton-operator.local/tritonserver-cpu:1")


@cache
def spec_of(variant: str) -> dict[str, Any]:
    argv = ["kubectl", "kustomize", str(FOLDER / variant)]
    objects = yaml.safe_load_all(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    (spec,) = [each["spec"] for each in objects if each["kind"] == "TritonDeployment"]
    return dict(spec)


def settled(variant: str) -> tuple[Cluster, list[Any]]:
    """The simulated cluster at the end, and every Job's request."""
    seen: list[Any] = []

    def script(stage: str, candidate: str, request: Any) -> Script:
        seen.append(request)
        return GOOD

    settings = SETTINGS if variant == "overlays/gpu" else CPU_SERVER
    cluster = Cluster(spec_of(variant), script, settings=settings)
    cluster.settle(600)
    return cluster, seen


def user_file(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"resnet50_tf_{name}", FOLDER / "base" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("variant", ["", "overlays/savedmodel", "overlays/gpu"])
def test_the_spec_holds_no_field_that_the_api_does_not_know(variant: str) -> None:
    given = spec_of(variant)
    assert list(faults(given, schema()["properties"]["spec"], "spec")) == []


@pytest.mark.parametrize(("variant", "form"), [("", "tf-keras"), ("overlays/savedmodel", "tf-savedmodel")])
def test_on_cpu_onnx_is_served_and_every_other_candidate_says_why_not(variant: str, form: str) -> None:
    cluster, requests = settled(variant)
    assert {request.candidate for request in requests if isinstance(request, ConvertRequest)} == {
        "onnx-fp32", "onnx-fp16",
    }  # fmt: skip
    assert {request.model.format for request in requests if isinstance(request, ReferenceRequest)} == {form}
    reasons = {name: cluster.candidate(name)["reason"] for name in ("savedmodel-fp32", "tf-trt-fp16", "trt-fp16")}
    assert set(reasons.values()) == {"FormatNotServed"}
    assert "use format" in cluster.candidate("savedmodel-fp32")["message"]
    assert "onnx" in cluster.candidate("savedmodel-fp32")["message"]
    assert cluster.condition("Ready")["status"] == "True"


def test_the_gpu_variant_has_the_settings_of_nvidias_example() -> None:
    """Its tables, and where they are silent its commands; the online batch is issue 4's."""
    cluster, requests = settled("overlays/gpu")
    converts = [request for request in requests if isinstance(request, ConvertRequest)]
    assert {(request.format, request.precision) for request in converts} == {
        ("tf-savedmodel", "fp16"), ("onnx", "fp16"),
    }  # fmt: skip
    for request in converts:
        assert request.model.max_batch_size == 128
        assert request.config.instances == 2
        assert request.config.preferred_batch_sizes == (64, 128)
        assert request.config.max_queue_delay_microseconds == 1
        assert not request.config.cuda_graphs
        # Only a request that they concern has the options of ONNX.
        if request.format == "onnx":
            assert (request.onnx_opset, request.onnx_optimized) == (12, True)
    profiles = [request for request in requests if isinstance(request, ProfileRequest)]
    assert len(profiles) == len(converts)
    for profile in profiles:
        assert profile.offline.batch_sizes == (1, 2, 4, 8, 16, 32, 64, 128)
        assert profile.online.concurrencies == tuple(range(16, 257, 16))
        assert profile.online.batch_sizes == (2,)
    assert {request.max_samples for request in requests if isinstance(request, ReferenceRequest)} == {256}
    images = {
        container["image"]
        for deployment in cluster.of_kind("Deployment")
        for container in deployment["spec"]["template"]["spec"]["containers"]
    }
    assert images == {pulled("nvcr.io/nvidia/tritonserver:25.02-py3")}


def test_the_dataloader_yields_every_picture_once_in_order(tmp_path: Path) -> None:
    pictures = np.random.default_rng(0).random((5, 4, 4, 3), dtype=np.float32)
    np.savez(tmp_path / "held-out.npz", pictures=pictures, classes=np.arange(5, dtype=np.int64))
    batches = list(user_file("dataloader").get_dataloader_fn(data_dir=str(tmp_path), batch_size=2)())
    assert [len(ids) for ids, _, _ in batches] == [2, 2, 1]
    np.testing.assert_array_equal(np.concatenate([x["input"] for _, x, _ in batches]), pictures)
    np.testing.assert_array_equal(np.concatenate([y["classes"] for _, _, y in batches]), np.arange(5))


def test_top1_is_of_the_classes_and_top5_of_the_probabilities() -> None:
    right = np.array([0, 1, 2, 9], dtype=np.int64)
    probabilities = np.tile(np.linspace(1, 0, 10, dtype=np.float32), (4, 1))
    metrics = user_file("metrics").MetricsCalculator(output_used_for_metrics="classes").calc(
        ids=list("abcd"),
        y_pred={"classes": np.array([0, 1, 0, 0]), "probabilities": probabilities},
        x={},
        y_real={"classes": right},
    )  # fmt: skip
    assert metrics == {"top1": 0.5, "top5": 0.75}
