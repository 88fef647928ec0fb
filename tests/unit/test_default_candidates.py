"""The candidates that the operator chooses for a model whose spec lists none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver.custom_resources import MINIMAL, changed
from triton_converters.contract import formats
from triton_operator.api.format_rules import MODELS
from triton_operator.api.resolved import FromRepository, ModelOfRepository
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import Images
from triton_operator.candidates.defaults import MOST_CANDIDATES, default_candidates
from triton_operator.candidates.server_image import refusal

CPU = "triton-operator.local/tritonserver-cpu:0.1.0"
NVIDIA = "nvcr.io/nvidia/tritonserver:26.07-py3"
WITH_TENSORFLOW = "nvcr.io/nvidia/tritonserver:25.02-tf2-python-py3"
H100 = {"product": "NVIDIA-H100"}
OWN_IMAGE = {"image": "team/tensorrt:1"}


def chosen(source: str, image: str, converter_gpu: str | None = None, **fields: Any) -> list[str]:
    """The names of the candidates for a model of a format."""
    images = Images(
        converter="c:1", converter_tensorflow="t:1", converter_gpu=converter_gpu, commands_version=1, server=image
    )
    return [each.name for each in default_candidates(*given_spec(source, fields), images)]


def given_spec(source: str, fields: dict[str, Any]) -> tuple[Any, Any]:
    """A spec, with fields replaced, and its model of the source's format."""
    body = changed(MINIMAL, {"spec.models.0.candidates": ..., "spec.models.0.format": source})["spec"]
    spec = TritonDeploymentSpec.model_validate(body | fields)
    return spec, spec.models[0]


@pytest.mark.parametrize(
    ("source", "image", "fields", "expected"),
    [
        ("onnx", CPU, {}, ["onnx-fp32"]),
        ("pyt", CPU, {}, ["onnx-fp32", "ts-trace-fp32"]),
        ("pyt", CPU, {"gpu": {"count": 0, "product": "NVIDIA-H100"}}, ["onnx-fp32", "ts-trace-fp32"]),
        ("ts-trace", CPU, {}, ["ts-script-fp32", "onnx-fp32"]),
        ("tf-keras", CPU, {}, ["onnx-fp32"]),
        ("tf-keras", NVIDIA, {}, ["onnx-fp32"]),
        ("tf-keras", "team/server:1", {}, ["onnx-fp32"]),
        ("tf-savedmodel", WITH_TENSORFLOW, {}, ["onnx-fp32", "tf-savedmodel-fp32"]),
        ("xgboost", CPU, {}, ["onnx-fp32"]),
        ("sklearn", CPU, {}, ["onnx-fp32"]),
        ("lightgbm", NVIDIA, {"gpu": H100, "conversion": OWN_IMAGE}, ["onnx-fp32"]),
        ("onnx", NVIDIA, {"gpu": {}}, ["onnx-fp32", "onnx-fp16"]),
        ("onnx", NVIDIA, {"gpu": H100}, ["onnx-fp32", "onnx-trt-fp16", "onnx-fp16"]),
        ("onnx", NVIDIA, {"gpu": H100, "conversion": OWN_IMAGE}, ["onnx-fp32", "onnx-trt-fp16", "trt-fp16"]),
        ("pyt", NVIDIA, {"gpu": {}}, ["onnx-fp32", "onnx-fp16", "ts-trace-fp16"]),
        ("pyt", CPU, {"gpu": H100, "conversion": OWN_IMAGE}, ["onnx-fp32", "onnx-fp16", "ts-trace-fp16"]),
        ("ts-script", NVIDIA, {"gpu": {}}, ["ts-script-fp32", "ts-script-fp16", "onnx-fp16"]),
    ],
)
def test_the_choice(source: str, image: str, fields: dict[str, Any], expected: list[str]) -> None:
    assert chosen(source, image, **fields) == expected


@pytest.mark.parametrize(
    ("source", "fields", "samples"),
    [
        ("xgboost", {}, 4096),
        ("sklearn", {"dataloader": None}, 256),
        ("lightgbm", {"accuracy": {"maxSamples": 100}}, 100),
        ("onnx", {}, 256),
    ],
)
def test_as_many_samples_as_cost_little(source: str, fields: dict[str, Any], samples: int) -> None:
    assert given_spec(source, fields)[0].max_samples == samples


@given(
    source=st.sampled_from(sorted(name for name, source in formats.SOURCE_FORMATS.items() if source.tried)),
    image=st.sampled_from([CPU, NVIDIA, WITH_TENSORFLOW, "team/server:1"]),
    gpu=st.sampled_from([None, {}, H100, {"count": 0}]),
    conversion=st.sampled_from([{}, OWN_IMAGE]),
    converter_gpu=st.sampled_from([None, "g:1"]),
)
def test_every_choice_can_be_made_and_served(
    source: str, image: str, gpu: Any, conversion: Any, converter_gpu: str | None
) -> None:
    spec, model = given_spec(source, {"gpu": gpu, "conversion": conversion})
    images = Images(
        converter="c:1", converter_tensorflow="t:1", converter_gpu=converter_gpu, commands_version=1, server=image
    )
    found = default_candidates(spec, model, images)
    assert 1 <= len(found) <= MOST_CANDIDATES
    assert len({each.name for each in found}) == len(found)
    for each in found:
        assert formats.refusal(source, each.format, each.accelerator) is None
        assert refusal(image, source, each.format) is None
        assert spec.gpu_count or (each.precision, each.accelerator) == ("fp32", "none")


@pytest.mark.parametrize(
    ("source", "expected"),
    [("pyt", ["onnx-fp32", "onnx-trt-fp16", "trt-fp16"]), ("tf-keras", ["onnx-fp32", "onnx-trt-fp16", "onnx-fp16"])],
)
def test_the_converter_image_for_gpus_builds_engines_of_what_is_not_tensorflows(
    source: str, expected: list[str]
) -> None:
    assert chosen(source, NVIDIA, converter_gpu="g:1", gpu=H100) == expected


@pytest.mark.parametrize(("path", "expected"), [("ocr", ["onnx-fp32"]), ("MLmodel", ["onnx-fp32", "onnx-fp16"])])
def test_only_what_a_triton_repository_serves_already_stays_as_it_is(path: str, expected: list[str]) -> None:
    spec, model = given_spec("onnx", {"gpu": {}})
    fields = dict(model) | {"path": path, "repository": FromRepository(file="1/model.onnx")}
    images = Images(converter="c:1", converter_tensorflow="t:1", commands_version=1, server=NVIDIA)
    model = ModelOfRepository.model_construct(**fields)
    assert [each.name for each in default_candidates(spec, model, images)] == expected


def test_every_source_format_has_a_choice() -> None:
    assert {name for name in MODELS if formats.SOURCE_FORMATS[name].tried} == set(MODELS) - {
        *formats.AS_GIVEN,
        formats.REPOSITORY,
    }
