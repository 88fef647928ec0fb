"""No batch dimension: the rows of one request are ranked against each other."""

import torch
from checkpoints import load
from torch import Tensor, nn


class Ranking(nn.Module):
    """Items (5, 3) to their shares (5,), which sum to one."""

    def __init__(self) -> None:
        super().__init__()
        self.worth = nn.Linear(3, 1)

    def forward(self, items: Tensor) -> Tensor:
        """Map (5, 3) to (5,)."""
        return torch.softmax(self.worth(items).squeeze(1), dim=0)


def get_model(checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """Load the weights and name the tensors."""
    return load(Ranking(), checkpoint).eval(), {"inputs": ["INPUT__0"], "outputs": ["OUTPUT__0"]}
