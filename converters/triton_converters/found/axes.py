"""What the names of a tensor's open axes tell about the first one: samples of a batch, or a length. Pure."""

import re
from collections.abc import Sequence

UNNAMED = re.compile(
    r"|\?|-1|none|unknown|dynamic|dim_\d+|unk__\d+|(p2o\.)?DynamicDimension\.\d+|.+_dim_0|.*dynamic_axes_\d+",
    re.IGNORECASE,
)
"""The names that say nothing: those that exporters repeat for every open axis, and those that tf2onnx, Paddle2ONNX and
PyTorch (`Softmax4195_dim_0`) make up, for each open axis another one, also where sizes are equal."""
LENGTHS = re.compile(r"frames?|len|length|maxlen|nodes?|points?|seq|seqlen|sequence|(time)?steps?|time|tokens?|words?")
"""Words in the name of an axis that counts no samples."""
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
LENGTH_LETTERS = ("l", "t")


def is_batch(name: str) -> bool:
    """Whether an axis is called a batch."""
    return "batch" in name.lower()


def is_length(names: Sequence[str]) -> bool:
    """Whether the first axis of a tensor seems to count no samples, by the names of all; empty: it has none.

    So it is called a length, another axis has the same size, or another one is called the batch.
    """
    first, *rest = ("" if UNNAMED.fullmatch(name) else name for name in names or [""])
    if first and first.lower() in map(str.lower, rest):
        return True
    if is_batch(first):
        return False
    called = any(LENGTHS.fullmatch(word.lower()) for word in WORD.findall(first))
    return any(map(is_batch, rest)) or called or first.lower() in LENGTH_LETTERS
