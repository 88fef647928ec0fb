"""Takes what tables.py has for a visitor and an item, all samples in one row."""

import torch
from torch import Tensor, nn


class Dense(nn.Module):
    """Vectors (6 n,), first all visitors' and then all items', to scores (n, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, vectors: Tensor) -> Tensor:
        """Both tables' vectors side by side, then two layers."""
        rows = vectors.reshape(-1, 2)
        count = rows.shape[0] // 3
        visitors, items = rows[: 2 * count].reshape(-1, 4), rows[2 * count :]
        return self.layers(torch.cat([visitors, items], dim=1))


def get_model() -> tuple[nn.Module, dict[str, list[str]]]:
    """Seeded weights."""
    torch.manual_seed(5)
    return Dense().eval(), {"inputs": ["VECTORS"], "outputs": ["SCORES"]}
