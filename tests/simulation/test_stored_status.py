"""A status that this operator did not write, such as a newer one's before a rollback: what it understands counts."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.cluster import Cluster
from tests.simulation.deployments import candidate
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.api.triton_deployment import parse_status

Body = dict[str, Any]
Place = tuple[str | int, ...]
RUBBISH: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 1.5, -(10**30), "rubbish", "", [], {}, [[]], [{"a": 1}], {"a": [1]}, {"0": None}]
)


@pytest.fixture(scope="session")
def whole(settled: Cluster) -> Body:
    """A status with something in every field."""
    found = {"maxBatchSize": 8, "instances": 2, "dynamicBatching": {"preferredBatchSizes": [4, 8]}}
    search = {"candidate": "onnx-fp32", "measurements": 3, "config": found, "records": ["0" * 16, "1" * 16]}
    target = {"revision": "2" * 16, "candidate": "onnx-fp16"}
    chosen = {"models": [{"name": "digits", "candidates": [candidate("onnx-fp32")]}], "specDigest": "3" * 16}
    told = {"search": [search], "target": target, "resolved": chosen, "newImages": {**settled.status["images"]}}
    version = {"version": "7", "label": "version 7", "foundAt": "2026-11-30T02:00:00Z"}
    times = {"lastCheckedAt": "2026-11-30T03:00:00Z", "outdatedSince": "2026-11-30T02:00:00Z"}
    source = {"serving": version, "latest": {**version}, **times}
    told |= {"source": settled.status["source"] | source, "lastHandledRequestAt": "2026-11-30T02:59:00Z"}
    status = settled.status | told
    assert set(status) == {each.alias for each in TritonDeploymentStatus.model_fields.values()}
    return deepcopy(status)


def read(status: Any) -> Body:
    """What the operator takes from a stored status."""
    return parse_status({"status": status}).model_dump(by_alias=True)


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """The places of all values that hold no others."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [place for key, each in items for place in places(each, (*at, key))]
    yield from inner or [at]


def replaced(value: Any, place: Place, by: Any) -> Any:
    """The value with another one at a place."""
    copy = deepcopy(value)
    holder = copy
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = by
    return copy


@given(st.data())
def test_rubbish_in_one_place_costs_no_other_field_and_no_other_item(whole: Body, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(list(places(whole))))
    known, found = read(whole), read(replaced(whole, place, data.draw(RUBBISH)))
    field = str(place[0])
    assert found | {field: None} == known | {field: None}
    if len(place) > 2 and isinstance(whole[field], list):
        others = [each for number, each in enumerate(known[field]) if number != place[1]]
        assert [each for each in found[field] if each in others] == others


@given(st.recursive(RUBBISH, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)))
def test_any_field_may_hold_anything(whole: Body, rubbish: Any) -> None:
    known = read(whole)
    for name, field in TritonDeploymentStatus.model_fields.items():
        assert field.alias is not None
        assert read(whole | {field.alias: rubbish}) | {field.alias: None} == known | {field.alias: None}
        assert name == field.alias or read(whole | {name: rubbish}) == known


@given(RUBBISH)
def test_a_status_that_is_rubbish_counts_as_empty(rubbish: Any) -> None:
    assert parse_status({"status": rubbish}) == TritonDeploymentStatus()


def test_several_places_of_one_list_are_dropped_each_for_itself(whole: Body) -> None:
    status = deepcopy(whole)
    for number in (0, 2):
        del status["conditions"][number]["message"], status["conditions"][number]["reason"]
    status["conditions"][5]["type"] = "Forecast"
    expected = [each for number, each in enumerate(whole["conditions"]) if number not in (0, 2, 5)]
    assert read(status) == read(whole | {"conditions": expected})


def test_a_rollback_of_the_operator_starts_nothing_anew(serving: Cluster) -> None:
    """The newer operator wrote a field, a condition, a reason and a state that this one does not know."""
    story, images = list(serving.story), serving.status["images"]
    status = serving.status
    status["forecast"] = {"requestsPerSecond": "10"}
    status["images"] = images | {"sidecar": "example/sidecar:2"}
    status["conditions"][0]["reason"] = "ReadyAndForecast"
    status["conditions"].append(status["conditions"][0] | {"type": "Forecast"})
    status["candidates"][0]["state"] = "Retired"
    status["serving"]["forecast"] = "rising"
    serving.settings = replace(serving.settings, converter_image="example/converter:0", server_image="example/server:0")
    serving.settle()
    assert serving.story == story
    assert serving.status["images"] == images
    assert "forecast" not in serving.status
    assert [each["type"] for each in serving.status["conditions"]].count("Forecast") == 0


def test_a_late_server_whose_reason_is_a_newer_operators_is_late(serving: Cluster) -> None:
    serving.starts = lambda deployment: False
    serving.edit(serving={"replicas": 2, "image": "example/server:2", "progressDeadlineSeconds": 30})
    serving.run(40)
    stalled = serving.condition("Stalled")
    assert stalled["reason"] == "ProgressDeadlineExceeded"
    stalled["reason"] = "ServerForecastToFail"
    serving.settle()
    assert serving.condition("Stalled")["reason"] == "ProgressDeadlineExceeded"
