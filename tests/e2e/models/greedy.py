"""Wants memory when it is converted to ONNX, and only then."""

from classifier import get_model as get_classifier
from torch import nn

ONE_MEBIBYTE = b"x" * 2**20


def get_model(checkpoint: str, mebibytes: int, output_format: str = "") -> tuple[nn.Module, dict[str, list[str]]]:
    """Hold ``mebibytes`` of memory where ``output_format`` is onnx."""
    model, names = get_classifier(checkpoint)
    if output_format == "onnx":
        model.ballast = ONE_MEBIBYTE * mebibytes
    return model, names
