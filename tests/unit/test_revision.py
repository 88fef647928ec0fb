"""The record of a revision that served: what was kept is what is read, and what somebody wrote by hand does no harm."""

import base64
import zlib
from dataclasses import replace
from typing import Any

import pytest

from triton_operator.observed.history import History, State
from triton_operator.observed.revision import LARGEST_BYTES, Revision

TEMPLATE = {"spec": {"containers": [{"name": "tritonserver", "image": "example/server:1"}]}}
TOLD = {"serving": {"revision": "0a", "candidate": "onnx-fp32"}}
REVISION = Revision.of("0a", "onnx-fp32", "digits", "digits-1", TEMPLATE, TOLD)


def packed(text: bytes) -> Revision:
    return replace(REVISION, parts=base64.b64encode(zlib.compress(text)).decode())


def test_what_is_kept_is_what_is_read() -> None:
    history = History((State(("a",), revision=REVISION), State(("b",))), 2)
    assert History.from_json(history.to_json()) == history
    assert history.revisions == {"0a": REVISION}
    assert (REVISION.template, REVISION.status) == (TEMPLATE, TOLD)


def test_two_servers_of_a_key_have_names_that_tell_them_apart() -> None:
    newer = Revision.of("0a", "onnx-fp32", "digits", "digits-2", TEMPLATE, TOLD)
    history = History((State(("a",), revision=newer), State(("b",), revision=REVISION)))
    assert history.revisions == {"0a.2": newer, "0a.1": REVISION}
    assert history.state(newer).records == ("a",)


@pytest.mark.parametrize(
    "revision",
    [
        replace(REVISION, parts="no Base64"),
        replace(REVISION, parts=base64.b64encode(b"not compressed").decode()),
        packed(b"no JSON"),
        packed(b"[1, 2]"),
        packed(b"{}"),
        packed(b"[{}, {}]"),
        packed(b" " * (LARGEST_BYTES + 1) + b'[{"a": 1}, {}]'),
        packed(b"[" * 100_000),
    ],
)
def test_of_what_cannot_be_read_there_is_no_template(revision: Revision) -> None:
    assert revision.template is None
    assert revision.status == {}


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ({"a": 1}, {}),
        ({"spec": 1}, {"performance": "x"}),
        ({"spec": {"containers": 1}}, {"performance": {"measuredAt": 1}}),
        ({"spec": {"containers": ["x", {"name": "tritonserver"}]}}, {"performance": []}),
        ({"spec": {"containers": [{"name": "tritonserver", "image": {}}]}}, {"performance": None}),
    ],
    ids=str,
)
def test_a_forged_revision_tells_nothing(template: dict[str, Any], told: dict[str, Any]) -> None:
    revision = Revision.of("0a", "onnx-fp32", "digits", "digits-1", template, told)
    assert (revision.image, revision.measured_at) == ("", "")
