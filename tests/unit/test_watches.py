"""A watch of a kind: nothing is lost between two answers of the API server, and none is asked for too often."""

import contextlib
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from kubernetes import client

from triton_operator.kube.cluster import Cluster
from triton_operator.kube.connection import Connection
from triton_operator.kube.errors import GoneError, ServerError, UnavailableError
from triton_operator.kube.kinds import JOB, ApiKind
from triton_operator.names import TRITON_DEPLOYMENT_LABEL
from triton_operator.runtime import watches
from triton_operator.runtime.store import Key, Store
from triton_operator.runtime.watches import Watch, backoffs

JSON = dict[str, Any]
Said = tuple[str, JSON] | Exception
DIGITS = Key("vision", "digits")


def listed(name: str, version: int) -> JSON:
    """An object of a list at that version: a watch looks at nothing else of it."""
    metadata = {"name": name, "namespace": "vision", "uid": name, "labels": {TRITON_DEPLOYMENT_LABEL: "digits"}}
    return {"metadata": {**metadata, "resourceVersion": str(version)}}


def without_sense(name: str, version: int) -> JSON:
    """An object that the store cannot take in, which the API server would never tell: a bug stands for others."""
    body = listed(name, version)
    return {"metadata": {**body["metadata"], "labels": ["digits"]}}


def a_bookmark(version: int) -> Said:
    return "BOOKMARK", {"metadata": {"resourceVersion": str(version)}}


class Told(Cluster):
    """An API server that says what it is told to say; an exception ends a watch."""

    def __init__(self) -> None:
        self.listed: list[JSON] = []
        self.version = 10
        self.lists = 0
        self.says: list[Said] = []
        self.watched_from: list[str] = []

    def list_all(self, kind: ApiKind, namespace: str | None, page: int = 100) -> tuple[Iterator[JSON], str]:
        self.lists += page > 1
        return iter(self.listed), str(self.version)

    def watch(self, kind: ApiKind, namespace: str | None, version: str) -> Iterator[tuple[str, JSON]]:
        self.watched_from.append(version)
        for said in self.says:
            if isinstance(said, Exception):
                raise said
            self.version = max(self.version, int(said[1]["metadata"]["resourceVersion"]))
            yield said


class Followed:
    """A watch of Jobs, listed; what is in its store, and whom it woke."""

    def __init__(self) -> None:
        self.bugs: list[Exception] = []
        self.cluster, self.store = Told(), Store(self.bugs.append)
        self.woken: list[Key] = []
        self.watch = Watch(self.cluster, self.store, JOB, "vision", self.woken.append, self.bugs.append)
        self.watch.list()

    def after(self, *said: Said) -> float:
        """The pause after a watch that said so."""
        self.cluster.says = list(said)
        return self.watch.follow()

    def jobs(self) -> list[str]:
        return sorted(body["metadata"]["name"] for body in self.store.children(DIGITS))


@pytest.fixture
def followed() -> Followed:
    return Followed()


def test_what_is_said_is_taken_in_and_wakes(followed: Followed) -> None:
    followed.after(("ADDED", listed("a", 11)), ("ADDED", listed("b", 12)), ("DELETED", listed("a", 13)))
    assert (followed.jobs(), followed.woken) == (["b"], [DIGITS] * 3)


def test_what_was_known_wakes_nobody(followed: Followed) -> None:
    followed.store.put(JOB, listed("a", 11))
    followed.after(("ADDED", listed("a", 11)), a_bookmark(20))
    assert followed.woken == []


def test_the_next_watch_goes_on_where_the_last_one_ended(followed: Followed) -> None:
    followed.after()
    followed.after(("ADDED", listed("a", 11)), UnavailableError("cut off"))
    followed.after(a_bookmark(20))
    followed.after()
    assert followed.cluster.watched_from == ["10", "10", "11", "20"]
    assert followed.cluster.lists == 1


def test_what_the_api_server_has_forgotten_is_listed_anew(followed: Followed) -> None:
    followed.after(("ADDED", listed("gone", 11)), GoneError("too old"))
    followed.cluster.listed, followed.cluster.version = [listed("missed", 30)], 31
    followed.woken.clear()
    followed.after()
    assert (followed.jobs(), followed.woken) == (["missed"], [DIGITS])
    assert followed.cluster.watched_from == ["10", "31"]
    followed.after()
    assert followed.cluster.lists == 2


