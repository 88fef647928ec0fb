"""A stranger's first object has four lines of spec."""

from tests.e2e.state import State


def test_what_the_spec_leaves_out_is_found_and_chosen(smallest_object: State) -> None:
    assert smallest_object.status["serving"]["candidate"] == "onnx-fp32"
    (model,) = smallest_object.status["resolved"]["models"]
    assert [each["name"] for each in model["candidates"]] == ["onnx-fp32"]


def test_inputs_were_generated_and_the_status_says_so(smallest_object: State) -> None:
    assert smallest_object.condition("Verified")["reason"] == "GeneratedInputs", smallest_object.summary()


def test_open_dimensions_of_outputs_stay_open(smallest_object: State) -> None:
    (output,) = smallest_object.status["signature"]["outputs"]
    assert output["dims"] == [8, -1]
