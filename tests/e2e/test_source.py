"""Where the source comes from makes no difference; suspended, nothing is done with it; a move of it disturbs nobody."""

from tests.e2e.configmap import FromConfigMap
from tests.e2e.suite import Suite


def test_a_suspended_object_starts_no_job(from_configmap: FromConfigMap) -> None:
    assert from_configmap.jobs_while_suspended == ()
    assert from_configmap.suspended.says("SourceResolved", "Suspended"), from_configmap.suspended.summary()


def test_a_configmap_serves_as_well_as_a_claim(from_configmap: FromConfigMap) -> None:
    assert from_configmap.ready.status["source"]["digest"] == f"sha256:{from_configmap.digest}"
    assert from_configmap.ready.status["serving"]["candidate"] == "onnx-fp32"


def test_a_source_that_moves_leaves_the_object_ready(from_configmap: FromConfigMap) -> None:
    states, before = from_configmap.moved, from_configmap.ready
    assert [state.summary() for state in states if not state.holds("Ready")] == []
    assert [state.holds("UpToDate") for state in states][:: len(states) - 1] == [False, True]
    assert states[0].revision == before.revision
    assert states[-1].revision not in ("", before.revision)


def test_a_source_that_cannot_be_loaded_leaves_the_object_ready(from_configmap: FromConfigMap) -> None:
    states = from_configmap.broken
    assert [state.summary() for state in states if not state.holds("Ready") or state.holds("Stalled")] == []
    assert "half of the file is missing" in states[-1].condition("UpToDate")["message"]
    assert states[-1].revision == from_configmap.moved[-1].revision


def test_no_request_failed_while_the_source_moved(from_configmap: FromConfigMap, suite: Suite) -> None:
    answers = suite.prober.answers("from-configmap", from_configmap.since, from_configmap.until)
    assert answers.failures == ()
    assert answers.answered > 50
