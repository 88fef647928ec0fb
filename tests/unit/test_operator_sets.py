"""Which ONNX operator sets the server of a release reads."""

from itertools import pairwise

import pytest

from triton_converters.contract.conversion_requests import DEFAULT_OPSET
from triton_operator.candidates.operator_sets import RUNTIMES, refusal


@pytest.mark.parametrize(
    ("release", "newest"),
    [
        ("23.05", 19),
        ("24.02", 19),
        ("24.03", 20),
        ("24.10", 21),
        ("25.02", 21),
        ("25.03", 22),
        ("25.07", 22),
        ("25.08", 23),
        ("26.01", 23),
    ],
)
def test_the_newest_operator_set_of_a_release_is_read_and_the_next_is_not(release: str, newest: int) -> None:
    assert refusal(release, newest) is None
    message = refusal(release, newest + 1)
    assert message is not None
    assert f"release {release} reads ONNX operator sets up to {newest}, and the spec asks for {newest + 1}" in message


def test_the_advice_names_the_first_release_that_reads_it() -> None:
    message = refusal("24.10", 23)
    assert message is not None
    assert message.endswith("to at most 21, or spec.serving.image to an image of 25.08 or newer")
    message = refusal("26.07", 99)
    assert message is not None
    assert message.endswith("to at most 26")


@pytest.mark.parametrize("release", ["", "22.12", "19.10"])
def test_nothing_is_said_of_a_server_of_which_nothing_is_known(release: str) -> None:
    assert refusal(release, 99) is None


def test_later_runtimes_read_more_and_all_read_the_default() -> None:
    for older, newer in pairwise(RUNTIMES):
        assert older.since < newer.since
        assert (older.opset, older.ir_version) <= (newer.opset, newer.ir_version)
        assert older.opset < newer.opset
    assert RUNTIMES[0].opset >= DEFAULT_OPSET
