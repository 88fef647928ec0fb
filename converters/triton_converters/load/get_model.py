"""The user's ``get_model``, which a Python file of PyTorch or Keras has: its call, and what a broken checkpoint is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from triton_converters.contract.conversion_requests import ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.user.user_code import CHECKPOINT_ARGUMENTS, call, location

Explain = Callable[[BaseException, str, str], StageError | None]
"""Returns the error of what the user's code raised because of its checkpoint, given where it did, and the checkpoint in
words; None: it raised it for something else."""


def returned(source: Path, model: ModelCode, output_format: str, explain: Explain) -> Any:
    """Return what get_model returns; ``output_format`` is offered to it as an argument.

    Raises StageError: what ``explain`` returns, and what ``user_code.call`` raises.
    """
    entrypoint = model.entrypoint
    batch_size = max(1, model.max_batch_size)
    stage: dict[str, int | str] = {"precision": "fp32", "output_format": output_format, "batch_size": batch_size}
    try:
        return call(source, entrypoint, "get_model", stage)
    except StageError as error:
        cause = error.__cause__
        if error.reason is not Reason.USER_CODE_FAILED or cause is None:
            raise
        named = [value for name, value in entrypoint.arguments.items() if name in CHECKPOINT_ARGUMENTS]
        checkpoint = " ".join(["the checkpoint", *named])
        raise explain(cause, location(cause, source, entrypoint.path), checkpoint) or error from cause
