"""What `kubectl triton init --from` makes of InferenceServices, in the shapes of KServe's own samples."""

import copy
import io
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from triton_plugin.__main__ import main
from triton_plugin.drafting.first_object import ObjectOptions
from triton_plugin.drafting.kserve.drafts import Draft, Request, drafts
from triton_plugin.drafting.kserve.table import MODEL, TABLE
from triton_plugin.drafting.marks import marks
from triton_plugin.errors import FolderError

Body = dict[str, Any]
FOLDER = Path(__file__).parent / "kserve"
PAGE = Path(__file__).parents[2] / "docs/from-kserve.md"
GIVEN = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.yaml"))}
SILENT = {"modelFormat", "protocolVersion"}
"""Fields of a model that may say nothing new: the file's own format, and the protocol that Triton speaks anyway."""
KINDS = ("model", "triton", "onnx", "tensorflow", "pytorch", "xgboost", "lightgbm")


def service(name: str) -> Body:
    """The InferenceService of a file; the caller's own."""
    found = GIVEN[name]
    body: Body = copy.deepcopy(found["items"][0] if "items" in found else found)
    return body


def draft(body: Body, path: str = "", **options: Any) -> Draft:
    (found,) = drafts([body], Request(ObjectOptions(**options), path))
    return found


def written(body: Body, path: str = "", **options: Any) -> tuple[Body, str]:
    """The object, and the text that it was read from."""
    (first,) = draft(body, path, **options).objects
    found: Body = yaml.safe_load(first.text)
    return found, first.text


def why_it_stays(body: Body, path: str = "", **options: Any) -> str:
    found = draft(body, path, **options)
    assert (found.state, found.objects) == ("stays", ())
    (why,) = found.reasons
    return why


def comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("options", [[], ["--model", "folder", "--gpu", "NVIDIA-L4", "--p99-latency", "20ms"]])
def test_every_object_is_what_validate_takes(
    name: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", "--from", str(FOLDER / f"{name}.yaml"), *options]) == 0
    file = tmp_path / "td.yaml"
    printed = capsys.readouterr()
    file.write_text(printed.out)
    words = " ".join(printed.err.split())
    assert ("by hand: 1" in words) or not any(each.is_needed for each in marks(printed.out))
    is_open = any(each.is_needed for each in marks(file.read_text()))
    assert main(["validate", str(file)]) == is_open
    first, *others = capsys.readouterr().out.splitlines()
    assert (": is to be filled in: " in first) == is_open
    assert any(": valid" in each for each in [first, *others])


def at(body: Body, place: tuple[str, ...]) -> Any:
    for part in place:
        body = body[part]
    return body


def fields_of(body: Body) -> list[tuple[str, ...]]:
    """The places of all fields that an InferenceService has: of the predictor, and of its model."""
    predictor = body["spec"]["predictor"]
    kind = next(each for each in KINDS if each in predictor)
    others = [("spec", each) for each in body["spec"] if each != "predictor"]
    model = [("spec", "predictor", kind, each) for each in predictor[kind] if each not in SILENT]
    return [*others, *(("spec", "predictor", each) for each in predictor if each != kind), *model]


SAYING = [
    pytest.param(name, place, id=".".join((name, *place[1:])))
    for name in GIVEN
    for place in fields_of(service(name))
    if at(service(name), place) not in ("", {}, 1)
]
"""The fields that say something: neither empty, nor the one replica that there is anyway."""


@pytest.mark.parametrize(("name", "place"), SAYING)
def test_no_field_is_lost_without_a_word(name: str, place: tuple[str, ...]) -> None:
    body = service(name)
    text = written(body)[1]
    del at(body, place[:-1])[place[-1]]
    assert written(body)[1] != text, "neither a value nor a comment tells of it"


def test_the_inputs_have_every_field_of_the_table() -> None:
    seen = set()
    for name in GIVEN:
        body = service(name)
        for place in fields_of(body):
            path = ".".join(place[1:])
            seen.add(re.sub(rf"^predictor\.({'|'.join(KINDS)})\.", f"{MODEL}.", path))
        seen |= {f"metadata.{each}" for each in body["metadata"]}
        seen |= {f"metadata.annotations.{each}" for each in body["metadata"].get("annotations", {})}
    assert TABLE.keys() - seen == {f"{MODEL}.{each}" for each in SILENT}


def test_the_page_has_the_fields_that_are_taken() -> None:
    rows = [f"| `{field}` | `{rule.place}` | {rule.note} |" for field, rule in TABLE.items() if rule.place]
    page = PAGE.read_text(encoding="utf-8")
    assert [
        line for line in page.splitlines() if re.match(r"\| `(metadata|predictor|transformer|explainer|canary)", line)
    ] == rows


def test_the_page_shows_what_is_written() -> None:
    given, shown, *_ = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert written(yaml.safe_load(given), "ocr")[1] == shown


def test_a_server_on_gpus_with_a_range_of_replicas() -> None:
    found, text = written(service("onnx-on-gpus"))
    assert found["metadata"] == {"name": "style-transfer", "labels": {"team": "vision"}}
    spec = found["spec"]
    assert spec["source"] == {"uri": "s3://models/style/v3/style.onnx", "serviceAccountName": "models-reader"}
    assert spec["models"] == [{"name": "style-transfer", "path": "style.onnx"}]
    assert spec["gpu"] == {"product": "NVIDIA-A100-SXM4-80GB", "count": 1}
    assert spec["pod"]["nodeSelector"] == {"pool": "inference"}
    assert [each["key"] for each in spec["pod"]["tolerations"]] == ["nvidia.com/gpu", "dedicated"]
    serving = spec["serving"]
    assert serving["autoscaling"] == {"minReplicas": 1, "maxReplicas": 5}
    assert serving["image"] == "nvcr.io/nvidia/tritonserver:26.04-py3"
    assert serving["pod"]["resources"] == {
        "requests": {"cpu": "2", "memory": "8Gi"},
        "limits": {"cpu": "4", "memory": "16Gi"},
    }
    assert "TODO" not in text
    assert "# - predictor.scaleTarget: the load at which one replica is saturated is measured" in comments(text)


def test_arguments_of_the_server_that_a_spec_may_have() -> None:
    found, text = written(service("triton-older"), "bert")
    assert found["spec"]["models"] == [{"name": "bert", "path": "bert"}], "clients know it by its folder"
    assert sorted(found["spec"]["serving"]["arguments"]) == [
        "--backend-config=onnxruntime,enable-global-threadpool=1",
        "--http-thread-count=16",
        "--log-verbose=1",
    ]
    assert found["spec"]["gpu"] == {"count": 1, "resourceName": "nvidia.com/mig-1g.10gb"}
    left = "\n".join(comments(text))
    for argument in ("--backend-config=python,shm-default-byte-size=1", "--http-thread-count-of-mine=16"):
        assert f"predictor.triton.args.{argument}: the operator sets tritonserver's options" in left
    assert "predictor.triton.resources.limits.amd.com/gpu: only GPUs of NVIDIA are known" in left
    assert "# - transformer: keep it as a Deployment" in left


def test_a_batcher_is_tritons_and_a_canary_needs_a_gateway() -> None:
    found, text = written(service("tensorflow-canary"))
    assert found["spec"]["models"][0]["config"] == {"maxBatchSize": 32, "dynamicBatching": {"maxQueueDelay": "50ms"}}
    assert found["spec"]["serving"]["replicas"] == 2
    assert "# - predictor.canaryTrafficPercent: set `serving.route.canary` and `serving.soak` (docs/rollout.md)" in text
    assert "# - predictor.tensorflow.protocolVersion: clients of v1 have to ask by v2" in text


@pytest.mark.parametrize(
    ("uri", "source"),
    [
        ("pvc://models/a/b", {"uri": "pvc://models/a/b"}),
        ("pvc://models", {"uri": "pvc://models"}),
        ("https://models.example/a.onnx", {"uri": "https://models.example/a.onnx"}),
        ("hf://acme/ocr:v1", {"uri": "hf://acme/ocr", "version": "v1"}),
        ("https://a.blob.core.windows.net/models/a", {"uri": "azure://models/a"}),
        ("http://models.example/a.onnx", None),
        ("hdfs://a/b", None),
        ("s3://models/a.tar.gz", None),
        ("oci://registry.example/acme/a:1", None),
        ("https://models.example/a.onnx?key=hunter2", None),
        ("oci://user:hunter2@registry.example/acme/a:1", None),
        ("https://user:hunter2@models.example/a.zip", None),
    ],
)
def test_where_the_files_are(uri: str, source: Body | None) -> None:
    body = service("hub")
    body["spec"]["predictor"]["model"]["storageUri"] = uri
    found, text = written(body)
    assert found["spec"]["source"] == (source or {"uri": "pvc://models/sentences"})
    assert ("TODO: source.uri" in text) == (source is None)
    assert "hunter2" not in text, "a login in a URI is not repeated"


@pytest.mark.parametrize(
    ("replicas", "serving"),
    [
        ({}, {}),
        ({"minReplicas": 3}, {"replicas": 3}),
        ({"minReplicas": 3, "maxReplicas": 3}, {"replicas": 3}),
        ({"minReplicas": 0, "maxReplicas": 4}, {"autoscaling": {"minReplicas": 1, "maxReplicas": 4}}),
        ({"maxReplicas": 2}, {"autoscaling": {"minReplicas": 1, "maxReplicas": 2}}),
        ({"maxReplicas": 1000}, {}),
    ],
)
def test_replicas_and_their_range(replicas: Body, serving: Body) -> None:
    body = service("hub")
    body["spec"]["predictor"] |= replicas
    found = dict(written(body)[0]["spec"]["serving"])
    del found["pod"]
    assert found == serving


def test_a_secret_is_left_out_where_nothing_is_downloaded() -> None:
    body = service("azure")
    body["spec"]["predictor"]["triton"]["storageUri"] = "pvc://models/simple"
    found, text = written(body)
    assert found["spec"]["source"] == {"uri": "pvc://models/simple"}
    assert "storageSecretName: the API refuses it: secretRef is only for files that are downloaded" in text


def test_a_login_by_kserves_own_secret_is_named_and_not_read() -> None:
    found, text = written(service("storage-key"))
    assert found["spec"]["source"] == {"uri": "s3://example-models/onnx/mnist"}
    assert "predictor.model.storage.key: put the login localMinIO into a Secret" in text


@pytest.mark.parametrize(
    ("version", "image"),
    [("24.01-py3", True), ("26.07-py3", True), ("23.12-py3", False), ("latest", False)],
)
def test_an_image_that_is_too_old_for_the_operators_options_is_not_taken(version: str, image: bool) -> None:
    body = service("triton")
    body["spec"]["predictor"]["model"]["runtimeVersion"] = version
    found, text = written(body)
    assert found["spec"]["serving"].get("image") == (f"nvcr.io/nvidia/tritonserver:{version}" if image else None)
    assert ("runtimeVersion" in text) != image


def test_words_of_a_stranger_stay_in_their_comment() -> None:
    found, text = written(service("hostile"))
    assert "\x1b" not in text
    assert found["kind"] == "TritonDeployment"
    assert found["metadata"] == {"name": "x-kind-secret"}
    assert found["spec"]["pod"] == {"tolerations": [{"key": "a"}, {"key": "c", "operator": "Exists"}]}
    assert all(line.startswith("#") for line in text[: text.index("apiVersion")].splitlines())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"predictor": {"sklearn": {"storageUri": "gs://a/b"}}}, "skops.io.dump"),
        ({"predictor": {"model": {"modelFormat": {"name": "sklearn"}}}}, "skops.io.dump"),
        ({"predictor": {"model": {"modelFormat": {"name": "tensorrt"}}}}, "a model of format tensorrt"),
        ({"predictor": {"model": {}}}, r"a model of format \(none\)"),
        ({"predictor": {"containers": [{"name": "kserve-container"}]}}, "runs a container of its user"),
        ({"predictor": ["model"]}, "predictor is no object"),
        ({"predictor": {"model": "onnx"}}, "model is no object"),
    ],
)
def test_what_the_operator_cannot_serve_is_refused_with_the_reason(change: Body, words: str) -> None:
    assert re.search(words, why_it_stays({**service("hub"), "spec": change}))


