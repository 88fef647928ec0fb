"""Passes that raise say so in the status once that lasts: what serves, and all that is known, stays as it was."""

import re
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from tests.simulation.moving import move
from tests.simulation.settled import settled
from tests.states.moments import CANARY, SERVING, asked_by_clients, idle
from triton_operator.kube.errors import ForbiddenError, InvalidError, NotLeaderError, ServerError, UnavailableError
from triton_operator.kube.kinds import kind_of
from triton_operator.names import KEY_LABEL
from triton_operator.planning.setbacks import TOLD_AFTER, apply_failed, report, request_failed
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
        self.calls: list[str] = []
        """What was asked of the API server, in its order."""
        self.refuses: Exception | None = None
        self._store = Store()
        self.version = 1
        self._key = Key("vision", "digits")
        for body in bodies:
            self.put(body)
        self.now = cluster.now
        self.metrics = Metrics()
        self._settings = cluster.settings
        self.restart()

    def restart(self) -> None:
        """The operator begins anew, and knows what the API server stores."""
        self._reconciler = Reconciler(self, self._store, self._settings, self.metrics, lambda: self.now)  # type: ignore[arg-type]  # a stand-in

    def put(self, body: Body) -> Body:
        self.version += 1
        body = deepcopy(body)
        body["metadata"] |= {"resourceVersion": str(self.version), "namespace": "vision"}
        self._store.put(kind_of(body), body)
        return body

    @property
    def owner(self) -> Body:
        body = self._store.owner(self._key)
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
        """One pass, in which looking at the cluster raises that error."""
        if error is None:
            return self._reconciler.reconcile(self._key)

        def fail(*_: Any, **__: Any) -> Any:
            raise error

        with self._monkeypatch.context() as patch:
            patch.setattr(reconcile_module, "observe", fail)
            return self._reconciler.reconcile(self._key)

    def fails(self, error: Exception) -> Result:
        """Passes that raise it, for as long as it takes until that is told; what the queue is told of the last one."""
        assert self.reconcile(error).failed
        self.now += TOLD_AFTER
        return self.reconcile(error)

    def said(self) -> dict[str, tuple[str, str]]:
        return {kind: (each["status"], each["reason"]) for kind, each in self.conditions().items()}

    def apply_status(self, body: Body) -> Body:
        self.calls.append("status")
        if self.refuses is not None:
            raise self.refuses
        assert body["metadata"]["resourceVersion"] == self.owner["metadata"]["resourceVersion"]
        self.written.append(body["status"])
        return self.put(self.owner | {"status": body["status"]})

    def delete(self, body: Body) -> None:
        self.calls.append("delete")
        self.refused.append(body["metadata"]["name"])
        raise ForbiddenError("a policy keeps it")

    def apply(self, body: Body) -> Body:
        self.calls.append("apply")
        self.applied.append(body["metadata"]["name"])
        old = self.child(body["kind"], body["metadata"]["name"])
        return self.put({**old, **body, "metadata": {**old["metadata"], **body["metadata"]}})

    def children(self) -> list[Body]:
        return self._store.children(self._key)

    def child(self, kind: str, name: str) -> Body:
        return next(each for each in self.children() if (each["kind"], each["metadata"]["name"]) == (kind, name))

    def create_event(self, body: Body) -> None:
        self.calls.append("event")
        self.events.append(body)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


@pytest.mark.parametrize(
    ("error", "reason", "words"),
    [
        (ValueError("no such stage\nand more"), "InternalError", "the operator failed: ValueError: no such stage. "),
        (ServerError("etcd: timed out"), "RequestFailed", "a request to the API server failed: etcd: timed out. "),
        (UnavailableError("no answer"), "RequestFailed", "a request to the API server failed: no answer. "),
        (
            ForbiddenError("cannot list nodes"),
            "RequestFailed",
            "a request to the API server failed: cannot list nodes. ",
        ),
    ],
)
def test_what_ends_every_pass_is_told_by_reconciling_alone(
    bench: Bench, error: Exception, reason: str, words: str
) -> None:
    before, said = bench.owner["status"], bench.said()
    for seconds in (0, 14.9):
        bench.now += timedelta(seconds=seconds)
        assert bench.reconcile(error) == Result(failed=True)
        assert bench.owner["status"] == before, "it may pass"
    bench.now += timedelta(seconds=0.1)
    assert bench.reconcile(error) == Result(failed=True)
    assert bench.said() == said | {"Reconciling": ("True", reason)}
    message = bench.conditions()["Reconciling"]["message"]
    assert message.startswith(words)
    assert "and more" not in message
    after = bench.owner["status"]
    assert [each for each in after["conditions"] if each["type"] != "Reconciling"] == [
        each for each in before["conditions"] if each["type"] != "Reconciling"
    ], "also the time since when it is so"
    assert {**after, "conditions": None} == {**before, "conditions": None}
    assert [(each["type"], each["reason"]) for each in bench.events] == [("Warning", reason)]


