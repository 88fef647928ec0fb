"""A connection that is cut anywhere in a push: it goes on, or nothing of it is seen."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from tests.conftest import Fault
from tests.converters.https_server import Server, proxying
from tests.converters.published import REVISION, new_key
from tests.converters.test_hostile_registry import BASE, Answer, registry
from tests.converters.test_hostile_registry import Registry as InMemory
from tests.converters.test_signatures import run
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import connection
from triton_converters.publish.push import digest_of

__all__ = ["registry"]
KEY = new_key()
EVERY = 7
"""Each so many requests one is cut: an upload that the registry forgets takes five, and three tries are made."""


@contextmanager
def cutting(registry: InMemory, is_cut: Callable[[int], bool], *, is_done: bool = False) -> Iterator[None]:
    """Cut connections by the number of the request, from 1 on; ``is_done``: what was asked for is done before."""
    numbers = count(1)

    def answer(method: str, path: str, body: bytes) -> Answer | None:
        if not is_cut(next(numbers)):
            return None
        if is_done:
            registry._take(method, path.removeprefix(BASE), body)
        raise ConnectionAbortedError

    registry.first = answer
    yield
    registry.first = lambda *_: None


def copies(registry: InMemory) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """What the registry has now."""
    return dict(registry.blobs), dict(registry.manifests)


@pytest.mark.parametrize(("lost", "is_done"), [("request", False), ("answer", True)])
def test_a_push_goes_on_after_each_cut(
    server: Server, registry: InMemory, lost: str, is_done: bool, fault: Fault
) -> None:
    run(server, KEY)
    whole, most = copies(registry), len(registry.asked)
    for first in range(EVERY):
        registry.blobs, registry.manifests = {}, {}
        with cutting(registry, lambda number, first=first: number % EVERY == first, is_done=is_done):
            run(server, KEY)
        assert copies(registry) == whole
    fault(f"each {lost} of a push is lost once", most, "it goes on")


def test_the_tag_stays_until_all_else_is_there(server: Server, registry: InMemory, fault: Fault) -> None:
    older = run(server, KEY).digest
    before, already = copies(registry), len(registry.asked)
    (layout.revision_directory(REVISION) / "models/net/config.pbtxt").write_bytes(b'name: "net" # newer\n')
    newer = run(server, KEY).digest
    whole, most = copies(registry), len(registry.asked) - already
    led = []
    for first in range(1, most + 1):
        registry.blobs, registry.manifests = map(dict, before)
        with cutting(registry, lambda number, first=first: number >= first), pytest.raises(StageError) as caught:
            run(server, KEY)
        assert (caught.value.reason, caught.value.final) == (Reason.REGISTRY_UNREACHABLE, False)
        assert before[1].items() <= {**registry.manifests, "v1": before[1]["v1"]}.items()
        led.append(digest_of(registry.manifests["v1"]))
        assert led[-1] == older or copies(registry) == whole
    # After the tag has moved, the image is read back by its digest and by its tag.
    assert led == [older] * (most - 2) + [newer] * 2
    fault("a request of a push, and all after it, are lost", most, "the tag leads to the older image, or a whole one")


def test_a_proxy_that_is_not_there_is_named(
    server: Server, registry: InMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxying() as (proxy, connected):
        monkeypatch.setenv(connection.PROXY, proxy)
        result = run(server, KEY)
        assert set(connected) == {server.host}
    with pytest.raises(StageError) as caught:
        run(server, KEY, tag=":v2")
    assert (caught.value.reason, caught.value.final) == (Reason.REGISTRY_UNREACHABLE, False)
    assert "sources.proxy" in caught.value.message
    assert registry.tags == ["v1"]
    assert digest_of(registry.manifests["v1"]) == result.digest
