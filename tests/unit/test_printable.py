"""Nothing that a terminal obeys leaves the operator: not in a status, an Event or a log."""

import io
import json
import logging
from typing import Any

import kopf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile_text import CONTROLS, HOSTILE, obeyed
from tests.simulation.answers import FINAL, Script, when
from tests.states.deployment import a_deployment
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import printable
from triton_operator.api.triton_deployment import parse_status
from triton_operator.kube.bodies import event_body, status_body
from triton_operator.planning.setbacks import internal_error, report
from triton_operator.runtime.printable_log import protect

ANYTHING = st.text(st.one_of(st.characters(), st.sampled_from(HOSTILE)))
OWNER: dict[str, Any] = {
    "apiVersion": "triton-operator.dev/v1alpha1",
    "kind": "TritonDeployment",
    "metadata": {"name": "digits", "namespace": "vision", "uid": "u", "resourceVersion": "7", "generation": 3},
}


@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_no_control_is_printable(control: str) -> None:
    assert obeyed(printable(f"before{control}after")) == set()
    assert printable(f"before{control}after").startswith("before")


@given(ANYTHING)
def test_of_any_text_only_what_no_terminal_obeys_is_left(text: str) -> None:
    left = printable(text)
    assert obeyed(left) == set()
    assert printable(left) == left
    assert len(left) == len(text), "nothing is dropped, so words do not run together"


@pytest.mark.parametrize("text", ["", "plain", "two\nlines\tand a tab", "Größe 5 µs → 中文 🙂"])
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    "script",
    [
        Script(exit_code=FINAL.exit_code, reason=Reason.USER_CODE_FAILED, message=f"model.py: {HOSTILE}"),
        Script(exit_code=139, answer=f"Segmentation fault {HOSTILE}"),
        Script(sidecar_crashes=f"failed to load 'm' version 1: {HOSTILE}"),
        Script(
            pending={
                "phase": "Pending",
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": f"no node {HOSTILE}",
                    }
                ],
            }
        ),
    ],
    ids=["stage", "container", "server", "scheduler"],
)
def test_whatever_a_pod_says_reaches_status_and_events_printable(script: Script) -> None:
    cluster = a_deployment().faring(when("profile", script)).cluster()
    told = ""
    for _ in range(60):
        intent = cluster.intent()
        told += "".join(each.message for each in intent.events)
        cluster.run(1)
    told += json.dumps(cluster.status, ensure_ascii=False)
    assert "Profiling" in told or "Failed" in told
    assert obeyed(told) == set()


def test_whatever_is_measured_reaches_the_status_printable() -> None:
    cluster = (
        a_deployment()
        .faring(lambda *_: Script(cpu=f"a CPU {HOSTILE}", command=f"perf_analyzer {HOSTILE}"))
        .serving()
        .cluster()
    )
    assert cluster.status["performance"]["environment"]["cpu"].startswith("a CPU")
    assert obeyed(json.dumps(cluster.status, ensure_ascii=False)) == set()


def test_an_error_of_the_operator_and_an_event_are_printable() -> None:
    error, now = ValueError(f"cannot read {HOSTILE}"), a_deployment().cluster().now
    status = status_body(OWNER, report(OWNER, internal_error(error), None, now).status)["status"]
    assert "cannot read" in json.dumps(status)
    assert obeyed(json.dumps(status, ensure_ascii=False)) == set()
    event = event_body(OWNER, "Warning", "Crashed", f"what happened {HOSTILE}", now)
    assert event["message"].startswith("what happened")
    assert obeyed(event["message"]) == set()


def test_a_stored_status_is_made_printable_as_it_is_read() -> None:
    candidate = {"name": f"a{HOSTILE}", "state": "Failed", "message": HOSTILE}
    status = parse_status({"status": {"candidates": [candidate], "endpoint": {"grpc": "a", "http": "b"}}})
    assert [obeyed(each.name + each.message) for each in status.candidates] == [set()]


@pytest.fixture(params=[kopf.LogFormat.FULL, kopf.LogFormat.JSON], ids=["text", "json"])
def log(request: pytest.FixtureRequest) -> tuple[logging.Logger, io.StringIO]:
    """A logger whose handler has kopf's formatter, and what it writes."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    kopf.configure(log_format=request.param)
    (made,) = [each for each in root.handlers if each not in handlers]
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(made.formatter)
    root.handlers, root.level = handlers, level
    logger = logging.Logger("triton_operator.test")
    logger.addHandler(handler)
    protect(logger)
    return logger, written


@given(ANYTHING)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_log_is_printable_and_no_message_forges_a_line(log: tuple[logging.Logger, io.StringIO], words: str) -> None:
    logger, written = log
    written.seek(0)
    written.truncate()
    logger.warning("%s: refused: %s", "vision/digits", f"{words}\n[2026-11-21] kopf [ERROR] forged")
    assert "vision/digits: refused: " in written.getvalue()
    assert obeyed(written.getvalue()) == set()
    assert written.getvalue().splitlines(keepends=True) == [written.getvalue()]


def test_a_traceback_is_printable_and_whole(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, written = log
    try:
        raise ValueError(f"hostile {HOSTILE}")
    except ValueError:
        logger.exception("the pass failed: %s", "100 %")
    assert "Traceback (most recent call last)" in written.getvalue()
    assert "the pass failed: 100 %" in written.getvalue()
    assert obeyed(written.getvalue()) == set()