def test_a_list_that_fails_is_tried_again(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    followed.after(GoneError("too old"))

    def no_answer(kind: ApiKind, namespace: str | None, page: int = 100) -> tuple[Iterator[JSON], str]:
        raise UnavailableError("no answer")

    with monkeypatch.context() as away:
        away.setattr(followed.cluster, "list_all", no_answer)
        assert followed.after() > 0
    followed.after()
    assert followed.cluster.lists == 2


class EndedError(Exception):
    """The process ended."""


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was said as the process ended."""
    said: list[str] = []

    def end(message: str) -> None:
        said.append(message)
        raise EndedError

    monkeypatch.setattr(watches, "end_process", end)
    return said


def test_an_older_version_than_was_seen_ends_the_process(followed: Followed, ended: list[str]) -> None:
    """etcd was put back to a copy: what is in the store is of a cluster that is no more."""
    followed.after(("ADDED", listed("a", 42)))
    followed.cluster.version = 41
    followed.after()
    with pytest.raises(EndedError):
        followed.watch.list()
    assert len(ended) == 2
    assert "jobs has version 41, and version 42 was seen before: etcd was put back" in ended[0]


def test_a_change_that_is_heard_before_a_list_is_looked_at_ends_no_process(
    followed: Followed, ended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list runs in a thread of its own: the watch may be further by the time its answer is here."""
    answers = followed.cluster.list_all

    def list_all(kind: ApiKind, namespace: str | None, page: int = 100) -> tuple[Iterator[JSON], str]:
        answer = answers(kind, namespace, page)
        monkeypatch.setattr(followed.cluster, "list_all", answers)
        followed.after(("ADDED", listed("a", 44)))
        return answer

    monkeypatch.setattr(followed.cluster, "list_all", list_all)
    followed.watch.list()
    monkeypatch.setattr(followed.cluster, "list_all", list_all)
    followed.after()
    assert (ended, followed.jobs()) == ([], ["a"])


def test_a_version_that_is_forgotten_is_compared_all_the_same(followed: Followed, ended: list[str]) -> None:
    followed.after(("ADDED", listed("a", 42)), GoneError("too old"))
    followed.cluster.version = 41
    followed.after()
    assert len(ended) == 1


@pytest.mark.parametrize("last", ["MODIFIED", "DELETED"])
@pytest.mark.parametrize("by_a_full_list", [True, False])
def test_a_list_that_lacks_an_earlier_change_ends_the_process(
    followed: Followed, ended: list[str], last: str, by_a_full_list: bool
) -> None:
    """etcd was put back with versions that only grow, as its documentation asks for where somebody watches."""
    followed.after(("ADDED", listed("a", 42)), (last, listed("a", 50)), GoneError("compacted"))
    followed.cluster.listed, followed.cluster.version = [listed("a", 42)], 1_000_000
    with contextlib.suppress(EndedError):
        followed.watch.list() if by_a_full_list else followed.after()
    (message,) = ended
    assert "jobs has version 1000000, and Job vision/a is older than it was, or was deleted, before that" in message


def test_a_deletion_that_only_a_list_told_of_proves_it_too(followed: Followed, ended: list[str]) -> None:
    followed.after(("ADDED", listed("a", 42)), a_bookmark(50))
    followed.watch.list()
    followed.cluster.listed, followed.cluster.version = [listed("a", 42)], 1_000_000
    with pytest.raises(EndedError):
        followed.watch.list()


class History:
    """An API server with one history of random changes; lists and events of it arrive late, and in any order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.version = 10
        self.objects: dict[str, JSON] = {}
        self.events: list[tuple[str, JSON]] = []

    def change(self) -> JSON:
        """Make, change or delete an object, or take its label off, or put it on again."""
        self.version += 1
        name = self.random.choice("abc")
        how = self.random.choice(("label", "no label", "delete"))
        known = self.objects.pop(name, None)
        uid = known["metadata"]["uid"] if known else f"{name}-{self.version}"
        body = listed(name, self.version)
        body["metadata"] |= {"uid": uid} | ({"labels": {}} if how == "no label" else {})
        if known and how == "delete":
            self.events.append(("DELETED", body))
        else:
            self.objects[name] = body
            self.events.append(("MODIFIED" if known else "ADDED", body))
        return body


@pytest.mark.parametrize("seed", range(200))
def test_no_order_in_which_one_history_arrives_ends_the_process(seed: int) -> None:
    """Two lists at a time, the watch and own writes: each is told in its own order, at any time after it happened."""
    history, store = History(seed), Store()
    lists: list[tuple[str, list[JSON]]] = []
    heard = 0
    for _ in range(300):
        what = history.random.choice(("change", "write", "hear", "ask", "answer"))
        if what == "change":
            history.change()
        elif what == "write":
            body = history.change()
            if history.events[-1][0] != "DELETED":
                store.put(JOB, body)
        elif what == "hear" and heard < len(history.events):
            store.seen(JOB, *history.events[heard])
            heard += 1
        elif what == "ask" and len(lists) < 2:
            lists.append((str(history.version), list(history.objects.values())))
        elif what == "answer" and lists:
            version, answer = lists.pop(history.random.randrange(len(lists)))

            def arriving(bodies: list[JSON] = answer) -> Iterator[JSON]:
                nonlocal heard
                for body in bodies:
                    # Between two pages too.
                    if heard < len(history.events) and history.random.random() < 0.5:
                        store.seen(JOB, *history.events[heard])
                        heard += 1
                    yield body

            store.replace(JOB, "vision", arriving(), version)


def test_the_same_history_goes_on(followed: Followed, ended: list[str]) -> None:
    followed.after(("ADDED", listed("a", 42)), a_bookmark(50))
    followed.after(a_bookmark(60), UnavailableError("cut off"))
    followed.after()
    followed.watch.list()
    assert ended == []


def test_pauses_grow_while_nothing_is_heard_and_never_end(followed: Followed) -> None:
    cut = UnavailableError("cut off")
    assert [followed.after(cut) for _ in range(7)] == [1, 1, 2, 3, 5, 5, 5]
    assert followed.after(a_bookmark(20), cut) == 1
    assert [followed.after(GoneError("too old")) for _ in range(4)] == [1, 2, 3, 5]
    assert max(islice(backoffs(), 10_000)) == 5


def test_a_watch_that_ends_at_once_is_not_begun_again_at_once(followed: Followed) -> None:
    assert 0.9 < followed.after(("ADDED", listed("a", 11))) <= 1.0


def test_a_change_that_cannot_be_taken_in_is_left_out_and_the_watch_goes_on(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    followed.after(("ADDED", listed("a", 11)), ("MODIFIED", without_sense("a", 12)), ("ADDED", listed("b", 13)))
    assert (followed.jobs(), followed.woken) == (["a", "b"], [DIGITS] * 2)
    assert [type(bug) for bug in followed.bugs] == [AttributeError]
    assert "Job vision/a is left out because of a bug" in caplog.text
    assert "Traceback" in caplog.text
    followed.after()
    assert (followed.cluster.watched_from, followed.cluster.lists) == (["10", "13"], 1)


def test_an_object_of_a_list_that_cannot_be_taken_in_is_left_out_and_not_taken_for_gone(followed: Followed) -> None:
    followed.after(("ADDED", listed("a", 11)), ("ADDED", listed("gone", 12)), GoneError("too old"))
    followed.cluster.listed, followed.cluster.version = [without_sense("a", 20), listed("b", 21)], 22
    followed.after()
    assert followed.jobs() == ["a", "b"]
    assert [type(bug) for bug in followed.bugs] == [AttributeError]


def test_a_bug_ends_no_watch_and_everything_is_listed_again_after_a_growing_pause(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    assert [followed.after(("ADDED", listed("b", 12)), ValueError("a bug")) for _ in range(7)] == [1, 1, 2, 3, 5, 5, 5]
    assert followed.cluster.lists == 7
    assert [str(each) for each in followed.bugs] == ["a bug"] * 7
    assert "the watch of jobs met a bug and lists everything in 1 s\nTraceback" in caplog.text
    followed.after(a_bookmark(20))
    assert followed.after(ValueError("another bug")) == 1


def test_what_is_said_in_place_of_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server has answered 200 by then, so an error comes as if it were an object."""
    for code, error in ((410, GoneError), (429, UnavailableError), (504, ServerError)):
        status = {"kind": "Status", "code": code, "message": "too old resource version: 1 (2)"}

        def stream(*_: object, status: JSON = status) -> Iterator[JSON]:
            yield {"type": "ADDED", "object": listed("a", 11)}
            yield {"type": "ERROR", "object": status}

        connection = Connection(client.Configuration(), "test", 1.0)
        monkeypatch.setattr(connection, "stream", stream)
        watch = Cluster(connection).watch(JOB, "vision", "1")
        assert next(watch) == ("ADDED", listed("a", 11))
        with pytest.raises(error, match="too old resource version"):
            next(watch)


def test_one_that_was_stopped_takes_in_nothing(followed: Followed) -> None:
    followed.watch.stop()
    followed.after(("ADDED", listed("a", 11)))
    assert (followed.jobs(), followed.woken) == ([], [])


def test_whether_it_still_follows_is_known(followed: Followed) -> None:
    assert not followed.watch.ended()
    followed.watch.start()
    assert not followed.watch.ended()
    followed.watch.stop()
    followed.watch._thread.join(5)
    assert followed.watch.ended()
