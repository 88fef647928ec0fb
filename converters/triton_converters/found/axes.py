"""What the names of a tensor's open axes tell about the first one: samples of a batch, or a length. Pure."""

import re
from collections.abc import Sequence

NUMBERED = re.compile(r"unk__\d+|(p2o\.)?DynamicDimension\.\d+|.+_dim_0")
"""The names that tf2onnx, Paddle2ONNX and PyTorch (`Softmax4195_dim_0`) make up: each open axis has another one, also
where sizes are equal."""
LENGTHS = ("frame", "len", "node", "point", "seq", "step", "time", "token", "word")
"""Parts of the name of an axis that counts no samples."""
LENGTH_LETTERS = ("l", "t")


def is_batch(name: str) -> bool:
    """Whether an axis is called a batch."""
    return "batch" in name.lower()


def is_length(names: Sequence[str]) -> bool:
    """Whether the first axis of a tensor seems to count no samples, by the names of all; empty: it has none.

    So it is called a length, another axis has the same size, or another one is called the batch.
    """
    if not names:
        return False
    first, rest = names[0].lower(), [name.lower() for name in names[1:]]
    if first and first in rest:
        return True
    if is_batch(first):
        return False
    called = first in LENGTH_LETTERS or any(word in first for word in LENGTHS)
    return any(map(is_batch, rest)) or (called and not NUMBERED.fullmatch(names[0]))
