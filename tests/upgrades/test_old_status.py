"""The status of an older operator: read as it is, written anew by the first pass, and nothing else happens for it."""

import lzma
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import yaml

from tests.states.deployment import a_deployment
from tests.upgrades.stored import HERE, STORED, state
from triton_operator.api.duration import amount
from triton_operator.api.old_status import FIELDS
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.api.triton_deployment import parse, parse_status
from triton_operator.crdgen import crd
from triton_operator.observed.history import History, State
from triton_operator.planning.conditions import event_fields
from triton_operator.planning.pins import pinned_images

Body = dict[str, Any]
CRD = HERE / "crd-2bb6dae5.yaml.xz"
PARTS = ("candidates", "search", "serving", "source", "images", "newImages", "performance")
"""The parts of the status that had other names."""
OLD = {name for fields in FIELDS.values() for name in fields} - {"revision"}
"""The old names; a candidate has one of them, which only the source has no more."""
MEASURED = [name for name in STORED if "performance" in STORED[name]["body"]["status"]]
CARRIED = ("new-revision-about-to-be-measured", "new-generation-while-serving", "canary", "soaking")
"""States in which the status says what no record of this pass does."""


def names(value: Any) -> Iterator[str]:
    """All names of fields in a value."""
    for name, each in value.items() if isinstance(value, dict) else ():
        yield name
        yield from names(each)
    for each in value if isinstance(value, list) else ():
        yield from names(each)


def old_names(status: Body) -> set[str]:
    """The old names that a status still has."""
    found = OLD & set(names({part: status.get(part) for part in PARTS}))
    return found | {"revision"} & status.get("source", {}).keys()


def read(stored: Body) -> TritonDeploymentStatus:
    return parse_status({"status": stored})


def dumped(status: TritonDeploymentStatus) -> Body:
    return status.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


@pytest.mark.parametrize("name", STORED)
def test_nothing_of_a_stored_status_is_lost(name: str) -> None:
    stored = STORED[name]["body"]["status"]
    found = dumped(read(stored))
    assert found.keys() == stored.keys()
    for part in ("candidates", "search", "conditions"):
        assert len(found.get(part, ())) == len(stored.get(part, ())), part
    assert not old_names(found)
    again = read(found)
    assert dumped(again) == found, "what is written is read as it is"


@pytest.mark.parametrize("name", MEASURED)
def test_each_old_figure_is_told_with_its_unit(name: str) -> None:
    stored = STORED[name]["body"]["status"]
    found = dumped(read(stored))
    if "p99LatencyMicroseconds" in stored["serving"]:
        assert amount(found["serving"]["p99Latency"], "us") == stored["serving"]["p99LatencyMicroseconds"]
    for sweep in ("offline", "online", "requestRate"):
        old, new = (each["performance"].get(sweep, ()) for each in (stored, found))
        assert len(old) == len(new)
        for before, after in zip(old, new, strict=True):
            for field, known in FIELDS["RowStatus"].items():
                if field != "usedMemoryBytes":
                    exact, told = before[field], amount(after[known.new], "us")
                    assert abs(told - exact) <= exact * 0.005, field


@pytest.mark.parametrize("name", STORED)
def test_the_first_pass_writes_the_new_names_and_tells_of_nothing(name: str) -> None:
    """The second one has nothing left to write."""
    kept = state(name).renamed
    cluster = kept.cluster()
    cluster.settings = kept.settings
    old = read(kept.body["status"])
    cluster.act()
    assert not old_names(cluster.status)
    told = {(each.type, each.status, each.reason) for each in old.conditions}
    written = {(each.type, each.status, each.reason) for each in read(cluster.status).conditions}
    if told == written:
        assert list(event_fields(old, read(cluster.status))) == []


@pytest.mark.parametrize("name", CARRIED)
def test_the_figures_of_what_serves_outlive_the_pass(name: str) -> None:
    kept = state(name).renamed
    old = read(kept.body["status"])
    assert old.active is not None
    assert old.performance is not None
    cluster = kept.cluster()
    cluster.act()
    new = read(cluster.status)
    assert new.active is not None
    assert (new.active.p99_latency, new.active.throughput) == (old.active.p99_latency, old.active.throughput)
    assert new.performance == old.performance


def test_images_that_were_asked_for_under_the_old_name_stay() -> None:
    """Those of the status and those of the history; else everything would be converted once more."""
    cluster = a_deployment().where(updates=1).settled().cluster()
    images = cluster.status["images"]
    images["asked"], images["commands"] = images.pop("requestDigest"), images.pop("commandsVersion")
    newer = replace(cluster.settings, converter_image="example/converter:2")
    deployment = parse(cluster.body())
    history = History((State((), images=deepcopy(images)),))
    without = replace(deployment, status=TritonDeploymentStatus())
    assert deployment.update_images == images["asked"]
    for known in (pinned_images(deployment, History(), newer), pinned_images(without, history, newer)):
        assert (known.converter, known.commands_version) == ("example/converter:1", 4)


def test_no_stored_field_is_missing_or_of_another_type_in_the_new_schema() -> None:
    """The first would be pruned. The second would make every apply fail: the stored object does not fit its schema."""
    older = yaml.safe_load(lzma.decompress(CRD.read_bytes()))
    before, now = (dict(fields("status", status_schema(each))) for each in (older, crd()))
    assert {place: kind for place, kind in before.items() if now.get(place) != kind} == {}


def status_schema(body: Body) -> Body:
    root = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    found: Body = root["properties"]["status"]
    return found


def fields(place: str, schema: Body) -> Iterator[tuple[str, str]]:
    """Each field below a schema with its type."""
    yield place, schema.get("type", "any")
    for name, each in schema.get("properties", {}).items():
        yield from fields(f"{place}.{name}", each)
    if "items" in schema:
        yield from fields(f"{place}[]", schema["items"])


@pytest.mark.parametrize("rubbish", [None, True, 1.5, -(10**30), "rubbish", [], {}, [[]], {"a": [1]}])
@pytest.mark.parametrize("kind", FIELDS)
def test_rubbish_under_an_old_name_costs_nothing_else(kind: str, rubbish: Any) -> None:
    stored = deepcopy(STORED["ready-after-a-quick-search"]["body"]["status"])
    known = dumped(read(stored))
    places: dict[str, list[Body]] = {
        "CandidateStatus": stored["candidates"],
        "SearchStatus": stored["search"],
        "ServingStatus": [stored["serving"]],
        "SaturationStatus": [stored["performance"]["saturation"]],
        "RowStatus": [],
        "SourceStatus": [stored["source"]],
        "Images": [stored["images"]],
    }
    for holder in places[kind]:
        for name in FIELDS[kind]:
            holder[name] = rubbish
    found = dumped(read(stored))
    assert found.keys() == known.keys()
    assert found["images"].keys() >= {"converter", "server", "specDigest"}
    assert [each["name"] for each in found["candidates"]] == [each["name"] for each in known["candidates"]]
