"""Small networks of three kinds, with seeded random weights: for speed, never for accuracy."""

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, channels, height, width) to the same shape."""
        return torch.relu(x + self.second(torch.relu(self.first(x))))


def pictures() -> nn.Module:
    """(batch, 3, 32, 32) to (batch, 10): some milliseconds a sample on one core."""
    return nn.Sequential(
        nn.Conv2d(3, 48, 3, padding=1), *(Residual(48) for _ in range(2)), nn.MaxPool2d(2),
        *(Residual(48) for _ in range(2)), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10),
    )  # fmt: skip


def table() -> nn.Module:
    """(batch, 64) to (batch, 2): cheaper than the request around it."""
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))


class Sentences(nn.Module):
    """(batch, 32, 128) to (batch, 8): two layers of self-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.ModuleList(nn.Linear(128, 128) for _ in range(2)) for _ in range(3))
        self.mix = nn.ModuleList(nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128)) for _ in range(2))
        self.head = nn.Linear(128, 8)

    def forward(self, x: Tensor) -> Tensor:
        """One head a layer, the mean over the sentence at the end."""
        for query, key, value, mix in zip(self.query, self.key, self.value, self.mix, strict=True):
            weights = torch.softmax(query(x) @ key(x).transpose(1, 2) / 128**0.5, dim=-1)
            x = x + weights @ value(x)
            x = x + mix(x)
        return self.head(x.mean(dim=1))


KINDS = {"pictures": pictures, "table": table, "sentences": Sentences}


def get_model(kind: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """The network of that kind, the same weights every time."""
    torch.manual_seed(0)
    return KINDS[kind]().eval(), {"inputs": ["X"], "outputs": ["Y"]}
