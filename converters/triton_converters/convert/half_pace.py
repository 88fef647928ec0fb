"""Whether a processor computes a torch model in fp16 at a bearable pace.

Without fp16 arithmetic torch converts every element on its way: a 3D convolution then takes minutes instead of seconds.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason

SLOWDOWN = 20
"""How many times as long as in fp32 a run in fp16 may take; such a candidate is far behind every other one."""
PATIENCE_SECONDS = 30.0
"""A run that is shorter than this is never refused."""


def seconds(call: Callable[[], Any]) -> float:
    """Return how long one call takes, without gradients."""
    started = time.monotonic()
    with torch.no_grad():
        call()
    return time.monotonic() - started


def check(call: Callable[[], Any], exact_seconds: float, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Run the model in fp16 once; ``exact_seconds``: how long the same run takes in fp32.

    Raises StageError(ConversionUnsupported) if it has not ended after SLOWDOWN times as long. The run cannot be
    stopped; it ends with the process. Raises what ``call`` raises.
    """
    limit = max(patience_seconds, SLOWDOWN * exact_seconds)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            seconds(call)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit)
    if raised:
        raise raised[0]
    if thread.is_alive():
        message = (
            f"this processor is too slow in fp16: a run that takes {exact_seconds:.1f} s in fp32 took more than"
            f" {limit:.0f} s; use fp32, or format onnx, on a processor without fp16 arithmetic"
        )
        raise StageError(Reason.CONVERSION_UNSUPPORTED, message)
