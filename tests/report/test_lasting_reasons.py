"""What to do about a failure that is not tried again by itself says how to have it tried again."""

import copy

import pytest

from tests.report.subjects import golden
from triton_converters.contract.failure_reasons import FAILURES
from triton_converters.contract.reasons import Reason
from triton_operator.jobs.passing import PASSING
from triton_plugin.reading.subject import parse
from triton_plugin.telling.advice import advice
from triton_plugin.telling.explain import explain

VERSION, RETRY = "set a new spec.source.version", "kubectl triton retry NAME"
SPEC: tuple[str, ...] = ()
LASTING: dict[Reason, tuple[str, ...]] = {
    # Files of the source change, which the operator does not look at again by itself.
    Reason.CHECKPOINT_INVALID: (VERSION,),
    Reason.CONVERSION_FAILED: (VERSION,),
    Reason.DATALOADER_EMPTY: (VERSION,),
    Reason.DATALOADER_INVALID: (VERSION,),
    Reason.ENTRYPOINT_INVALID: (VERSION,),
    Reason.ENTRYPOINT_MISSING: (VERSION,),
    Reason.FORMAT_NOT_FOUND: (VERSION,),
    Reason.FRAMEWORK_FAILED: (VERSION,),
    Reason.BATCHING_UNSUPPORTED: (VERSION,),
    Reason.INPUTS_NOT_GENERATED: (VERSION,),
    Reason.LABELS_MISSING: (VERSION,),
    Reason.METRIC_FAILED: (VERSION,),
    Reason.METRIC_MISSING: (VERSION,),
    Reason.MODEL_CONFIG_MISMATCH: (VERSION,),
    Reason.MODEL_CONFIG_REFUSED: (VERSION,),
    Reason.MODEL_IN_TRAINING_MODE: (VERSION,),
    Reason.NAMING_UNSUPPORTED: (VERSION,),
    Reason.OUTPUTS_DIFFER: (VERSION,),
    Reason.PACKAGE_CONFLICT: (VERSION,),
    Reason.PICKLE_REFUSED: (VERSION,),
    Reason.REFERENCE_CONSTANT: (VERSION,),
    Reason.REFERENCE_NOT_FINITE: (VERSION,),
    Reason.REFERENCE_NOT_REPRODUCIBLE: (VERSION,),
    Reason.REQUIREMENTS_INVALID: (VERSION,),
    Reason.REQUIREMENTS_MISSING: (VERSION,),
    Reason.SIGNATURE_MISMATCH: (VERSION,),
    Reason.SOURCE_INVALID: (VERSION,),
    Reason.THRESHOLD_NOT_MET: (VERSION,),
    Reason.USER_CODE_EXITED: (VERSION,),
    Reason.USER_CODE_FAILED: (VERSION,),
    Reason.WEIGHTS_WITHOUT_MODEL: (VERSION,),
    # Something outside the object changes: a claim, a node, an index, a server.
    Reason.CLAIM_NOT_WRITABLE: (RETRY,),
    Reason.CONSTRAINTS_NOT_MET: (RETRY,),
    Reason.DIGEST_MISMATCH: (RETRY,),
    Reason.GPU_UNAVAILABLE: (RETRY,),
    Reason.INDEX_UNTRUSTED: (RETRY,),
    Reason.MEASUREMENT_FAILED: (RETRY,),
    Reason.PERFORMANCE_REGRESSED: (RETRY,),
    Reason.REPOSITORY_DAMAGED: (RETRY,),
    Reason.REPOSITORY_UNKNOWN: (RETRY,),
    Reason.SERVER_CRASHED: (RETRY,),
    Reason.SOAK_FAILED: (RETRY,),
    # Either.
    Reason.CRASHED: (VERSION, RETRY),
    Reason.PACKAGE_HASH_MISMATCH: (VERSION, RETRY),
    Reason.PACKAGE_NOT_FOUND: (VERSION, RETRY),
    Reason.RESULT_MISSING: (VERSION, RETRY),
    # A field of the spec changes, which is a new try.
    Reason.ACCELERATOR_UNUSED: SPEC,
    Reason.ARGUMENTS_INVALID: SPEC,
    Reason.CONVERSION_UNSUPPORTED: SPEC,
    Reason.INFERENCE_FAILED: SPEC,
    Reason.INVALID_SPEC: SPEC,
    Reason.MODEL_LOAD_FAILED: SPEC,
    Reason.OUTPUTS_NOT_FINITE: SPEC,
    Reason.OUT_OF_MEMORY: SPEC,
    Reason.PRECISION_MISMATCH: SPEC,
    Reason.QUANTIZATION_GAINS_NOTHING: SPEC,
    Reason.TENSORRT_UNAVAILABLE: SPEC,
    Reason.TENSORRT_VERSION_MISMATCH: SPEC,
}
"""What the advice must say, by the reason of each failure of a Job, or of figures, that lasts."""


def test_the_table_has_every_failure_that_lasts() -> None:
    assert FAILURES - set(PASSING) - set(LASTING) == set()
    assert set(LASTING) & set(PASSING) == set()


@pytest.mark.parametrize("reason", LASTING)
def test_the_advice_says_how_it_is_tried_again(reason: Reason) -> None:
    text = advice(str(reason))
    assert [words for words in LASTING[reason] if words not in text] == [], text


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
