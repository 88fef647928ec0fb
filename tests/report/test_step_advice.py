"""A failure of a Python step, which has the reason of a model's failure, is not told as the network's."""

import pytest

from hack.docs import advice as generate_advice
from triton_converters.contract.reasons import Reason

OF_STEPS = (
    Reason.FRAMEWORK_FAILED,
    Reason.REFERENCE_NOT_REPRODUCIBLE,
    Reason.BATCHING_UNSUPPORTED,
    Reason.CONVERSION_UNSUPPORTED,
    Reason.REFERENCE_NOT_FINITE,
    Reason.INFERENCE_FAILED,
)
"""What the code of a step may end with, besides reasons that name the user's code."""


@pytest.mark.parametrize("reason", OF_STEPS)
def test_the_advice_names_the_step(reason: Reason) -> None:
    assert "Python step" in generate_advice.advice()[str(reason)]


@pytest.mark.parametrize("reason", OF_STEPS[:5])
def test_the_explanation_names_the_step(reason: Reason) -> None:
    assert "Python step" in reason.doc


def test_an_output_that_cannot_be_served_is_not_told_as_an_exception() -> None:
    assert "cannot be served" in Reason.FRAMEWORK_FAILED.doc
