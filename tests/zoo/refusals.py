"""Refusals that are right: the model needs something that nobody but its owner can give, and the message says what.

Added to only before a run, never after one: a list that follows its results measures nothing.
"""

import re

REFUSALS = {
    "needs a dataloader: its answers to made-up values are NaN or errors": (
        r"InputsNotGenerated: .*write a dataloader and name it in spec\.dataloader"
    ),
    "needs a dataloader: a TorchScript file declares no inputs": (
        r"InvalidSpec: inputs can be generated only .*set spec\.dataloader; found is ts-script"
    ),
    "needs another format: its exporter lacks an operator of the model": (
        r"ConversionUnsupported: tf2onnx \S+ cannot convert TensorFlow's \w+; use format"
    ),
}
"""What the owner has to give, and the pattern of the reason and the message that ask for it."""


def refusal(reason: str) -> str:
    """Return what the owner has to give, by a row's reason and message; empty if the refusal is not on the list."""
    return next((needs for needs, words in REFUSALS.items() if re.search(words, reason)), "")