def test_an_alert_can_tell_which_object_it_is(bench: Bench) -> None:
    bench.fails(ServerError("etcd: timed out"))
    bench.reconcile(ServerError("etcd: timed out"))
    labels = {"namespace": "vision", "object": "digits", "reason": "RequestFailed"}
    assert bench.metrics.registry.get_sample_value("triton_operator_failing", labels) == 1
    bench.reconcile()
    bench.reconcile()
    assert bench.metrics.registry.get_sample_value("triton_operator_failing", labels) is None


def test_the_same_bug_again_writes_nothing(bench: Bench) -> None:
    for number in range(5):
        bench.fails(ValueError(f"<object at {hex(7000 + number)}> after {number}.5 s"))
    assert [len(bench.written), len(bench.events)] == [1, 1]
    bench.reconcile(KeyError("another"))
    assert "KeyError" in bench.conditions()["Reconciling"]["message"]
    assert [len(bench.written), len(bench.events)] == [2, 1]


def test_a_restart_does_not_wait_anew_once_it_was_told(bench: Bench) -> None:
    bench.fails(ServerError("etcd: timed out"))
    bench.restart()
    bench.reconcile(KeyError("another"))
    assert "KeyError" in bench.conditions()["Reconciling"]["message"]
    bench.reconcile()
    bench.restart()
    before = bench.owner["status"]
    bench.reconcile(KeyError("another"))
    assert bench.owner["status"] == before, "it may pass"


def test_a_pass_that_succeeds_clears_it(bench: Bench) -> None:
    before = bench.said()
    bench.fails(ValueError("no"))
    assert bench.said() != before
    assert bench.reconcile() == Result(again_after=0.0)
    assert bench.reconcile() == Result()
    assert bench.said() == before
    bench.now += TOLD_AFTER
    bench.reconcile(ValueError("no"))
    assert bench.said() == before, "the time begins anew"


def test_a_failure_after_an_invalid_spec_is_another_one(bench: Bench) -> None:
    bench.reconcile(ValueError("no"))
    body = bench.owner
    bench.put(body | {"spec": body["spec"] | {"selection": {"constraints": {"p99Latency": "soon"}}}})
    assert bench.reconcile() == Result()
    assert bench.said()["Stalled"] == ("True", "InvalidSpec")
    bench.put(bench.owner | {"spec": body["spec"]})
    bench.now += TOLD_AFTER
    bench.reconcile(ValueError("no"))
    assert bench.said()["Stalled"] == ("True", "InvalidSpec"), "it may pass"


def test_an_edit_that_no_pass_got_through_is_not_taken_for_served(bench: Bench) -> None:
    before = bench.owner["status"]["images"]
    bench.edit()
    bench.fails(ValueError("no"))
    assert bench.owner["status"]["observedGeneration"] == 2
    found = bench.conditions()
    assert (found["Ready"]["status"], found["Ready"]["observedGeneration"]) == ("True", 1), "of the spec before"
    assert (found["Reconciling"]["status"], found["Reconciling"]["observedGeneration"]) == ("True", 2)
    assert bench.owner["status"]["images"] == before
    assert len(bench.written) == 1


def test_an_edit_lifts_a_stall_though_no_pass_gets_through(bench: Bench) -> None:
    body = bench.owner
    for each in body["status"]["conditions"]:
        if each["type"] in SUMMARY:
            each |= {"status": str(each["type"] == "Stalled"), "reason": "SourceNotFound"}
    bench.put(body)
    bench.fails(ValueError("no"))
    said = bench.said()
    assert (said["Stalled"], said["Reconciling"]) == (("True", "SourceNotFound"), ("False", "InternalError"))
    bench.edit()
    bench.reconcile(ValueError("no"))
    said = bench.said()
    assert (said["Stalled"], said["Reconciling"]) == (("False", "NoStall"), ("True", "InternalError"))


