"""A pass that raises says so in the status: what serves, and all that is known, stays as it was."""

import re
from copy import deepcopy
from typing import Any

import pytest

from tests.simulation.settled import settled
from triton_operator.kube.cluster import ForbiddenError, InvalidError, UnavailableError
from triton_operator.kube.kinds import kind_of
from triton_operator.names import KEY_LABEL
from triton_operator.runtime import reconcile as reconcile_module
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.queue import Result
from triton_operator.runtime.reconcile import Reconciler
from triton_operator.runtime.store import Key, Store

Body = dict[str, Any]
SUMMARY = {"Ready", "UpToDate", "Reconciling", "Stalled"}


class Bench:
    """A reconciler over one settled TritonDeployment, and an API server that takes statuses and events only."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cluster, bodies = settled()
        self._monkeypatch = monkeypatch
        self.written: list[Body] = []
        self.refused: list[str] = []
        self.applied: list[str] = []
        self.events: list[Body] = []
        self.refuses: Exception | None = None
        self._store = Store()
        self.version = 1
        self._key = Key("vision", "digits")
        for body in bodies:
            self.put(body)
        self._reconciler = Reconciler(self, self._store, cluster.settings, Metrics(), lambda: cluster.now)  # type: ignore[arg-type]  # a stand-in

    def put(self, body: Body) -> Body:
        self.version += 1
        body = deepcopy(body)
        body["metadata"] |= {"resourceVersion": str(self.version), "namespace": "vision"}
        self._store.put(kind_of(body), body)
        return body

    @property
    def owner(self) -> Body:
        body = self._store.deployment(self._key)
        assert body is not None
        return body

    def conditions(self) -> dict[str, Body]:
        return {each["type"]: each for each in self.owner["status"]["conditions"]}

    def edit(self) -> None:
        """The user changes the spec."""
        body = self.owner
        body["metadata"]["generation"] += 1
        self.put(body)

    def reconcile(self, error: Exception | None = None) -> Result:
        """One pass, in which the plan raises that error."""
        if error is None:
            return self._reconciler.reconcile(self._key)

        def fail(*_: Any) -> Any:
            raise error

        with self._monkeypatch.context() as patch:
            patch.setattr(reconcile_module, "plan", fail)
            return self._reconciler.reconcile(self._key)

    def apply_status(self, body: Body) -> Body:
        if self.refuses is not None:
            raise self.refuses
        assert body["metadata"]["resourceVersion"] == self.owner["metadata"]["resourceVersion"]
        self.written.append(body["status"])
        return self.put(self.owner | {"status": body["status"]})

    def delete(self, body: Body) -> None:
        self.refused.append(body["metadata"]["name"])
        raise ForbiddenError("a policy keeps it")

    def apply(self, body: Body) -> Body:
        self.applied.append(body["metadata"]["name"])
        old = self.child(body["kind"], body["metadata"]["name"])
        return self.put({**old, **body, "metadata": {**old["metadata"], **body["metadata"]}})

    def children(self) -> list[Body]:
        return self._store.children(self._key)

    def child(self, kind: str, name: str) -> Body:
        return next(each for each in self.children() if (each["kind"], each["metadata"]["name"]) == (kind, name))

    def create_event(self, body: Body) -> None:
        self.events.append(body)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_a_bug_is_named_in_the_status_and_nothing_else_changes(bench: Bench) -> None:
    before = bench.owner["status"]
    assert bench.reconcile(ValueError("no such stage\nand more")) == Result(failed=True)
    found = bench.conditions()
    assert {kind: found[kind]["status"] for kind in SUMMARY} == {
        "Ready": "False",
        "UpToDate": "False",
        "Reconciling": "False",
        "Stalled": "True",
    }
    assert {found[kind]["reason"] for kind in SUMMARY} == {"InternalError"}
    message = found["Stalled"]["message"]
    assert message.startswith("the operator failed: ValueError: no such stage. ")
    assert "and more" not in message
    assert "the operator's log" in message
    after = bench.owner["status"]
    assert {**after, "conditions": None} == {**before, "conditions": None}
    assert [each for each in after["conditions"] if each["type"] not in SUMMARY] == [
        each for each in before["conditions"] if each["type"] not in SUMMARY
    ]
    assert [(each["type"], each["reason"]) for each in bench.events] == [("Warning", "InternalError")]


def test_the_same_bug_again_writes_nothing(bench: Bench) -> None:
    for number in range(5):
        bench.reconcile(ValueError(f"<object at {hex(7000 + number)}> after {number}.5 s"))
    assert [len(bench.written), len(bench.events)] == [1, 1]
    bench.reconcile(KeyError("another"))
    assert "KeyError" in bench.conditions()["Stalled"]["message"]


def test_a_pass_that_succeeds_clears_it(bench: Bench) -> None:
    def said() -> dict[str, tuple[str, str]]:
        return {kind: (each["status"], each["reason"]) for kind, each in bench.conditions().items()}

    before = said()
    bench.reconcile(ValueError("no"))
    assert said() != before
    assert bench.reconcile() == Result(again_after=0.0)
    assert bench.reconcile() == Result()
    assert said() == before


def test_an_edit_that_no_pass_got_through_counts_as_seen_and_changes_no_image(bench: Bench) -> None:
    before = bench.owner["status"]["images"]
    bench.edit()
    bench.reconcile(ValueError("no"))
    assert bench.owner["status"]["observedGeneration"] == 2
    assert bench.conditions()["Stalled"]["observedGeneration"] == 2
    assert bench.owner["status"]["images"] == before
    assert len(bench.written) == 1


def test_a_new_object_counts_as_seen(bench: Bench) -> None:
    bench.put(bench.owner | {"status": {"observedGeneration": -1}})
    bench.reconcile(ValueError("no"))
    assert bench.owner["status"]["observedGeneration"] == 1


def test_a_status_that_the_api_server_refuses_is_told_of(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    body = bench.owner
    body["status"]["conditions"] = []
    bench.put(body)
    take = Bench.apply_status

    def refuse(self: Bench, body: Body) -> Body:
        if body["status"]["conditions"][0]["reason"] != "StatusRefused":
            raise InvalidError("status.candidates: Too many: 19")
        return take(self, body)

    monkeypatch.setattr(Bench, "apply_status", refuse)
    for _ in range(3):
        assert bench.reconcile() == Result(failed=True)
    ready = bench.conditions()["Ready"]
    assert (ready["reason"], len(bench.written)) == ("StatusRefused", 1)
    assert "the API server refuses the status of this object: status.candidates: Too many: 19. " in ready["message"]
    assert [each["reason"] for each in bench.events] == ["StatusRefused"]


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (InvalidError("no"), "its status cannot report the error: StatusRefusedError: no"),
        (UnavailableError("no answer"), "its status cannot report the error: UnavailableError: no answer"),
        (TypeError("a bug in the bug"), "its status cannot report the error because of another bug\nTraceback"),
    ],
)
def test_where_the_status_cannot_be_written_the_log_says_so(
    bench: Bench, caplog: pytest.LogCaptureFixture, refusal: Exception, words: str
) -> None:
    bench.refuses = refusal
    assert bench.reconcile(ValueError("no")) == Result(failed=True)
    assert re.search("ValueError: no", caplog.text)
    assert words in caplog.text
    assert bench.written == bench.events == []


def test_a_long_error_is_cut(bench: Bench) -> None:
    bench.reconcile(ValueError("x" * 10_000))
    assert len(bench.conditions()["Stalled"]["message"]) < 600
    assert bench.conditions()["Stalled"]["message"].endswith("in the operator's log")


def test_an_object_that_is_being_deleted_is_left_alone(bench: Bench) -> None:
    body = bench.owner
    body["metadata"]["deletionTimestamp"] = "2026-11-21T00:00:00Z"
    bench.put(body)
    assert bench.reconcile(ValueError("no")) == Result()
    assert bench.written == []


def test_what_may_not_be_deleted_stops_nothing_else(bench: Bench) -> None:
    """An object is there that nobody wants, and one that is wanted was changed: it is put back all the same."""
    stray = deepcopy(next(each for each in bench.children() if each["kind"] == "Job"))
    stray["metadata"] |= {"name": "digits-stray", "uid": "uid-stray"}
    stray["metadata"]["labels"] |= {KEY_LABEL: "0" * 16}
    bench.put(stray)
    service = deepcopy(bench.child("Service", "digits"))
    service["spec"]["ports"] = []
    bench.put(service)
    assert bench.reconcile() == Result(failed=True)
    assert (bench.refused, bench.applied) == (["digits-stray"], ["digits"])
    stalled = bench.conditions()["Stalled"]
    assert (stalled["status"], stalled["reason"]) == ("True", "ApplyRefused")
    assert "deleting Job digits-stray: a policy keeps it" in stalled["message"]
