"""What kopf is told: which objects it asks the API server for."""

import asyncio
from collections.abc import Iterable
from itertools import islice

import kopf
from kopf._cogs.structs.bodies import RawBody
from kopf._cogs.structs.references import Resource

from triton_operator.handlers import NoMemories, configure
from triton_operator.kinds import CHILDREN, EVENT, TRITON_DEPLOYMENT, Kind


def selectors(kind: Kind) -> list[str]:
    """The label selectors of the lists and watches of a kind."""
    settings = kopf.OperatorSettings()
    configure(settings)
    resource = Resource(group=kind.group, version=kind.version, plural=kind.plural, namespaced=True)
    return settings.watching.label_selectors.collect(resource)


def test_only_our_own_children_are_asked_for() -> None:
    for kind in CHILDREN:
        assert selectors(kind) == ["app.kubernetes.io/managed-by=triton-operator"], kind


def test_every_tritondeployment_is_asked_for() -> None:
    assert selectors(TRITON_DEPLOYMENT) == []


def test_of_events_only_warnings_are_asked_for() -> None:
    settings = kopf.OperatorSettings()
    configure(settings)
    resource = Resource(group="", version="v1", plural="events", namespaced=True)
    assert selectors(EVENT) == []
    (fields,) = settings.watching.field_selectors.collect(resource)
    assert fields.startswith("type=Warning,")


def test_kopf_copies_no_object() -> None:
    settings = kopf.OperatorSettings()
    configure(settings)
    body = kopf.Body({"metadata": {"name": "digits", "labels": {"a": "b"}}, "spec": {"suspend": True}})
    essence = settings.persistence.diffbase_storage.build(body=body)
    assert essence == {}
    assert settings.persistence.progress_storage.clear(essence=essence) is essence


def test_kopf_never_gives_a_watch_up() -> None:
    settings = kopf.OperatorSettings()
    configure(settings)
    backoffs = settings.networking.error_backoffs
    assert isinstance(backoffs, Iterable)
    for _ in range(2):
        pauses = list(islice(backoffs, 1000))
        assert pauses[0] == 1
        assert max(pauses) == 5


def test_kopf_remembers_no_object() -> None:
    memories = NoMemories()
    asyncio.run(memories.recall(RawBody(metadata={"uid": "u", "name": "digits"})))
    assert list(memories.iter_all_memories()) == []
