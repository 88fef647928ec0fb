"""What to do about a failure that is not tried again by itself says how to have it tried again."""

import copy

import pytest

from tests.report.subjects import golden
from triton_converters.contract.failure_reasons import FAILURES
from triton_converters.contract.reasons import Reason
from triton_operator.jobs.transient import TRANSIENT
from triton_plugin.reading.subject import parse
from triton_plugin.telling.advice import advice
from triton_plugin.telling.explain import explain

VERSION, RETRY = "set a new spec.source.version", "kubectl triton retry NAME"
OUTSIDE = {
    Reason.CLAIM_UNUSABLE,
    Reason.CONSTRAINTS_NOT_MET,
    Reason.GPU_UNAVAILABLE,
    Reason.INDEX_UNTRUSTED,
    Reason.MEASUREMENT_FAILED,
    Reason.PERFORMANCE_REGRESSED,
    Reason.REPOSITORY_DAMAGED,
    Reason.REPOSITORY_UNKNOWN,
    Reason.SERVER_CRASHED,
    Reason.SOAK_FAILED,
}
"""Something outside the object changes: a claim, a node, an index, a server."""
EITHER = {Reason.CRASHED, Reason.DIGEST_MISMATCH, Reason.PACKAGE_NOT_FOUND, Reason.RESULT_MISSING}
SPEC = {
    Reason.CONVERSION_UNSUPPORTED,
    Reason.FORMAT_NOT_SERVED,
    Reason.GAINS_NOTHING,
    Reason.INFERENCE_FAILED,
    Reason.INVALID_SPEC,
    Reason.MODEL_LOAD_FAILED,
    Reason.OUTPUTS_NOT_FINITE,
    Reason.OUT_OF_MEMORY,
    Reason.PRECISION_MISMATCH,
    Reason.TENSORRT_UNAVAILABLE,
}
"""A field of the spec changes, which is a new try."""
LASTING = sorted((FAILURES | OUTSIDE | {Reason.THRESHOLD_NOT_MET}) - set(TRANSIENT))
"""The failures of Jobs, and of figures, that last. By default files of the source change, at which the operator does
not look again by itself."""


@pytest.mark.parametrize("reason", LASTING)
def test_the_advice_says_how_it_is_tried_again(reason: Reason) -> None:
    text = advice(str(reason))
    assert VERSION in text or reason in OUTSIDE | SPEC, text
    assert RETRY in text or reason not in OUTSIDE | EITHER, text


@pytest.mark.parametrize("field", ["mountPath", "scratchPaths"])
def test_a_step_that_failed_at_a_path_that_is_not_there_is_told_of_the_fields_for_it(field: str) -> None:
    assert field in advice("UserCodeFailed")


@pytest.mark.parametrize(
    ("sha256", "words"),
    [("", VERSION), ("0" * 64, "set spec.source.sha256 to the new digest")],
    ids=["plain", "pinned"],
)
def test_an_object_that_names_a_digest_needs_the_new_one(sha256: str, words: str) -> None:
    body = copy.deepcopy(golden("profiling")[0])
    body["spec"]["source"] |= {"sha256": sha256} if sha256 else {}
    verified = next(each for each in body["status"]["conditions"] if each["type"] == "Verified")
    verified |= {"status": "False", "reason": "UserCodeFailed", "message": "model.py, line 3: no"}
    text = explain(parse(body, None))
    assert f", then {words}." in text
    assert (VERSION in text) == (words == VERSION)
