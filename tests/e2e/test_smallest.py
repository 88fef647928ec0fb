"""A stranger's first object has four lines of spec."""

from tests.e2e.state import State
from tests.e2e.suite import Suite


def test_what_the_spec_leaves_out_is_found_and_chosen(smallest_object: State) -> None:
    assert smallest_object.status["serving"]["candidate"] == "onnx-fp32"
    (model,) = smallest_object.status["resolved"]["models"]
    assert [each["name"] for each in model["candidates"]] == ["onnx-fp32"]


def test_inputs_were_generated_and_the_status_says_so(smallest_object: State) -> None:
    assert smallest_object.condition("Verified")["reason"] == "GeneratedInputs", smallest_object.summary()


def test_open_dimensions_of_outputs_stay_open(smallest_object: State) -> None:
    (output,) = smallest_object.status["signature"]["outputs"]
    assert output["dims"] == [8, -1]


def test_events_tell_the_story_in_order(suite: Suite, smallest_object: State) -> None:
    selector = f"--field-selector=involvedObject.kind=TritonDeployment,involvedObject.name={smallest_object.name}"
    events = sorted(suite.busy.items("events", selector), key=lambda each: int(each["metadata"]["resourceVersion"]))
    reasons = [each["reason"] for each in events]
    # Of the last two, one status tells: Available is False until the Service leads to the first revision.
    story = ["Resolved", "Converted", "GeneratedInputs", "Selected", "Measured", "Ready", "Available"]
    # A server that a busy machine lets wait is Available more than once.
    assert [each for each in dict.fromkeys(reasons) if each in story] == story, reasons
    assert len(reasons) <= 20, f"an object that becomes ready at once needs few events: {reasons}"
