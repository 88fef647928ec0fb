"""The names of a model's inputs and outputs, as the user's get_model gives them."""

import re
from typing import Any

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/-]{0,127}")
FORM = '(model, {"inputs": [names], "outputs": [names]})'


def tensor_names(given: Any, path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return inputs and outputs in the model's order; ``given``: the second item that get_model returned.

    Raises StageError(EntrypointInvalid) if it does not have that form, or if names are not distinct and plain.
    """
    if not isinstance(given, dict) or not all(
        isinstance(given.get(kind), list | tuple) for kind in ("inputs", "outputs")
    ):
        raise _invalid(f"{path}: get_model must return {FORM}, but the second item is {given!r:.200}")
    inputs, outputs = tuple(given["inputs"]), tuple(given["outputs"])
    every = inputs + outputs
    if not inputs or not outputs:
        raise _invalid(
            f"{path}: get_model names {len(inputs)} inputs and {len(outputs)} outputs; name at least one of each"
        )
    wrong = [name for name in every if not isinstance(name, str) or not NAME.fullmatch(name) or every.count(name) > 1]
    if wrong:
        raise _invalid(
            f"{path}: the tensor name {wrong[0]!r:.200} is there twice or does not match {NAME.pattern}; rename it"
        )
    return inputs, outputs


def _invalid(message: str) -> StageError:
    return StageError(Reason.ENTRYPOINT_INVALID, message)
