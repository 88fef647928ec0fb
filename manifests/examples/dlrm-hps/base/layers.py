"""What the dense parts of both models share: the flattened inputs, and stacks of linear layers."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from clicks import CARDINALITIES, NUMBERS
from torch import Tensor, nn

CATEGORIES = len(CARDINALITIES)
WIDTH = 128
"""Elements of an embedding vector, and of the numbers' own."""
BOTTOM = (NUMBERS, 512, 256, WIDTH)
TOP = (1024, 1024, 512, 256, 1)
NAMES = {"inputs": ["vectors", "numerical"], "outputs": ["logits"]}


class FlattenedModel(nn.Module):
    """Takes the hps backend's one row of vectors; ``combine`` is the model's own."""

    def __init__(self) -> None:
        super().__init__()
        self.bottom = stack(BOTTOM, ends_with_relu=True)

    def forward(self, vectors: Tensor, numerical: Tensor) -> Tensor:
        """Vectors (26 n 128,), category after category, and numbers (1, 13 n) to logits (n, 1)."""
        embedded = vectors.reshape(CATEGORIES, -1, WIDTH).transpose(0, 1)
        numbers = self.bottom(numerical.reshape(-1, NUMBERS))
        return self.combine(torch.cat([numbers[:, None], embedded], dim=1))

    def combine(self, features: Tensor) -> Tensor:
        """Features (n, 27, 128), the numbers' first, to logits (n, 1)."""
        raise NotImplementedError


def stack(sizes: Sequence[int], ends_with_relu: bool) -> nn.Sequential:
    """Linear layers with rectifiers between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*(layers if ends_with_relu else layers[:-1]))


def load(model: nn.Module, checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """Fill the model from a safetensors file, and name its tensors."""
    from safetensors.torch import load_model

    load_model(model, checkpoint)
    return model.eval(), NAMES