def test_an_object_stays_done_while_only_something_newer_is_held_up(bench: Bench) -> None:
    body = bench.owner
    for each in body["status"]["conditions"]:
        if each["type"] == "UpToDate":
            each |= {"status": "False", "reason": "Running"}
    bench.put(body)
    before = bench.said()
    bench.fails(ValueError("no"))
    assert bench.said() == before | {"Reconciling": ("False", "InternalError")}


@pytest.mark.parametrize("reason", ["InternalError", "StatusRefused"])
def test_what_version_0_1_0_called_a_stall_is_none(bench: Bench, reason: str) -> None:
    body = bench.owner
    for each in body["status"]["conditions"]:
        if each["type"] in SUMMARY:
            each |= {"status": str(each["type"] == "Stalled"), "reason": reason}
    bench.put(body)
    bench.fails(ValueError("no"))
    said = bench.said()
    assert (said["Stalled"], said["Reconciling"]) == (("False", "NoStall"), ("True", "InternalError"))


def test_a_new_object_has_all_conditions(bench: Bench) -> None:
    bench.put(bench.owner | {"status": {"observedGeneration": -1}})
    bench.fails(ValueError("no"))
    assert bench.owner["status"]["observedGeneration"] == 1
    assert bench.said() == {
        "Ready": ("False", "InternalError"),
        "UpToDate": ("False", "InternalError"),
        "Reconciling": ("True", "InternalError"),
        "Stalled": ("False", "NoStall"),
    }


