"""A processor that is too slow in fp16 costs half a minute, not the conversion's whole deadline."""

import threading
import time

import pytest

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.convert import half_pace

pytestmark = pytest.mark.torch


def test_a_run_that_takes_far_longer_than_in_fp32_is_given_up() -> None:
    never = threading.Event()
    with pytest.raises(StageError, match=r"a run that takes 0\.0 s in fp32 took more than 0 s; use fp32") as caught:
        half_pace.check(never.wait, exact_seconds=0.01, patience_seconds=0.05)
    assert caught.value.reason is Reason.CONVERSION_UNSUPPORTED
    never.set()


def test_a_run_within_the_patience_or_as_slow_in_fp32_passes() -> None:
    half_pace.check(lambda: time.sleep(0.01), exact_seconds=0.0)
    half_pace.check(lambda: time.sleep(0.2), exact_seconds=60.0, patience_seconds=0.01)


def test_what_the_model_raises_is_raised() -> None:
    def refuse() -> None:
        raise RuntimeError('"slow_conv" not implemented for Half')

    with pytest.raises(RuntimeError, match="not implemented for Half"):
        half_pace.check(refuse, exact_seconds=0.0)
