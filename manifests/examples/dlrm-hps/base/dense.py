"""The dense part of DLRM: every pair of feature vectors meets in a dot product.

Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation Systems", 2019, in the size of
MLPerf's benchmark.
"""

import torch
from layers import CATEGORIES, TOP, WIDTH, FlattenedModel, load, stack
from torch import Tensor, nn

PARAMETERS = 2_368_897
"""171,392 below the interaction, 2,197,505 above it."""


class DLRM(FlattenedModel):
    """Bottom layers 13-512-256-128, dot products of all 351 pairs, top layers 479-1024-1024-512-256-1."""

    def __init__(self) -> None:
        super().__init__()
        features = CATEGORIES + 1
        rows, columns = torch.tril_indices(features, features, offset=-1)
        self.register_buffer("pairs", rows * features + columns, persistent=False)
        self.top = stack((WIDTH + len(rows), *TOP), ends_with_relu=False)

    def combine(self, features: Tensor) -> Tensor:
        """Features (n, 27, 128) to logits (n, 1)."""
        products = torch.bmm(features, features.transpose(1, 2)).flatten(1)
        met = torch.index_select(products, 1, self.pairs)
        return self.top(torch.cat([features[:, 0], met], dim=1))


def new_model() -> nn.Module:
    """The model before training."""
    return DLRM()


def get_model(checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """The trained model and the names of its tensors."""
    return load(new_model(), checkpoint)
