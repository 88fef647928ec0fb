"""The example `fraud`: its files, what its program takes for the end of a version, and what it finds wrong with it."""

import ast
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import yaml

from examples import verdict
from examples.__main__ import needs_servers
from examples.asking import user_file
from examples.champion import BATCH_SIZE, METRIC, NAME, VERSIONS, Version, is_decided, outcome, version_faults
from examples.example import read
from examples.pipeline import PIPELINES
from examples.trust import trusted
from hack.devcluster.addresses import NODE_ADDRESS
from triton_operator.api.measured_status import AccuracyStatus
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import Condition, ConditionType, SourceStatus, TritonDeploymentStatus, VersionStatus

EXAMPLE = read(NAME)
SPEC = TritonDeploymentSpec.model_validate(EXAMPLE.deployment["spec"])
FIRST, SECOND, THIRD = VERSIONS


def condition(kind: ConditionType, status: str, reason: str, message: str) -> Condition:
    fields = {"observed_generation": 1, "last_transition_time": "2026-11-30T20:00:00Z"}
    return Condition(type=kind, status=status, reason=reason, message=message, **fields)


def version(number: int) -> VersionStatus:
    label = f"version {number} (champion)"
    return VersionStatus(version=f"{number}@hash", label=label, found_at="2026-11-30T20:00:00Z")


def a_status(serving: int, latest: int, reason: str = "Ready", ready: str = "True") -> TritonDeploymentStatus:
    return TritonDeploymentStatus(
        conditions=[
            condition("Ready", ready, "Ready", "as it is"),
            condition("UpToDate", "True" if reason == "Ready" else "False", reason, "f1_score 0.66 is worse than 0.82"),
        ],
        source=SourceStatus(serving=version(serving), latest=version(latest)),
        accuracy=[
            AccuracyStatus(
                metric=METRIC, framework="0.815", served="0.815", previous="0.637", samples=4000, threshold="min 0.6",
                passed=True,
            ),
            AccuracyStatus(metric="recall", framework="0.7", served="0.7", samples=4000, passed=True),
        ],
    )  # fmt: skip


REFUSED = a_status(2, 3, "WorseThanBefore")


@pytest.mark.parametrize(
    ("status", "generation", "decided"),
    [
        (a_status(2, 2), 1, True),
        (a_status(2, 2), 2, False),
        (a_status(1, 1), 1, False),
        (a_status(1, 2, "Running"), 1, False),
        (a_status(1, 2, "ThresholdNotMet"), 1, True),
        (TritonDeploymentStatus(), 1, False),
    ],
    ids=["serves", "another generation", "not looked yet", "worked on", "refused", "new object"],
)
def test_a_version_is_decided_once_it_serves_or_is_refused(
    status: TritonDeploymentStatus, generation: int, decided: bool
) -> None:
    assert is_decided(SECOND, status, generation) is decided


@pytest.mark.parametrize(("each", "status"), [(SECOND, a_status(2, 2)), (THIRD, REFUSED)], ids=["serves", "refused"])
def test_what_goes_as_it_should_has_no_fault(each: Version, status: TritonDeploymentStatus) -> None:
    assert version_faults(each, status, 0.81496) == []
    assert {fault.partition(" ")[0] for fault in verdict.faults(SPEC, status)} == {"no"}, "it has no measurements"


@pytest.mark.parametrize(
    ("status", "measured", "fault"),
    [
        (a_status(3, 3), 0.815, "version 3 (champion) is Ready, and not WorseThanBefore"),
        (a_status(2, 3, "ThresholdNotMet"), 0.815, "version 3 (champion) is ThresholdNotMet, and not WorseThanBefore"),
        (a_status(1, 3, "WorseThanBefore"), 0.815, "version 1 (champion) serves, and not version 2 (champion)"),
        (a_status(2, 3, "WorseThanBefore", "False"), 0.815, "the object is not ready: as it is"),
        (REFUSED, 0.658, "a client gets f1_score 0.6580, and the status has 0.815"),
    ],
    ids=["serves", "another reason", "an old one serves", "not ready", "clients get another"],
)
def test_each_way_to_fare_otherwise_is_a_fault(status: TritonDeploymentStatus, measured: float, fault: str) -> None:
    assert any(fault in each for each in version_faults(THIRD, status, measured))


def test_each_version_is_told_with_its_figures() -> None:
    served = "version 2 (champion) serves: f1_score 0.815 (0.637 before), 0.8150 of what a client gets"
    assert outcome(SECOND, a_status(2, 2), 0.815) == served
    assert outcome(THIRD, REFUSED, 0.815) == f"{served}; WorseThanBefore: f1_score 0.66 is worse than 0.82"


def test_the_dataloader_yields_every_transaction_once_in_order(tmp_path: Path) -> None:
    features, frauds = np.arange(560, dtype=np.float32).reshape(70, 8), np.arange(70, dtype=np.int64) % 2
    np.savez(tmp_path / "held-out.npz", features=features, frauds=frauds)
    batches = list(user_file(EXAMPLE.folder, "dataloader").get_dataloader_fn(str(tmp_path), 32)())
    assert [number for ids, _, _ in batches for number in ids] == [str(number) for number in range(70)]
    np.testing.assert_array_equal(np.concatenate([x["features"] for _, x, _ in batches]), features)
    np.testing.assert_array_equal(np.concatenate([y["prediction"] for _, _, y in batches]), frauds)


@pytest.mark.parametrize(
    ("told", "metrics"),
    [
        ([0.9, 0.6, 0.1, 0.4, 0.2], {"f1_score": 0.5, "precision": 0.5, "recall": 0.5, "accuracy": 0.6}),
        ([0.1, 0.1, 0.1, 0.1, 0.1], {"f1_score": 0.0, "precision": 0.0, "recall": 0.0, "accuracy": 0.6}),
    ],
    ids=["some", "no alarm"],
)
def test_the_metrics_count_frauds(told: list[float], metrics: Mapping[str, float]) -> None:
    answers, labels = np.array(told, np.float32)[:, None], np.array([1, 0, 0, 1, 0])
    calculator = user_file(EXAMPLE.folder, "metrics").MetricsCalculator()
    found = calculator.calc(ids=range(5), y_pred={"prediction": answers}, x={}, y_real={"prediction": labels})
    assert found == pytest.approx(metrics)


def test_the_program_and_the_object_agree() -> None:
    tree = ast.parse((EXAMPLE.folder / "train.py").read_text(encoding="utf-8"))
    first = ast.unparse(next(each for each in tree.body if isinstance(each, ast.Assign)))
    assert first == f"NAME, ALIAS = ('{NAME}', '{SPEC.source.version}')"
    (model,) = SPEC.models
    assert (model.name, model.config.max_batch_size) == (NAME, BATCH_SIZE)
    assert [each.metric for each in SPEC.accuracy.thresholds] == [METRIC]


def test_jobs_may_reach_and_believe_the_server_next_to_the_cluster() -> None:
    with trusted() as trust:
        values = yaml.safe_load(yaml.safe_dump(trust.values))
        assert values["sources"]["caBundle"] == trust.authority.read_text(encoding="utf-8")
    egress = values["networkPolicy"]["sources"]["egress"]
    assert {"to": [{"ipBlock": {"cidr": f"{NODE_ADDRESS}/32"}}]} in egress
    assert any(port["port"] == 443 for rule in egress for port in rule.get("ports", ())), "as usual"
    assert needs_servers(EXAMPLE)
    assert all(map(needs_servers, PIPELINES.values()))
    assert not needs_servers(read("digits"))
