"""The table of names that the spec had before, and what follows from it in the CRD, in messages and in digests."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.apiserver.custom_resources import FULL, MINIMAL, changed
from tests.simulation.cluster import SETTINGS
from triton_converters.contract.layout import DATA_MOUNT
from triton_converters.contract.reasons import Reason
from triton_operator.api.renamed import FIELDS, FORMATS, METRICS, VALUES, RenamedField, as_before, found, rewritten
from triton_operator.api.resolved import FromRepository
from triton_operator.api.source import UserEntrypoint
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.triton_deployment import FieldRenamedError, parse
from triton_operator.context import Context
from triton_operator.crdgen import crd
from triton_operator.jobs.reference import basis, entrypoint, model_code, surroundings
from triton_operator.observed.history import History
from triton_operator.observed.snapshot import observe
from triton_operator.planning.pins import pinned_images
from triton_plugin.validation.cel import broken
from triton_plugin.validation.structural import faults
from triton_plugin.validation.validate import check, schema

IDENTITY = {"name": "digits", "namespace": "vision", "uid": "uid-0", "generation": 1}


def field(path: str, old_names: bool = True) -> dict[str, Any]:
    """The schema of a field of the spec."""
    schema = crd(old_names=old_names)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for name in path.split("."):
        schema = schema["properties"][name.removesuffix("[]")]
        schema = schema["items"] if name.endswith("[]") else schema
    return dict(schema)


def holding(path: str, value: Any) -> dict[str, Any]:
    """A spec that has one field; lists have one item."""
    for name in reversed(path.split(".")):
        value = {name.removesuffix("[]"): [value] if name.endswith("[]") else value}
    return dict(value)


@pytest.mark.parametrize("each", FIELDS, ids=lambda each: each.old)
def test_a_field_has_both_names_in_the_crd(each: RenamedField) -> None:
    assert field(each.old)["description"].startswith("Renamed to `")
    assert list(faults(each.example, field(each.old), "")) == []
    assert list(faults(each.now(each.example), field(each.new), "")) == []
    with pytest.raises(KeyError):
        field(each.old, old_names=False)


@pytest.mark.parametrize("each", FIELDS, ids=lambda each: each.old)
def test_a_spec_is_rewritten_and_its_digest_is_that_of_before(each: RenamedField) -> None:
    old, new = holding(each.old, each.example), holding(each.new, each.now(each.example))
    assert rewritten(old) == new
    assert as_before(new) == old
    (only,) = found(old)
    assert list(found(new)) == []
    assert only.value == each.now(each.example)


@pytest.mark.parametrize("each", VALUES, ids=lambda each: each.path)
def test_a_value_has_both_names_in_the_crd(each: Any) -> None:
    assert {*each.now, *each.before} <= set(field(each.path)["enum"])
    assert not set(each.now) & set(field(each.path, old_names=False)["enum"])
    for old, new in each.now.items():
        assert rewritten(holding(each.path, old)) == holding(each.path, new)
        assert as_before(holding(each.path, new)) == holding(each.path, old)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {"serving": {"soak": {"seconds": 300}}},
            "spec.serving.soak.seconds is now spec.serving.soak.duration: write duration: 5m",
        ),
        (
            {"models": [{}, {"config": {"dynamicBatching": {"maxQueueDelayMicroseconds": 100}}}]},
            "spec.models[1].config.dynamicBatching.maxQueueDelayMicroseconds is now"
            " spec.models[1].config.dynamicBatching.maxQueueDelay: write maxQueueDelay: 100us",
        ),
        (
            {"serving": {"soak": {"seconds": 300, "duration": "5m"}}},
            "spec.serving.soak.seconds is now spec.serving.soak.duration, which is there already: remove seconds",
        ),
        (
            {"repository": {"revisionHistoryLimit": 0}, "revisionHistoryLimit": 3},
            "spec.repository.revisionHistoryLimit is now spec.revisionHistoryLimit, which is there already: remove"
            " revisionHistoryLimit",
        ),
        (
            {"repository": {"revisionHistoryLimit": 0}},
            "spec.repository.revisionHistoryLimit is now spec.revisionHistoryLimit: write revisionHistoryLimit: 0",
        ),
        (
            {"repository": {"claimTemplate": {"size": "1Gi", "storageClassName": "fast"}}},
            "spec.repository.claimTemplate is now spec.repository.volumeClaimTemplate: write"
            " volumeClaimTemplate: {spec: {resources: {requests: {storage: 1Gi}}, storageClassName: fast}}",
        ),
        (
            {"selection": {"objectives": [{"metric": "UsedMemoryBytes"}]}},
            "spec.selection.objectives[0].metric has a value with another name: write metric: memory",
        ),
        (
            {"models": [{"format": "repository"}]},
            "spec.models[0].format has a value with another name: write format: triton-repository",
        ),
    ],
)
def test_a_message_says_what_to_write(spec: dict[str, Any], words: str) -> None:
    assert [str(each) for each in found(spec)] == [words]


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        {"models": {"config": 1}, "accuracy": [], "serving": {"soak": None}},
        {"models": [None, {"format": ["repository"]}], "selection": {"objectives": [{"metric": {}}]}},
    ],
)
def test_a_spec_of_any_shape_is_looked_through(spec: Any) -> None:
    assert list(found(spec)) == []


def test_a_value_that_no_schema_takes_is_told_as_it_is() -> None:
    assert [each.value for each in found({"serving": {"soak": {"seconds": "five"}}})] == ["five"]


def test_the_operator_refuses_old_names_and_names_all_of_them() -> None:
    body = {"metadata": IDENTITY, "spec": changed(MINIMAL, {"spec.repository.revisionHistoryLimit": 1})["spec"]}
    body["spec"]["selection"] = {"minimumImprovementPercent": 5}
    with pytest.raises(FieldRenamedError) as refused:
        parse(body)
    assert refused.value.reason is Reason.FIELD_RENAMED
    assert "write minImprovementPercent: 5; spec.repository.revisionHistoryLimit is now" in str(refused.value)


def test_a_file_is_checked_as_it_will_be_and_every_old_name_is_told() -> None:
    old = {**FULL, "spec": as_before(FULL["spec"])}
    told = [str(each) for each in check(old)]
    assert told == [str(each) for each in found(old["spec"])]
    assert len(told) > 5
    wrong = changed(old, {"spec.serving.replicas": 101})
    assert [str(each) for each in check(wrong)][len(told) :] == [
        "spec.serving.replicas: should be less than or equal to 100"
    ]


@pytest.mark.parametrize(
    ("bounds", "faults"),
    [
        ({"minimum": 0.5, "maximum": 1}, 0),
        ({"minimum": 0.5}, 0),
        ({"maximum": 1}, 0),
        ({"minimum": 1, "maximum": 0.5}, 1),
        ({"min": 1, "maximum": 0.5}, 1),
        ({"minimum": 1, "max": 0.5}, 1),
    ],
)
def test_a_rule_about_values_holds_for_those_of_old_names(bounds: dict[str, float], faults: int) -> None:
    thresholds = schema()["properties"]["spec"]["properties"]["accuracy"]["properties"]["thresholds"]
    assert len(list(broken([{"metric": "top1", **bounds}], thresholds, ""))) == faults


def test_what_an_older_operator_found_in_a_repository_is_understood() -> None:
    stored = {"file": "ocr/1/model.onnx", "config": {"dynamicBatching": {"maxQueueDelayMicroseconds": 100}}}
    batching = FromRepository.model_validate(stored).config.dynamic_batching
    assert batching is not None
    assert batching.max_queue_delay == "100us"


def test_the_digest_that_pins_images_has_the_old_word_for_a_repository() -> None:
    model = {"name": "ocr", "format": "triton-repository", "path": "ocr"}
    spec = TritonDeploymentSpec.model_validate({"source": {"uri": "pvc://models"}, "models": [model]})
    assert model_code(spec, spec.models[0]).format == "repository"


def with_versions() -> TritonDeploymentSpec:
    files = {"uri": "pvc://models/a", "version": "v1"}
    return TritonDeploymentSpec.model_validate({**MINIMAL["spec"], "source": files, "weights": files, "dataset": files})


def test_the_digest_that_pins_images_has_the_old_name_of_a_version() -> None:
    """Otherwise the rename alone would have every model converted and measured again, with newer images."""
    assert basis(with_versions()) == "05b2bf3a429a19c1", "as it was of `revision` and `data`"


def test_the_keys_of_what_reads_a_mounted_dataset_have_the_old_name_of_its_version() -> None:
    deployment = parse({"metadata": IDENTITY, "spec": with_versions().model_dump(mode="json", by_alias=True)})
    pins = pinned_images(deployment, History(), SETTINGS)
    context = Context(deployment, observe("digits", ()), SETTINGS, datetime(2026, 11, 26, tzinfo=UTC), pins)
    assert surroundings(context)[0] == [IDENTITY["namespace"], {"uri": "pvc://models/a", "revision": "v1"}]


def test_an_argument_may_have_the_old_word_for_the_dataset() -> None:
    """It is the user's text, in which a table renames nothing; the Job's request is the same, so nothing runs again."""
    spec = TritonDeploymentSpec.model_validate({**MINIMAL["spec"], "dataset": {"uri": "pvc://datasets/a"}})
    old, new = (UserEntrypoint(entrypoint="a.py", arguments={"dir": f"$({word})/b"}) for word in ("DATA", "DATASET"))
    assert entrypoint(spec, old) == entrypoint(spec, new)
    assert entrypoint(spec, new).arguments == {"dir": f"{DATA_MOUNT}/a/b"}


def test_a_spec_has_the_names_of_the_tables() -> None:
    metric = field("selection.objectives[].metric", old_names=False)["enum"]
    assert metric == list(METRICS.before)
    assert set(FORMATS.before) < set(field("models[].format", old_names=False)["enum"])
    assert set(field("selection.constraints")["properties"]) == set(metric)
    assert "revision_history_limit" in TritonDeploymentSpec.model_fields


def test_an_edit_that_writes_the_new_placeholder_changes_no_digest() -> None:
    """So what failed its soak is not tried again for it."""
    old, new = (
        {"dataloader": {"arguments": {"folder": f"{each}/validation"}}, "models": [{"arguments": {"labels": each}}]}
        for each in ("$(DATA)", "$(DATASET)")
    )
    assert as_before(new) == as_before(old) == old
