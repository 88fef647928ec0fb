"""The recommenders: their user files, the variant from a SavedModel, and the GPU overlay next to NVIDIA's example."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml

from examples.example import variant
from tests.simulation.answers import GOOD, Script
from tests.simulation.cluster import Cluster
from triton_converters.contract.conversion_requests import ConvertRequest, ReferenceRequest
from triton_operator.api.spec import TritonDeploymentSpec

ROOT = Path(__file__).resolve().parents[2]
DLRM = ROOT / "manifests/examples/dlrm-hps"
BASE = DLRM / "base"
GPU = "overlays/gpu-tensorrt/tritondeployment.yaml"


@pytest.fixture
def user_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example's folder is on the path, as in a Job, and its modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(BASE))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def user_file(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"recommender_{name}", BASE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_gpu() -> TritonDeploymentSpec:
    """The spec with the overlay's patch."""
    body = yaml.safe_load((BASE / "tritondeployment.yaml").read_text(encoding="utf-8"))
    for patch in yaml.safe_load((DLRM / GPU).read_text(encoding="utf-8")):
        *parents, last = patch["path"].strip("/").split("/")
        target: Any = body
        for part in parents:
            target = target[int(part)] if part.isdecimal() else target[part]
        assert patch["op"] == "add" or last in target
        target[last] = patch["value"]
    return TritonDeploymentSpec.model_validate(body["spec"])


def test_the_spec_holds_no_field_that_the_api_does_not_know() -> None:
    given = yaml.safe_load((BASE / "tritondeployment.yaml").read_text(encoding="utf-8"))["spec"]
    known = TritonDeploymentSpec.model_validate(given)
    assert known.model_dump(mode="json", by_alias=True, exclude_unset=True) == given


def test_the_gpu_variant_has_the_settings_of_nvidias_example() -> None:
    spec = on_gpu()
    sparse, dense = spec.models
    assert spec.performance.offline is not None
    assert spec.performance.offline.batch_sizes == [256, 1024, 4096, 16384, 65536]
    assert [(each.format, each.precision) for each in dense.candidates] == [("trt", "fp16"), ("trt", "fp32")]
    assert (sparse.config.max_batch_size, sparse.hps.gpu_cache_percent) == (65536, 10)
    assert [model.config.instances for model in spec.models] == [1, 1]
    assert dense.config.cuda_graphs
    pools = ["--pinned-memory-pool-byte-size=4000000000", "--cuda-memory-pool-byte-size=0:2000000000"]
    assert spec.serving.arguments == pools
    measurement = spec.performance.measurement
    assert (measurement.mode, measurement.request_count, measurement.interval) == (
        "CountWindows",
        50,
        "5s",
    )


def test_both_models_have_the_same_overlay() -> None:
    assert (DLRM / GPU).read_bytes() == (ROOT / "manifests/examples/dcnv2-hps" / GPU).read_bytes()


def test_the_dense_part_may_come_from_a_savedmodel_next_to_the_same_table() -> None:
    seen: list[Any] = []

    def script(stage: str, candidate: str, request: Any) -> Script:
        seen.append(request)
        return GOOD

    example = variant("dlrm-hps/overlays/savedmodel")
    cluster = Cluster(dict(example.deployment["spec"]), script)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    (reference,) = {request.to_json() for request in seen if isinstance(request, ReferenceRequest)}
    ensemble = ReferenceRequest.from_json(reference).model.ensemble
    assert ensemble is not None
    assert [step.code.format for step in ensemble.steps] == ["hps", "tf-savedmodel"]
    converted = {each.format for request in seen if isinstance(request, ConvertRequest) for each in request.members}
    assert converted == {"hps", "onnx"}
    assert example.images == ("converter", "converter-tensorflow")


@pytest.mark.usefixtures("user_files")
def test_a_request_holds_every_category_of_all_impressions_in_turn(tmp_path: Path) -> None:
    clicks = user_file("clicks")
    numbers, categories, labels = clicks.generate(20, seed=4)
    np.savez(tmp_path / "held-out.npz", numbers=numbers, categories=categories, clicks=labels)
    requests = list(user_file("dataloader").get_dataloader_fn(str(tmp_path), batch_size=8)())
    assert [len(ids) for ids, _, _ in requests] == [8, 8]
    _, inputs, y = requests[1]
    assert {name: (str(array.dtype), array.shape) for name, array in inputs.items()} == {
        "EMB_KEY": ("int64", (1, 26 * 8)),
        "EMB_N_KEY": ("int32", (1, 1)),
        "numerical_features": ("float32", (1, 13 * 8)),
    }
    keys = inputs["EMB_KEY"].reshape(26, 8)
    np.testing.assert_array_equal(keys.T - clicks.OFFSETS, categories[8:16])
    np.testing.assert_array_equal(inputs["numerical_features"].reshape(8, 13), numbers[8:16])
    np.testing.assert_array_equal(y["clicks"], labels[8:16])
    assert keys.max() < clicks.ROWS


@pytest.mark.usefixtures("user_files")
def test_a_log_that_is_too_short_for_a_request_is_repeated(tmp_path: Path) -> None:
    numbers, categories, labels = user_file("clicks").generate(5, seed=4)
    np.savez(tmp_path / "held-out.npz", numbers=numbers, categories=categories, clicks=labels)
    ((ids, _, y),) = user_file("dataloader").get_dataloader_fn(str(tmp_path), batch_size=12)()
    assert ids.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]
    assert len(y["clicks"]) == 12


def test_the_auc_is_the_chance_of_the_right_order() -> None:
    area = user_file("metrics").area_under_curve
    random = np.random.default_rng(0)
    scores, clicks = random.integers(0, 20, 200).astype(np.float32), random.integers(0, 2, 200)
    pairs = scores[clicks == 1][:, None] - scores[clicks == 0][None]
    assert area(scores, clicks) == pytest.approx(float(np.mean((pairs > 0) + (pairs == 0) / 2)))
    assert area(np.array([0.0, 1.0]), np.array([0, 1])) == 1.0
