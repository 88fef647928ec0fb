import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.custom_resources import FULL, MINIMAL, changed, named
from tests.apiserver.test_crd import REFUSED
from triton_plugin.__main__ import main
from triton_plugin.drafting.validation.hints import hint
from triton_plugin.drafting.validation.structural import UnknownKeywordError, faults
from triton_plugin.drafting.validation.validate import check, deployments, schema

EXAMPLES = sorted(Path(__file__).parents[2].glob("manifests/examples/*/tritondeployment.yaml"))


def said(body: dict[str, Any]) -> str:
    """All faults, each in both of the API server's ways to name a field."""
    return "\n".join(f"{each.path} in body {each.message}\n{each}" for each in check(body))


@pytest.mark.parametrize("body", [MINIMAL, FULL], ids=["minimal", "full"])
def test_what_the_api_server_takes_is_valid(body: dict[str, Any]) -> None:
    assert check(body) == []


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_api_server_refuses_is_refused_in_its_words(case: str) -> None:
    # tests/apiserver/test_crd.py shows the same table to a real API server.
    changes, expected = REFUSED[case]
    assert expected in said(changed(FULL, changes))


@pytest.mark.parametrize("name", ["a" * 41, "1digits", "digits.v2", "digits-", "Digits", "a_b", "a\n"])
def test_names_that_a_service_cannot_have(name: str) -> None:
    assert "metadata.name must have at most 40" in said(named(name))


@pytest.mark.parametrize("name", ["a", "a-1", "a" * 40, "digits-v2"])
def test_names_that_leave_room_for_suffixes(name: str) -> None:
    assert check(named(name)) == []


def test_unknown_fields_are_named_as_kubectl_names_them() -> None:
    text = said(changed(FULL, {"spec.serving.replica": 2, "spec.models.0.candidates.0.acelerator": "trt"}))
    assert "spec.serving.replica: unknown field" in text
    assert "spec.models[0].candidates[0].acelerator: unknown field" in text


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("spec.serving.replica", 2, "Did you mean spec.serving.replicas?"),
        ("spec.serving.canary", [5, 25], "Did you mean spec.serving.route.canary?"),
        (
            "spec.models.0.maxBatchSize",
            8,
            "Did you mean spec.models[].config.maxBatchSize or spec.ensemble.maxBatchSize?",
        ),
        ("spec.serving.name", "a", ""),
        ("sepc", {}, "Did you mean spec?"),
        ("spec.selection.constraints.p99Latency", 100, "Highest 99th percentile of the latency, such as 20ms."),
        ("spec.serving.replicas", "2", "Number of server pods."),
        ("spec.serving.replicas", -1, ""),
    ],
)
def test_what_is_wrong_or_misplaced_is_explained(place: str, value: object, expected: str) -> None:
    (fault,) = check(changed(FULL, {place: value}))
    assert hint(fault, schema()) == expected


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("labels", {"version": 1.0}, "metadata.labels.version: must be of type string"),
        ("labels", {"released": True}, "metadata.labels.released: must be of type string"),
        ("labels", {"team": "a team"}, "metadata.labels.team: should match"),
        ("labels", {"team": "a" * 64}, "metadata.labels.team: Too long: may not be more than 63"),
        ("labels", ["team"], "metadata.labels: must be of type object"),
        ("annotations", {"released": True}, "metadata.annotations.released: must be of type string"),
        ("namespace", "My_Team", "metadata.namespace: should match"),
        ("namespace", 7, "metadata.namespace: must be of type string"),
        ("lables", {"team": "vision"}, "metadata.lables: unknown field"),
    ],
)
def test_metadata_that_kubernetes_refuses_is_refused(field: str, value: object, expected: str) -> None:
    assert said(changed(MINIMAL, {f"metadata.{field}": value})).splitlines()[1].startswith(expected)