@pytest.mark.parametrize(
    ("predictor", "path"),
    [
        ({"xgboost": {"storageUri": "gs://models/churn/model.bst"}}, "model.bst"),
        ({"model": {"modelFormat": {"name": "xgboost"}, "storageUri": "s3://models/churn"}}, "TODO"),
        ({"lightgbm": {"storageUri": "gs://models/churn/model.txt"}}, "model.txt"),
    ],
)
def test_a_model_of_trees_becomes_an_object(predictor: Body, path: str) -> None:
    found, text = written({**service("hub"), "spec": {"predictor": predictor}})
    assert found["spec"]["models"][0]["path"] == path
    assert "dataloader" not in found["spec"]
    assert ("(--model PATH, or --listing FILE)" in text) == (path == "TODO")


def test_only_inference_services_are_read() -> None:
    one = service("hub")
    (found,) = drafts([{"kind": "Secret"}, one], Request(ObjectOptions()))
    assert [each.name for each in found.objects] == ["sentences"]
    with pytest.raises(FolderError, match="the file has no object of kind InferenceService"):
        drafts(["text", None, {"items": "text"}], Request(ObjectOptions()))
    assert "of apiVersion serving.kserve.io/v1alpha1; only" in why_it_stays(
        {**one, "apiVersion": "serving.kserve.io/v1alpha1"}
    )


def test_a_field_with_a_name_of_the_table_is_none_elsewhere() -> None:
    body = service("hub")
    body["spec"]["metadata.namespace"] = "kube-system"
    found, text = written(body)
    assert "namespace" not in found["metadata"]
    assert "# - metadata.namespace: a TritonDeployment has no such field" in text


def test_an_option_that_the_api_refuses_is_named() -> None:
    assert why_it_stays(service("hub"), max_batch_size=-1).startswith("--max-batch-size: should be")
    assert why_it_stays(service("hub"), "../up").startswith("--model: should match")


def test_the_command_reads_standard_input_and_one_of_both(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO((FOLDER / "hub.yaml").read_text()))
    assert main(["init", "--from", "-", "--model", "model.onnx"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["spec"]["models"][0]["path"] == "model.onnx"
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    assert main(["init", "--from", str(broken)]) == 1
    assert "is not valid YAML" in capsys.readouterr().err
    for words in (["init"], ["init", "folder", "--from", str(broken)]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
