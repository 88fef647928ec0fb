"""Every format and precision serves the framework's answers; tampered files are caught by the gates."""

import re

import pytest

from tests.conftest import Fault
from tests.e2e.applied import stage_of
from tests.e2e.conversion import MUTANTS, Formats, Served, Shapes

ANOTHER_FILE = ("ModelLoadFailed", "are not those that were inspected after the conversion")
"""A TorchScript file is never loaded to look at it, so its digest is compared."""
CAUGHT = {
    "onnx-fp32": ("OutputsDiffer", "OUTPUT__"),
    "trace-fp32": ANOTHER_FILE,
    "script-fp32": ANOTHER_FILE,
    "onnx-fp16": ("PrecisionMismatch", "(?i)fp16|float16|fp32|float32"),
    "trace-fp16": ANOTHER_FILE,
}
TOLERANCE = {"fp32": 1e-4, "fp16": 2e-2}


def passed(served: Served) -> dict[str, str]:
    """The state of every candidate that passed its gates."""
    states = {name: each["state"] for name, each in served.state.candidates.items()}
    return {name: state for name, state in states.items() if state in ("Passed", "Selected")}


def assert_close(served: Served) -> None:
    """What the Service answers is within the chosen candidate's tolerance of the framework."""
    precision = served.state.status["serving"]["precision"]
    assert max(served.compared["worst"].values()) <= TOLERANCE[precision], served.state.summary()


def test_all_formats_in_both_precisions_pass(formats: Formats) -> None:
    assert passed(formats.served).keys() == formats.served.state.candidates.keys(), formats.served.state.summary()
    assert formats.served.state.condition("Verified")["reason"] == "NumericalOnly"
    signature = formats.served.state.status["signature"]
    assert [(each["name"], each["dataType"], each["dims"]) for each in signature["inputs"]] == [
        ("INPUT__0", "FP32", [8]),
        ("INPUT__1", "INT64", [3]),
    ]
    assert [each["dims"] for each in signature["outputs"]] == [[4], [4]]
    assert_close(formats.served)


def test_halves_are_really_halves(formats: Formats) -> None:
    """fp16 answers differ from fp32 ones by more than fp32 rounding: the precision is not a label."""
    errors = {name: float(each["maxAbsoluteError"]) for name, each in formats.served.state.candidates.items()}
    assert max(errors[name] for name in errors if name.endswith("fp32")) < 1e-5, errors
    assert min(errors[name] for name in errors if name.endswith("fp16")) > 1e-5, errors


@pytest.mark.parametrize("candidate", MUTANTS)
def test_a_mutant_on_the_claim_is_caught(candidate: str, formats: Formats, fault: Fault) -> None:
    reason, message = CAUGHT[candidate]
    fault(f"converted file of {candidate} changed on the claim", 1, reason)
    found = formats.mutants.after.candidates[candidate]
    assert (found["state"], found["reason"]) == ("Failed", reason), formats.mutants.after.summary()
    assert re.search(message, found["message"]), found["message"]


def test_the_untouched_candidate_serves(formats: Formats) -> None:
    after = formats.mutants.after
    assert after.holds("Ready"), after.summary()
    assert after.status["serving"]["candidate"] == "script-fp16"
    assert after.candidates["script-fp16"]["revision"] == formats.mutants.before.candidates["script-fp16"]["revision"]
    stages = {stage_of(job) for job in formats.mutants.new_jobs}
    assert "profile" in stages
    assert not stages & {"source", "reference", "convert"}, "what was converted is not converted again"


def test_the_torchscript_exporter(shapes: Shapes) -> None:
    assert passed(shapes.torchscript).keys() == {"onnx-fp32", "onnx-fp16"}, shapes.torchscript.state.summary()
    assert_close(shapes.torchscript)


def test_a_model_without_a_batch_dimension(shapes: Shapes) -> None:
    served = shapes.ranking
    assert passed(served).keys() == {"onnx-fp32", "ts-script-fp32"}, served.state.summary()
    assert served.state.status["signature"]["maxBatchSize"] == 0
    assert served.state.status["signature"]["inputs"][0]["dims"] == [5, 3]
    assert served.compared["shapes"] == {"OUTPUT__0": [5]}
    assert_close(served)


def test_dimensions_that_vary(shapes: Shapes) -> None:
    served = shapes.sequence
    assert passed(served).keys() == {"onnx-fp32", "ts-trace-fp32"}, served.state.summary()
    signature = served.state.status["signature"]
    assert signature["inputs"][0]["dims"] == [-1, 6]
    assert [each["dims"] for each in signature["outputs"]] == [[-1, 4], [4]]
    assert served.compared["shapes"] == {"OUTPUT__0": [8, 7, 4], "OUTPUT__1": [8, 4]}
    assert {row["inputShape"] for row in served.state.status["performance"]["online"]} == {"INPUT__0:7x6"}
    assert_close(served)


def test_a_file_that_tritonserver_refuses(shapes: Shapes, fault: Fault) -> None:
    fault("converted file cut off on the claim", 1, "ModelLoadFailed; the other candidate serves")
    after = shapes.corrupted.after
    assert after.candidates["onnx-fp32"]["state"] == "Failed", after.summary()
    assert after.candidates["onnx-fp32"]["reason"] == "ModelLoadFailed", after.summary()
    assert "recommender" in after.candidates["onnx-fp32"]["message"]
    assert after.holds("Ready"), "the other candidate goes on"
    assert after.status["serving"]["candidate"] == "onnx-fp16"
