"""ONNX Runtime's messages without what it says of itself, so that a cut leaves what helps. Standard library only."""

import re

NOISE = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : \w+ : (?:Load model from \S+ failed:)?"
    r"|/\S*onnxruntime\S*:\d+ [^()]*\([^()]*\)(?: const)? "
)
"""An error code, and the place in its source, of wheels and of Triton's build."""


def own(message: str) -> str:
    """Return the sentences of a message on one line."""
    return NOISE.sub("", " ".join(message.split()))