@pytest.fixture
def tries(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The reasons in each status that is written; only one that says that statuses are refused is taken."""
    tries: list[set[str]] = []
    take = Bench.apply_status

    def refuse(self: Bench, body: Body) -> Body:
        tries.append({each["reason"] for each in body["status"]["conditions"]})
        if "StatusRefused" not in tries[-1]:
            raise InvalidError("status.candidates: Too many: 19")
        return take(self, body)

    body = bench.owner
    body["status"]["conditions"] = []
    bench.put(body)
    monkeypatch.setattr(Bench, "apply_status", refuse)
    return tries


def test_a_status_that_the_api_server_refuses_is_told_of(bench: Bench, tries: list[set[str]]) -> None:
    assert bench.reconcile() == Result(failed=True)
    assert bench.written == []
    for _ in range(3):
        bench.now += TOLD_AFTER
        assert bench.reconcile() == Result(failed=True)
    told = bench.conditions()["Reconciling"]
    assert (told["status"], told["reason"], len(bench.written)) == ("True", "StatusRefused", 1)
    assert "the API server refuses the status of this object: status.candidates: Too many: 19. " in told["message"]
    count = bench.metrics.registry.get_sample_value(
        "triton_operator_reconcile_errors_total", {"reason": "StatusRefused"}
    )
    assert count == 4
    assert [each["reason"] for each in bench.events] == ["StatusRefused"]


def test_a_pass_writes_one_status_also_where_that_is_refused(bench: Bench, tries: list[set[str]]) -> None:
    """The passes take turns: one tries its own status again, and the next one tells of the refusal."""
    counts = []
    for _ in range(6):
        bench.reconcile()
        counts.append(len(tries))
        bench.now += TOLD_AFTER
    assert counts == [1, 2, 3, 3, 4, 4], "and what is told already is not written again"


@pytest.mark.parametrize("error", [ServerError("etcd: timed out"), UnavailableError("no answer")])
def test_a_pass_tries_one_status_also_where_that_gets_no_answer(bench: Bench, error: Exception) -> None:
    bench.edit()
    bench.refuses = error
    assert bench.reconcile().failed
    bench.now += TOLD_AFTER
    bench.calls.clear()
    assert bench.reconcile().failed
    assert bench.calls == ["status"]
    counted = {"reason": type(error).__name__.removesuffix("Error")}
    assert bench.metrics.registry.get_sample_value("triton_operator_reconcile_errors_total", counted) == 2
    bench.refuses = None
    bench.reconcile()
    assert bench.reconcile() == Result()


def test_once_the_status_is_taken_the_refusal_is_over(
    bench: Bench, tries: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.reconcile()
    bench.now += TOLD_AFTER
    bench.reconcile()
    monkeypatch.undo()
    assert bench.reconcile() == Result(again_after=0.0)
    assert bench.reconcile() == Result()
    assert bench.said()["Reconciling"] == ("False", "Ready")
    bench.now += TOLD_AFTER
    bench.reconcile(ValueError("no"))
    assert bench.said()["Reconciling"] == ("False", "Ready"), "the time begins anew"


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (InvalidError("no"), "its status cannot report the error: StatusRefusedError: no"),
        (UnavailableError("no answer"), "its status cannot report the error: UnwrittenStatusError: no answer"),
        (TypeError("a bug in the bug"), "its status cannot report the error because of another bug\nTraceback"),
    ],
)
def test_where_the_status_cannot_be_written_the_log_says_so(
    bench: Bench, caplog: pytest.LogCaptureFixture, refusal: Exception, words: str
) -> None:
    bench.refuses = refusal
    assert bench.fails(ValueError("no")) == Result(failed=True)
    assert re.search("ValueError: no", caplog.text)
    assert words in caplog.text
    assert bench.written == bench.events == []


def test_a_long_error_is_cut(bench: Bench) -> None:
    bench.fails(ValueError("x" * 10_000))
    assert len(bench.conditions()["Reconciling"]["message"]) < 600
    assert bench.conditions()["Reconciling"]["message"].endswith("in the operator's log")


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
    assert bench.calls == ["delete", "apply", "status", "event"], "objects come first, then one status"
    stalled = bench.conditions()["Stalled"]
    assert (stalled["status"], stalled["reason"]) == ("True", "ApplyRefused")
    assert "deleting Job digits-stray: a policy keeps it" in stalled["message"]


def test_a_failure_is_logged_and_counted_although_the_pass_ends_early_because_it_wrote(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """One object may not be deleted; the NetworkPolicy is put back, and the next pass goes on from there."""
    stray = deepcopy(next(each for each in bench.children() if each["kind"] == "Job"))
    stray["metadata"] |= {"name": "digits-stray", "uid": "uid-stray"}
    stray["metadata"]["labels"] |= {KEY_LABEL: "0" * 16}
    bench.put(stray)
    policy = deepcopy(next(each for each in bench.children() if each["kind"] == "NetworkPolicy"))
    policy["spec"]["policyTypes"] = []
    bench.put(policy)
    assert bench.reconcile() == Result(again_after=0.0)
    assert bench.applied == [policy["metadata"]["name"]]
    assert "vision/digits: deleting Job digits-stray: a policy keeps it" in caplog.text
    count = bench.metrics.registry.get_sample_value("triton_operator_reconcile_errors_total", {"reason": "Forbidden"})
    assert count == 1


def test_a_replica_that_leads_again_waits_before_it_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    before = bench.owner["status"]
    bench.reconcile(NotLeaderError("another replica works"))
    bench.now += timedelta(hours=3)
    bench.reconcile(ServerError("etcd: timed out"))
    assert bench.owner["status"] == before, "it may pass"


@pytest.mark.parametrize("fails", [False, True])
def test_an_object_without_a_record_stays_ready_after_passes_that_failed(fails: bool) -> None:
    cluster = SERVING.cluster()
    del cluster.objects["ConfigMap", "digits-results"]["data"]["soak.active"]
    if fails:
        told = report(cluster.body(), request_failed(ValueError("forbidden")), None, cluster.now)
        cluster.status = told.status.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    move(cluster)
    cluster.run(8)
    assert cluster.condition("UpToDate")["status"] == "False"
    assert cluster.condition("Ready")["status"] == "True"


def test_an_object_whose_canary_of_newer_files_is_held_stays_done_while_passes_fail() -> None:
    cluster = CANARY.settled().then(asked_by_clients, 0).run(10).cluster()
    cluster.counters = idle
    move(cluster)
    cluster.until(lambda each: each.has("Canary", "UpToDate"))
    for _ in range(40):
        cluster.now += timedelta(minutes=5)
        cluster.run(6)
        if cluster.has("RolloutHeld", "UpToDate"):
            break
    assert cluster.condition("UpToDate")["reason"] == "RolloutHeld"
    with_plan = report(cluster.body(), apply_failed("no"), cluster.intent(), cluster.now).status
    without = report(cluster.body(), request_failed(ValueError("etcd")), None, cluster.now).status
    for status in (with_plan, without):
        found = {each.type: each.status for each in status.conditions}
        assert (found["Ready"], found["Reconciling"]) == ("True", "False")
