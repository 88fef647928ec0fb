"""Weights from a file, by its suffix."""

import torch
from safetensors.torch import load_file
from torch import nn


def load(model: nn.Module, checkpoint: str) -> nn.Module:
    """The model with the weights of a .safetensors or .pt file."""
    weights = load_file(checkpoint) if checkpoint.endswith(".safetensors") else torch.load(checkpoint)
    model.load_state_dict(weights)
    return model
