"""A perceptron: eight features to the scores of four classes."""

from checkpoints import load
from torch import Tensor, nn

SAID_PER_KILOBYTE = 1024


class Classifier(nn.Module):
    """Features (batch, 8) to scores (batch, 4)."""

    def __init__(self, hidden: int = 16) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, hidden), nn.ReLU(), nn.Linear(hidden, 4))

    def forward(self, features: Tensor) -> Tensor:
        """Map (batch, 8) to (batch, 4)."""
        return self.layers(features)


def get_model(checkpoint: str, kilobytes_printed: int = 0) -> tuple[nn.Module, dict[str, list[str]]]:
    """Load the weights; first say as much as was asked for, as chatty code does."""
    for _ in range(kilobytes_printed):
        print("x" * (SAID_PER_KILOBYTE - 1))
    return load(Classifier(), checkpoint).eval(), {"inputs": ["INPUT__0"], "outputs": ["OUTPUT__0"]}
