"""What `kubectl triton init --from` makes of KServe's own samples for Triton, and of all that a cluster has."""

import io
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.simulation.cluster import Cluster
from tests.simulation.objects import SETTINGS
from triton_plugin.__main__ import main
from triton_plugin.drafting.first_object import ObjectOptions
from triton_plugin.drafting.kserve.drafts import Draft, Request, drafts
from triton_plugin.drafting.kserve.listing import files
from triton_plugin.drafting.validation.validate import check

Body = dict[str, Any]
SAMPLES = Path(__file__).parent / "kserve_samples"
ACCOUNT = "models-reader"


def model(form: str, uri: str, **fields: Any) -> Body:
    """A predictor, as KServe's webhook leaves it."""
    known = {"modelFormat": {"name": form}, "name": "", "protocolVersion": "v2", "resources": {}, "storageUri": uri}
    return {"model": known | fields, "minReplicas": 1}


CPU = {"resources": {"limits": {"cpu": "2", "memory": "4Gi"}, "requests": {"cpu": "1", "memory": "2Gi"}}}
GPU = {"resources": {part: {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"} for part in ("limits", "requests")}}
ON_TRITON = {"runtime": "kserve-tritonserver"}
CONTAINER = {"containers": [{"name": "kserve-container", "image": "registry.example/own:1"}]}
TOLERATIONS = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
PREDICTORS: dict[str, Body] = {
    "vision/resnet50": model("triton", "gs://models/resnet50", **GPU, runtimeVersion="26.04-py3")
    | {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L4", "pool": "gpu"}, "tolerations": TOLERATIONS},
    "vision/detectors": model("triton", "gs://models/detectors", **CPU),
    "vision/segmentation": model("triton", "s3://models/segmentation", **GPU),
    "vision/ocr": model("onnx", "pvc://models/ocr/ocr.onnx", **CPU),
    "vision/style": model("onnx", "gs://models/style/", **CPU),
    "vision/faces": model("onnx", "oci://registry.example/models/faces:1.2", **CPU),
    "vision/flowers": {"tensorflow": {"storageUri": "gs://models/flowers"}, "canaryTrafficPercent": 10},
    "vision/leaves": model("tensorflow", "gs://models/leaves", **ON_TRITON),
    "vision/mnist": model("pytorch", "gs://models/torchserve/mnist", protocolVersion="v1"),
    "vision/cifar10": model("pytorch", "gs://models/cifar10", **ON_TRITON),
    "nlp/bert": {"triton": {"storageUri": "pvc://models/bert", "args": ["--log-verbose=1"], **CPU}},
    "nlp/embedding": model("onnx", "hf://acme/embedding:v1.5", **CPU),
    "nlp/llama": model("huggingface", "hf://acme/llama", args=["--model_name=llama"], **GPU),
    "nlp/reranker": model("triton", "s3://models/reranker", **CPU),
    "nlp/summary": CONTAINER,
    "nlp/translation": model("triton", "s3://models/translation", runtime="tritonserver-ft", **GPU),
    "nlp/rules": {"pmml": {"storageUri": "gs://models/rules"}},
    "risk/churn": model("xgboost", "s3://models/churn", **CPU),
    "risk/fraud": {"xgboost": {"storageUri": "s3://models/fraud/model.ubj"}},
    "risk/score": model("lightgbm", "pvc://models/score/model.txt", **CPU),
    "risk/iris": model("sklearn", "gs://models/iris"),
    "risk/limits": {"sklearn": {"storageUri": "s3://models/limits"}, "serviceAccountName": ACCOUNT},
    "risk/loans": model("xgboost", "s3://models/loans/model.json"),
    "risk/prices": model("onnx", "https://models.example/prices.onnx")
    | {"canaryTrafficPercent": 20, "minReplicas": 2, "timeout": 30},
    "risk/claims": model("triton", "https://acme.blob.core.windows.net/models/claims", **CPU),
    "risk/rates": {
        "model": {
            "modelFormat": {"name": "onnx"},
            "storage": {"key": "minio", "path": "rates/m.onnx", "parameters": {"bucket": "models"}},
        }
    },
    "risk/paddle": {"paddle": {"storageUri": "gs://models/paddle"}},
    "risk/nightly": model("onnx", "s3://models/nightly/nightly.onnx", **CPU)
    | {"minReplicas": 0, "maxReplicas": 4, "scaleMetric": "concurrency", "nodeSelector": {"pool": "cpu"}},
    "risk/archive": model("triton", "s3://models/archive.tar.gz"),
    "risk/accounts": model("triton", "s3://models/accounts") | {"serviceAccountName": ACCOUNT},
}
BESIDE = {"nlp/bert": {"transformer": CONTAINER}, "risk/loans": {"explainer": CONTAINER}}
"""The other components of an InferenceService."""
LISTING = """
gs://models/resnet50/resnet50/config.pbtxt
gs://models/resnet50/resnet50/1/model.onnx
gs://models/resnet50/resnet50/2/model.onnx
gs://models/resnet50-old/resnet50/config.pbtxt
gs://models/detectors/cars/config.pbtxt
gs://models/detectors/cars/3/model.onnx
gs://models/detectors/people/config.pbtxt
gs://models/detectors/people/1/model.pt
gs://models/detectors/signs/config.pbtxt
gs://models/detectors/signs/1/model.plan
s3://models/segmentation/roads/config.pbtxt
s3://models/segmentation/roads/1/model.onnx
s3://models/segmentation/roofs/1/model.onnx
gs://models/style/README.md
gs://models/style/v3/style.onnx
gs://models/flowers/0009/saved_model.pb
gs://models/flowers/0010/saved_model.pb
gs://models/flowers/0010/variables/variables.index
gs://models/leaves/leaves/config.pbtxt
gs://models/leaves/leaves/1/model.savedmodel/saved_model.pb
gs://models/cifar10/cifar10/config.pbtxt
gs://models/cifar10/cifar10/1/model.pt
pvc://models/bert/bert/config.pbtxt
pvc://models/bert/bert/1/model.onnx
hf://acme/embedding/onnx/model.onnx
hf://acme/embedding/tokenizer.json
s3://models/reranker/reranker/config.pbtxt
s3://models/reranker/reranker/1/.keep
s3://models/reranker/scores/config.pbtxt
s3://models/reranker/scores/1/model.onnx
s3://models/reranker/tokenizer/config.pbtxt
s3://models/reranker/tokenizer/1/model.py
s3://models/churn/model.bst
s3://models/accounts/accounts/config.pbtxt
s3://models/accounts/accounts/1/model.onnx
"""
NO_PATH = (
    "models[0].path: the model's folder below the URI, which an InferenceService does not name (--model PATH, or"
    " --listing FILE)"
)
EXPECTED = """
vision/resnet50 complete -> resnet50-triton
vision/detectors by hand -> detectors-cars, detectors-people: signs
vision/segmentation by hand -> segmentation-roads, segmentation-roofs: predictor.model.resources
vision/ocr complete -> ocr-triton
vision/style complete -> style-triton
vision/faces by hand -> faces-triton: source.uri, models[0].path, predictor.model.storageUri
vision/flowers by hand -> flowers-triton: predictor.tensorflow.protocolVersion
vision/leaves complete -> leaves-triton
vision/mnist by hand -> mnist-triton: models[0].path, dataloader, predictor.model.protocolVersion
vision/cifar10 complete -> cifar10-triton
nlp/bert by hand -> bert: transformer
nlp/embedding complete -> embedding
nlp/llama stays: it has a model of format huggingface
nlp/reranker by hand -> reranker-scores: reranker, tokenizer
nlp/summary stays: it runs a container of its user
nlp/translation by hand -> translation: models[0].path, predictor.model.runtime
nlp/rules stays: it has a model of format pmml
risk/churn complete -> churn
risk/fraud by hand -> fraud: predictor.xgboost.protocolVersion
risk/score complete -> score
risk/iris stays: it has a model of scikit-learn
risk/limits stays: it has a model of scikit-learn
risk/loans by hand -> loans: explainer
risk/prices complete -> prices
risk/claims by hand -> claims: models[0].path, predictor.model.storageUri
risk/rates by hand -> rates: predictor.model.storage.key
risk/paddle stays: it has a model of format paddle
risk/nightly complete -> nightly
risk/archive by hand -> archive: source.uri, models[0].path, predictor.model.storageUri
risk/accounts by hand -> accounts: predictor.serviceAccountName
"""
"""What became of each, the objects, and what the reasons are about."""


def printed() -> str:
    """What `kubectl get isvc -A -o yaml` prints; KServe has Services of the bare names in one namespace."""
    items = []
    for number, (place, predictor) in enumerate(PREDICTORS.items()):
        namespace, name = place.split("/")
        service = name if namespace == "vision" else f"{name}-predictor"
        spec = {"predictor": predictor, **BESIDE.get(place, {})}
        items.append(
            {
                "apiVersion": "serving.kserve.io/v1beta1",
                "kind": "InferenceService",
                "metadata": {
                    "annotations": {
                        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": spec}) + "\n",
                        "serving.kserve.io/deploymentMode": "Serverless" if namespace == "vision" else "RawDeployment",
                    },
                    "creationTimestamp": "2026-11-26T10:00:00Z",
                    "finalizers": ["inferenceservice.finalizers"],
                    "generation": 2,
                    "managedFields": [
                        {
                            "apiVersion": "serving.kserve.io/v1beta1",
                            "fieldsType": "FieldsV1",
                            "fieldsV1": {"f:spec": {".": {}, "f:predictor": {}}},
                            "manager": "kubectl-client-side-apply",
                            "operation": "Update",
                            "time": "2026-11-26T10:00:00Z",
                        }
                    ],
                    "name": name,
                    "namespace": namespace,
                    "resourceVersion": str(1000 + number),
                    "uid": f"0b0c7d7e-0000-4000-8000-{number:012}",
                },
                "spec": spec,
                "status": {
                    "address": {"url": f"http://{service}.{namespace}.svc.cluster.local"},
                    "conditions": [{"lastTransitionTime": "2026-11-26T10:01:00Z", "status": "True", "type": "Ready"}],
                    "url": f"http://{name}-{namespace}.example.com",
                },
            }
        )
    return yaml.safe_dump({"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}})


def read(documents: Iterable[Any], listing: str) -> dict[str, Draft]:
    found = drafts(documents, Request(ObjectOptions(), listing=files(listing.splitlines())))
    return {f"{number}: {each.service}": each for number, each in enumerate(found)}


def line(found: Draft) -> str:
    """What became of it, as in ``EXPECTED``."""
    names = ", ".join(each.name for each in found.objects)
    about = ", ".join(re.split("[:;,]", each)[0] for each in found.reasons)
    return f"{found.service} {found.state}{f' -> {names}' if names else ''}{f': {about}' if about else ''}"


def samples() -> list[Any]:
    return [yaml.safe_load(each.read_text(encoding="utf-8")) for each in sorted(SAMPLES.glob("*.yaml"))]


OF_SAMPLES = read(samples(), (SAMPLES / "listing.txt").read_text(encoding="utf-8"))
OF_A_CLUSTER = read(yaml.safe_load_all(printed()), LISTING)
DRAFTED = {place: each for place, each in (OF_SAMPLES | OF_A_CLUSTER).items() if each.objects}


def specs(found: Draft) -> list[Body]:
    return [yaml.safe_load(each.text)["spec"] for each in found.objects]


def spec_of(service: Body, listing: str) -> Body:
    """The spec of the one object of an InferenceService by that listing."""
    (found,) = read([service], listing).values()
    (spec,) = specs(found)
    return spec


def a_service(predictor: Body, **metadata: Any) -> Body:
    known = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "a"} | metadata,
    }
    return known | {"spec": {"predictor": predictor}}


def test_two_of_kserves_six_samples_are_complete_and_three_have_a_transformer() -> None:
    assert [line(each) for each in OF_SAMPLES.values()] == [
        "bert-v2 by hand -> bert-v2: transformer",
        "bloom-560m stays: fastertransformer",
        "torch-transformer by hand -> torch-transformer: transformer",
        "torch-transformer by hand -> torch-transformer-triton: transformer",
        "torchscript-cifar complete -> torchscript-cifar",
        "torchscript-cifar complete -> torchscript-cifar-triton",
    ]


def test_without_a_listing_each_sample_has_a_path_to_fill_in() -> None:
    found = drafts(samples(), Request(ObjectOptions()))
    assert all(each.state == "by hand" and NO_PATH in each.reasons for each in found)


def test_of_all_that_a_cluster_has_each_is_complete_or_has_a_reason() -> None:
    assert [line(each) for each in OF_A_CLUSTER.values()] == EXPECTED.strip().splitlines()


@pytest.mark.parametrize("place", DRAFTED)
def test_what_is_drafted_is_taken_by_the_api_and_planned_to_ready(place: str) -> None:
    for each in DRAFTED[place].objects:
        body = yaml.safe_load(each.text)
        assert check(body) == []
        cluster = Cluster(body["spec"])
        cluster.settings = replace(SETTINGS, allowed_service_accounts=(f"vision/{ACCOUNT}",))
        cluster.settle()
        assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")


def test_each_model_of_a_repository_is_an_object_that_takes_its_own_folder() -> None:
    cars, people = specs(OF_A_CLUSTER["1: vision/detectors"])
    assert cars["source"] == {"uri": "gs://models/detectors", "include": ["cars/*"]}
    assert cars["models"] == [{"name": "cars", "path": "cars"}]
    assert people["models"] == [{"name": "people", "path": "people"}]
    roads, roofs = specs(OF_A_CLUSTER["2: vision/segmentation"])
    assert (roads["gpu"], roofs["gpu"]) == ({"count": 1}, {"count": 1})
    assert roofs["models"] == [{"name": "roofs", "path": "roofs/1/model.onnx"}], "it has no config.pbtxt"


def test_the_only_model_of_a_repository_takes_all_that_an_object_takes_by_itself() -> None:
    (spec,) = specs(OF_A_CLUSTER["0: vision/resnet50"])
    assert (spec["source"], spec["models"]) == (
        {"uri": "gs://models/resnet50"},
        [{"name": "resnet50", "path": "resnet50"}],
    )


@pytest.mark.parametrize(
    ("version", "is_onnx"), [("26.04-py3", True), ("25.02-py3", False), ("23.12-py3", True), ("", True)]
)
def test_a_saved_model_is_served_as_onnx_where_the_server_has_no_tensorflow(version: str, is_onnx: bool) -> None:
    listing = "gs://m/r/leaves/config.pbtxt\ngs://m/r/leaves/1/model.savedmodel/saved_model.pb"
    (served,) = spec_of(a_service(model("triton", "gs://m/r", runtimeVersion=version)), listing)["models"]
    assert served.get("candidates") == (
        [{"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}] if is_onnx else None
    )


@pytest.mark.parametrize(
    ("listing", "source", "path"),
    [
        ("gs://m/f/0009/saved_model.pb\ngs://m/f/0010/saved_model.pb", {"uri": "gs://m/f"}, "0010"),
        ("gs://m/f/saved_model.pb", {"uri": "gs://m", "include": ["f/*"]}, "f"),
        ("./1/saved_model.pb", {"uri": "gs://m/f"}, "1"),
        ("gs://m/f/export/saved_model.pb\ngs://m/f/export/1/saved_model.pb", {"uri": "gs://m/f"}, "export/1"),
        ("gs://m/fr/1/saved_model.pb", {"uri": "gs://m/f"}, "TODO"),
    ],
)
def test_where_a_saved_model_lies(listing: str, source: Body, path: str) -> None:
    spec = spec_of(a_service(model("tensorflow", "gs://m/f")), listing)
    assert (spec["source"], spec["models"]) == (source, [{"name": "a", "path": path}])


@pytest.mark.parametrize(
    ("form", "listing", "why"),
    [
        ("onnx", "gs://m/a.onnx\ngs://m/b/b.onnx", "several of its files may be the model: a.onnx, b/b.onnx"),
        ("onnx", "gs://m/a.pb", "no file below its URI is a model of format onnx that is taken; there are a.pb"),
        ("pytorch", "gs://m/model-store/a.mar", "no file below its URI is a model of format pytorch"),
        ("tensorflow", "gs://m/saved_model.pb", "its URI is that of a model itself; move that into a folder below it"),
        ("triton", "gs://m/a b/config.pbtxt\ngs://m/a b/1/model.onnx", "--listing: "),
    ],
)
def test_why_a_listing_shows_no_model(form: str, listing: str, why: str) -> None:
    (found,) = read([a_service(model(form, "gs://m"))], listing).values()
    assert found.state == "stays"
    assert found.reasons[0].startswith(why)


def test_no_two_objects_have_one_name() -> None:
    long = "recommendations-of-the-front-page-in-all-regions"
    of_both = [a_service(model("onnx", "gs://m/a.onnx"), name=f"{long}-{each}", namespace="n") for each in "abc"]
    elsewhere = a_service(model("onnx", "gs://m/a.onnx"), name=long, namespace="o")
    found = read([*of_both, elsewhere], "").values()
    names = [each.name for draft in found for each in draft.objects]
    assert names == [
        "recommendations-of-the-front-page-in-all",
        "recommendations-of-the-front-page-triton",
        "recommendations-of-the-front-pa-triton-2",
        "recommendations-of-the-front-page-in-all",
    ]
    assert max(map(len, names)) <= 40


def test_errors_of_one_do_not_lose_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    good = a_service(model("onnx", "gs://m/a.onnx"))
    broken = [
        a_service({}) | {"spec": []},
        a_service(model("onnx", "gs://m/a.onnx"), name="red\x1b[31m") | {"apiVersion": "v1"},
        {"kind": "InferenceService", "metadata": "text"},
        {"kind": "Secret"},
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO(yaml.safe_dump_all([*broken, {"items": [good]}, good])))
    assert main(["init", "--from", "-"]) == 1
    out, err = capsys.readouterr()
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(out)] == ["a", "a-triton"]
    assert "InferenceServices: 5 (complete: 2, by hand: 0, stays: 3)" in err
    assert "\x1b" not in err
    objects = tmp_path / "objects.yaml"
    objects.write_text(out)
    assert main(["validate", str(objects)]) == 0


def test_a_folder_is_the_listing_of_one_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "repository/cifar10/1").mkdir(parents=True)
    for each in ("cifar10/config.pbtxt", "cifar10/1/model.pt"):
        (tmp_path / "repository" / each).touch()
    words = ["--listing", str(tmp_path / "repository")]
    assert main(["init", "--from", str(SAMPLES / "torchscript.yaml"), *words]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["spec"]["models"] == [{"name": "cifar10", "path": "cifar10"}]
    both = tmp_path / "both.yaml"
    both.write_text("---\n".join((SAMPLES / f"{each}.yaml").read_text() for each in ("bloom", "torchscript")))
    assert main(["init", "--from", str(both), *words]) == 1
    assert "--listing without URIs is for one InferenceService, and the file has 2" in capsys.readouterr().err
    assert main(["init", str(tmp_path / "repository"), *words]) == 1
    assert "--listing is for --from" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--source", "--dataset", "--model", "--format"])
def test_what_fits_one_inference_service_is_refused_for_several(
    option: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(printed())
    assert main(["init", "--from", str(file), option, "onnx"]) == 1
    printed_out, err = capsys.readouterr()
    assert f"{option} is for one InferenceService, and the file has 30" in err
    assert not printed_out