def test_metadata_that_kubernetes_takes_is_taken() -> None:
    metadata = {
        "name": "digits",
        "namespace": "vision-2",
        "labels": {"team": "Vision_1.x", "empty": ""},
        "annotations": {"note": "any text: ü\n", "example.com/empty": ""},
        "finalizers": ["example.com/f"],
        "ownerReferences": [{"kind": "Application", "name": "vision"}],
        "resourceVersion": "1",
        "uid": "x",
        "creationTimestamp": None,
        "generation": 1,
        "managedFields": [],
    }
    assert check({**MINIMAL, "metadata": metadata}) == []


def test_the_api_server_drops_what_is_null_and_so_does_this() -> None:
    assert check(changed(FULL, {"spec.suspend": None, "spec.selection.constraints.memory": None})) == []
    assert "spec.source: Required value" in said(changed(FULL, {"spec.source": None}))


def test_a_date_is_text_and_another_kind_is_nobodys_business() -> None:
    text = yaml.safe_dump(changed(MINIMAL, {"spec.source.version": "PLACE"})).replace("PLACE", "2026-11-21")
    found = list(deployments(f"{text}---\nkind: ConfigMap\n---\n"))
    assert [check(body) for body in found] == [[]]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("1e-2", ""),
        ("0.97", ""),
        ("1", ""),
        ("'0.97'", "spec.accuracy.thresholds[0].min: must be of type number"),
        (".inf", "spec.accuracy.thresholds[0].min: Input should be a finite number"),
    ],
)
def test_a_number_is_one_however_it_is_written_but_not_in_quotes(text: str, fault: str) -> None:
    written = yaml.safe_dump(changed(FULL, {"spec.accuracy.thresholds.0.min": "PLACE"})).replace("PLACE", text)
    (body,) = deployments(written)
    assert fault in said(body)
    assert bool(fault) == bool(said(body))


def test_another_version_of_the_api_is_said_to_be_one() -> None:
    assert said(changed(MINIMAL, {"apiVersion": "triton-operator.dev/v1"})).endswith(
        "must be triton-operator.dev/v1alpha1"
    )


def test_a_keyword_that_is_not_checked_is_no_silent_pass() -> None:
    with pytest.raises(UnknownKeywordError, match="multipleOf"):
        list(faults(3, {"type": "integer", "multipleOf": 2}, "spec.x"))


def test_every_keyword_of_the_crd_is_checked() -> None:
    full = copy.deepcopy(FULL)
    full["spec"]["repository"] = {"claimName": "models"}
    assert check(full) == []


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_the_examples_are_valid(file: Path) -> None:
    found = list(deployments(file.read_text(encoding="utf-8")))
    assert found
    assert [check(body) for body in found] == [[] for _ in found]


@pytest.mark.parametrize(
    ("old", "new", "line", "is_valid"),
    [
        ("name: x", "name: x  # TODO: a better name", "is marked, which is no fault: name: x  # TODO: a better", True),
        ("uri: pvc://x/y", "uri: pvc://x/TODO", "is marked, which is no fault", True),
        ("image: a", "image: TODO", "is to be filled in: image: TODO", False),
        ("image: a", 'image: "TODO"  # an image', 'is to be filled in: image: "TODO"  # an image', False),
    ],
)
def test_what_is_to_be_filled_in_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, line: str, is_valid: bool
) -> None:
    text = (
        "# mine\napiVersion: triton-operator.dev/v1alpha1\nkind: TritonDeployment\nmetadata:\n  name: x\nspec:\n"
        "  source:\n    uri: pvc://x/y\n  models:\n  - name: x\n    path: net.onnx\n  conversion:\n    image: a\n"
    )
    number = next(at for at, each in enumerate(text.splitlines(), 1) if old in each)
    file = tmp_path / "x.yaml"
    file.write_text(text.replace(old, new, 1))
    assert main(["validate", str(file)]) == (0 if is_valid else 1)
    expected = [f"{file}: x: valid{'' if is_valid else ' apart from what is to be filled in'}"]
    found = capsys.readouterr().out.splitlines()
    assert found[not is_valid :][:1] == expected, "what stops the object comes first"
    assert found[is_valid].startswith(f"{file}:{number}: {line}")
