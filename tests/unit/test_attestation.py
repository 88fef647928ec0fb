"""The predicate of what passed: what it says, and that nothing else gets one."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.report.subjects import golden
from triton_converters.contract.predicate import LARGEST, Predicate
from triton_converters.contract.records import record_name
from triton_converters.contract.results import ConvertResult, ProfileResult, ReferenceResult, SourceResult
from triton_operator.jobs import attestation, source
from triton_operator.jobs.attestation import NotPassedError, Passed, predicate
from triton_operator.jobs.profile import tolerance
from triton_operator.observed.record import Record
from triton_plugin.drafting.push.outputs import reference_key
from triton_plugin.reading.subject import Subject, parse

CONTENT, SAMPLES = "a" * 64, "b" * 64


def answered(record: Record, **fields: Any) -> Record:
    """A record with another answer."""
    assert record.outcome.result is not None
    changed: Any = replace(record.outcome.result, **fields)
    return replace(record, outcome=replace(record.outcome, result=changed))


def subject(body: dict[str, Any] | None = None) -> Subject:
    """An object whose first candidate serves, with the digests that real Jobs record."""
    found = parse(*(golden("ready") if body is None else (body, golden("ready")[1])))
    digests: dict[type[Any], dict[str, str]] = {
        ConvertResult: {"content": CONTENT},
        ReferenceResult: {"samples_digest": SAMPLES},
    }
    records = {
        name: answered(record, **digests.get(type(record.outcome.result), {})) for name, record in found.records.items()
    }
    return replace(found, records=records)


def passed(found: Subject, **fields: Any) -> Passed:
    told: dict[str, Any] = {
        "namespace": found.namespace,
        "name": found.name,
        "uid": found.uid,
        "generation": found.generation,
        "spec": found.spec,
        "status": found.status,
        "records": found.records,
        "reference": reference_key(found),
    }
    return Passed(**{**told, **fields})


def test_it_says_what_the_report_knows() -> None:
    found = subject()
    told = Predicate.from_json(predicate(passed(found)))
    active = found.status.active
    assert active is not None
    assert found.status.source is not None
    assert (told.revision.key, told.revision.candidate) == (active.revision, active.candidate)
    assert told.revision.content == CONTENT
    assert told.gates.samples_digest == SAMPLES
    assert f"sha256:{told.identity.source.digest}" == found.status.source.digest
    assert told.identity.source.uri == found.spec.source.uri
    assert told.gates.tolerance == tolerance(found.spec, told.gates.precision)
    assert [each.name for each in told.metrics] == [each.metric for each in found.status.accuracy]
    assert [each.served for each in told.metrics] == [each.served for each in found.status.accuracy]
    assert [row.throughput for row in told.figures.online]
    assert found.status.images is not None
    assert told.images[0].name == found.status.images.server
    assert not told.local


def test_it_is_canonical_and_stays_the_same() -> None:
    text = predicate(passed(subject()))
    assert json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")) == text
    assert predicate(passed(subject())) == text
    assert len(text.encode()) <= LARGEST


def test_the_values_of_variables_are_nobody_elses() -> None:
    body, _ = golden("ready")
    body["spec"].setdefault("conversion", {})["pod"] = {"env": [{"name": "TOKEN", "value": "a-secret"}]}
    text = predicate(passed(subject(body)))
    assert "TOKEN" in text
    assert "a-secret" not in text


def test_a_long_spec_is_left_out_and_its_digest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = predicate(passed(subject()))
    monkeypatch.setattr(attestation, "LARGEST", len(whole) - 1)
    told = Predicate.from_json(predicate(passed(subject())))
    assert told.identity.spec is None
    assert told.identity.spec_digest == Predicate.from_json(whole).identity.spec_digest
    monkeypatch.setattr(attestation, "LARGEST", 100)
    with pytest.raises(NotPassedError, match="more than 100 bytes"):
        predicate(passed(subject()))


def test_weights_and_data_are_named_with_their_digests() -> None:
    body, _ = golden("ready")
    body["spec"]["weights"] = {"uri": "s3://models/digits/weights", "version": "v7"}
    body["spec"]["dataset"] = {"uri": "pvc://data/digits", "version": "2026-11"}
    found = subject(body)
    with pytest.raises(NotPassedError, match="the record of s3://models/digits/weights is gone"):
        predicate(passed(found))
    files = found.spec.weights
    assert files is not None
    key = source._key(files, source._request(files), found.uid)
    published = next(each for each in found.records.values() if isinstance(each.outcome.result, SourceResult))
    records = {
        **found.records,
        record_name("source", key): answered(published, digest="c" * 64, resolved="etag"),
    }
    told = Predicate.from_json(predicate(passed(found, records=records))).identity
    assert told.weights is not None
    assert (told.weights.version, told.weights.digest) == ("etag", "c" * 64)
    assert told.data is not None
    assert (told.data.uri, told.data.version, told.data.digest) == ("pvc://data/digits", "2026-11", "")


def conditions(found: Subject, **changes: Any) -> Any:
    """A status whose conditions are others; a type that maps to None is gone."""
    kept = [each for each in found.status.conditions if changes.get(each.type, each) is not None]
    told = [each.model_copy(update=changes[each.type]) if each.type in changes else each for each in kept]
    return found.status.model_copy(update={"conditions": told})


@pytest.mark.parametrize("kind", ["Verified", "Selected"])
@pytest.mark.parametrize("change", [None, {"status": "False"}, {"status": "Unknown"}, {"observed_generation": 0}])
def test_what_is_not_verified_and_selected_gets_none(kind: str, change: Any) -> None:
    found = subject()
    with pytest.raises(NotPassedError, match=f"condition {kind} is not True"):
        passed(found, status=conditions(found, **{kind: change}))


def test_what_a_trial_may_undo_gets_none() -> None:
    found = subject()
    soaked = next(each for each in found.status.conditions if each.type == "Verified").model_copy(
        update={"type": "Soaked", "status": "Unknown"}
    )
    trial = [*found.status.conditions, soaked]
    with pytest.raises(NotPassedError, match="its trial has not passed"):
        passed(found, status=found.status.model_copy(update={"conditions": trial}))
    trial[-1] = soaked.model_copy(update={"status": "True"})
    assert passed(found, status=found.status.model_copy(update={"conditions": trial}))


def test_what_does_not_serve_gets_none() -> None:
    found = subject()
    assert found.status.serving is not None
    other = found.status.serving.model_copy(update={"revision": "0" * 16})
    with pytest.raises(NotPassedError, match="another revision serves"):
        passed(found, status=found.status.model_copy(update={"serving": other}))


def test_what_no_candidate_is_selected_of_gets_none() -> None:
    found = subject()
    candidates = [each.model_copy(update={"state": "Passed"}) for each in found.status.candidates]
    with pytest.raises(NotPassedError, match="no candidate is selected"):
        passed(found, status=found.status.model_copy(update={"candidates": candidates}))


@pytest.mark.parametrize(
    ("kind", "fields", "why"),
    [
        (ProfileResult, {"passed": False}, "a gate refused it"),
        (ProfileResult, {"reason": "OutputsDiffer"}, "a gate refused it"),
        (ConvertResult, {"content": ""}, "no recorded digest"),
        (ReferenceResult, {"samples_digest": ""}, "no recorded digest"),
    ],
)
def test_what_the_records_do_not_bear_out_gets_none(kind: type[Any], fields: dict[str, Any], why: str) -> None:
    found = subject()
    records = {
        name: answered(each, **fields) if isinstance(each.outcome.result, kind) else each
        for name, each in found.records.items()
    }
    with pytest.raises(NotPassedError, match=why):
        passed(found, records=records)


def test_what_misses_a_threshold_gets_none() -> None:
    body, _ = golden("ready")
    found = subject(body)
    threshold = found.spec.accuracy.thresholds[0].model_copy(update={"min": 1e9})
    spec = found.spec.model_copy(
        update={"accuracy": found.spec.accuracy.model_copy(update={"thresholds": [threshold]})}
    )
    with pytest.raises(NotPassedError, match="a threshold is missed"):
        passed(found, spec=spec)


@pytest.mark.parametrize("stage", ["profile", "convert", "reference", "metrics"])
def test_what_has_lost_its_records_gets_none(stage: str) -> None:
    found = subject()
    records = {name: each for name, each in found.records.items() if not name.startswith(f"{stage}.")}
    with pytest.raises(NotPassedError, match=f"the record {stage}"):
        passed(found, records=records)
