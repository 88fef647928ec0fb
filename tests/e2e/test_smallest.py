"""A stranger's first object has four lines of spec."""

from tests.e2e.state import State


def test_what_the_spec_leaves_out_is_found_and_chosen(smallest: State) -> None:
    assert smallest.status["serving"]["candidate"] == "onnx-fp32"
    (model,) = smallest.status["resolved"]["models"]
    assert [each["name"] for each in model["candidates"]] == ["onnx-fp32"]


def test_inputs_were_generated_and_the_status_says_so(smallest: State) -> None:
    assert smallest.says("Verified", "GeneratedInputs"), smallest.summary()


def test_open_dimensions_of_outputs_stay_open(smallest: State) -> None:
    (output,) = smallest.status["signature"]["outputs"]
    assert output["dims"] == [8, -1]
