"""What becomes of the fields that need a cluster."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from triton_local.fields import IMAGES, LEFT_OUT, lacking, on_one_machine
from triton_local.gpus import Gpu
from triton_local.install import ENVIRONMENT
from triton_local.session import Given
from triton_local.versions import SOURCES
from triton_operator.crdgen import crd

Body = dict[str, Any]
ROOT = Path(__file__).parents[2]
SPEC: Body = {"source": {"uri": "pvc://models/digits"}, "models": [{"name": "digits", "path": "digits.onnx"}]}
HERE = Given({"models": Path("/models")})


def known_fields(schema: Body, path: str = "") -> set[str]:
    found = set()
    for name, each in schema.get("properties", {}).items():
        below = f"{path}.{name}".lstrip(".")
        found |= {below} | known_fields(each, below)
    return found


def test_every_field_of_the_tables_is_one_of_the_spec() -> None:
    spec = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    named = {*LEFT_OUT, *IMAGES, *SOURCES}
    assert named - known_fields(spec) == set()


def test_what_needs_a_cluster_has_no_effect_and_is_told() -> None:
    given = {
        **SPEC,
        "serving": {"autoscaling": {"maxReplicas": 3}, "image": "own"},
        "pod": {"nodeSelector": {"a": "b"}},
    }
    spec, said = on_one_machine(given, Given(HERE.claims, images={"own": "own@sha256:1"}))
    assert spec["serving"] == {"image": "own@sha256:1"}
    assert spec["pod"] == {}
    assert said == [
        "spec.serving.autoscaling has no effect: there is one server",
        "spec.pod.nodeSelector has no effect: all runs on this machine",
    ]
    assert given["serving"]["autoscaling"], "the user's object stays as it is"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"source": {"uri": "pvc://others"}}, "--claim others=FOLDER"),
        ({"source": {"uri": "configmap://code"}}, "write the ConfigMap code into the object's file"),
        ({"source": {"uri": "s3://a/b", "secretRef": {"name": "keys"}}}, "--secret keys=FOLDER"),
        ({"source": {"uri": "s3://a/b", "serviceAccountName": "reader"}}, "only a cluster has them"),
        ({"dataset": {"uri": "pvc://data/a"}}, "spec.dataset.uri: pass --claim data=FOLDER"),
        ({"conversion": {"image": "mine:1"}}, "--image mine:1=ARCHIVE"),
        ({"serving": {"image": "mine:1"}}, "spec.serving.image: pass --image mine:1=ARCHIVE"),
        ({"conversion": {"indexSecretRef": {"name": "index"}}}, "--secret index=FOLDER"),
        ({"models": [{"name": "net", "format": "pyt", "entrypoint": "model.py"}]}, "--python PROGRAM"),
        ({"models": [{"name": "net", "path": "a/net.pt"}]}, "the PyTorch that runs net"),
    ],
)
def test_what_this_machine_lacks_is_named_with_the_option_that_gives_it(fields: Body, words: str) -> None:
    (found,) = lacking(SPEC | fields, HERE)
    assert words in found


def test_an_object_that_this_machine_has_all_of_lacks_nothing() -> None:
    assert list(lacking(SPEC, HERE)) == []
    repository = {"name": "ocr", "path": "ocr", "format": "triton-repository"}
    assert list(lacking(SPEC | {"models": [repository]}, HERE)) == []
    full = {
        "source": {"uri": "s3://a/b", "secretRef": {"name": "keys"}},
        "dataset": {"uri": "configmap://rows"},
        "conversion": {"image": "mine:1"},
    }
    assert list(lacking(full, Given({}, {"rows": {}}, {"keys": Path("/keys")}, {"mine:1": "mine@sha256:1"}))) == []


def test_pytorch_is_asked_for_where_neither_an_image_nor_the_user_s_python_has_it() -> None:
    candidates = [{"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}]
    code = {"name": "net", "format": "pyt", "entrypoint": "model.py"}
    spec = SPEC | {"models": [code], "conversion": {"image": "mine:1"}}
    images = {"mine:1": "mine@sha256:1"}
    (found,) = lacking(spec, Given(HERE.claims, images=images))
    assert "serves net as TorchScript" in found
    served = {**spec, "models": [code | {"candidates": candidates}]}
    assert list(lacking(served, Given(HERE.claims, images=images))) == []
    served = {**spec, "serving": {"image": "mine:1"}}
    assert list(lacking(served, Given(HERE.claims, images=images))) == []
    environment = {ENVIRONMENT: f"{ENVIRONMENT}@sha256:1"}
    spec = SPEC | {"models": [code], "conversion": {"image": ENVIRONMENT}}
    assert list(lacking(spec, Given(HERE.claims, images=environment))) == []


@pytest.mark.parametrize("file", sorted((ROOT / "manifests/samples").glob("*.yaml")), ids=lambda file: file.stem)
def test_of_each_sample_it_says_what_is_missing(file: Path) -> None:
    for body in yaml.safe_load_all(file.read_text(encoding="utf-8")):
        if body["kind"] == "TritonDeployment":
            found = list(lacking(body["spec"], Given()))
            known = (": pass --", ": write the ConfigMap", "Secret", "spec.gpu: nvidia-smi shows no GPU")
            assert all(any(words in each for words in known) for each in found)
            spec, _ = on_one_machine(body["spec"], Given())
            assert spec["source"] == body["spec"]["source"]


H200 = (Gpu("NVIDIA-H200", "580.159.03"),)
TRACE = {"name": "trace-fp16", "format": "ts-trace", "precision": "fp16"}
ONNX = {"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}


@pytest.mark.parametrize(
    ("gpu", "candidates", "words"),
    [
        ({"count": 2}, [TRACE], "spec.gpu.count: the object asks for 2, and this machine has 1"),
        ({"product": "NVIDIA-L4"}, [TRACE], "spec.gpu.product: the GPU of this machine is NVIDIA-H200"),
        ({"resourceName": "nvidia.com/mig-1g.5gb"}, [TRACE], "whole GPUs alone, which are nvidia.com/gpu"),
        ({}, [TRACE, ONNX], "list candidates of net, as ts-trace or ts-script"),
        ({}, [], "PyTorch alone has a GPU"),
    ],
)
def test_what_a_gpu_of_this_machine_does_not_serve_is_refused(gpu: Body, candidates: list[Body], words: str) -> None:
    spec = SPEC | {"gpu": gpu, "models": [{"name": "net", "path": "net.onnx", "candidates": candidates}]}
    (found,) = lacking(spec, Given(HERE.claims, gpus=H200, isolates=False))
    assert words in found


def test_a_gpu_is_given_where_there_is_one_and_nothing_isolates() -> None:
    model = {"name": "net", "format": "pyt", "entrypoint": "model.py", "candidates": [TRACE]}
    step = {"name": "words", "format": "triton-python", "entrypoint": "words.py"}
    images = {ENVIRONMENT: f"{ENVIRONMENT}@sha256:1"}
    spec = SPEC | {"gpu": {"product": "NVIDIA-H200"}, "models": [model, step], "conversion": {"image": ENVIRONMENT}}
    assert list(lacking(spec, Given(HERE.claims, images=images, gpus=H200, isolates=False))) == []
    (found,) = lacking(spec, Given(HERE.claims, images=images, gpus=H200))
    assert "pass --unboxed" in found
    (found,) = lacking(spec, Given(HERE.claims, images=images, isolates=False))
    assert "nvidia-smi shows no GPU of this machine" in found
    without = SPEC | {"gpu": {"count": 0}}
    assert list(lacking(without, HERE)) == []
