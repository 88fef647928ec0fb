import pytest
from triton_cpu.config import ModelError
from triton_cpu.naming import input_positions, output_positions


@pytest.mark.parametrize(
    ("names", "positions"),
    [
        (["right", "left"], [1, 0]),  # forward's arguments
        (["INPUT__1", "INPUT__0"], [1, 0]),  # NAME__INDEX
        (["left", "INPUT__1"], [0, 1]),  # one is neither: the order of config.pbtxt
        (["b", "a"], [0, 1]),
        (["b__x", "a__y"], [0, 1]),
        (["a__1", "b"], [0, 1]),
        (["A__", "A__1"], [0, 1]),  # an empty index is 0, as atoi says
    ],
)
def test_inputs(names: list[str], positions: list[int]) -> None:
    assert input_positions(names, ["left", "right"]) == positions


@pytest.mark.parametrize("names", [["IN__0", "IN__0"], ["IN__1", "IN__2"]])
def test_each_argument_is_named_once(names: list[str]) -> None:
    with pytest.raises(ModelError, match="each position must be named once"):
        input_positions(names, ["left", "right"])


def test_outputs_follow_their_index_or_the_order() -> None:
    assert output_positions(["OUT__1", "OUT__0"], 2) == [1, 0]
    assert output_positions(["OUT__1"], None) == [1]
    assert output_positions(["scores", "boxes"], 2) == [0, 1]


def test_output_index_out_of_range() -> None:
    with pytest.raises(ModelError, match=r"The output OUT__2 .* This model has 2 outputs"):
        output_positions(["OUT__0", "OUT__2"], 2)
