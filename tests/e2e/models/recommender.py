"""Two inputs, one of them integer, and two outputs of one shape."""

import torch
from checkpoints import load
from torch import Tensor, nn


class Recommender(nn.Module):
    """A visitor (batch, 8) and the items seen (batch, 3) to likes and buys, (batch, 4) each."""

    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(32, 4)
        self.visitor = nn.Linear(8, 12)
        self.likes = nn.Linear(16, 4)
        self.buys = nn.Linear(16, 4)

    def forward(self, visitor: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """Map FP32 (batch, 8) and INT64 (batch, 3) to two FP32 (batch, 4)."""
        seen = self.items(items).mean(dim=1)
        state = torch.cat([torch.relu(self.visitor(visitor)), seen], dim=1)
        return self.likes(state), self.buys(state)


def get_model(checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """Load the weights and name the tensors in the order of forward."""
    names = {"inputs": ["INPUT__0", "INPUT__1"], "outputs": ["OUTPUT__0", "OUTPUT__1"]}
    return load(Recommender(), checkpoint).eval(), names
