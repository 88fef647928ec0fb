"""A small residual network for 8x8 pictures of handwritten digits."""

from torch import Tensor, nn

INPUT = "INPUT__0"
OUTPUT = "OUTPUT__0"


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut; channels and size stay."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, channels, height, width) to the same shape."""
        return nn.functional.relu(x + self.body(x))


class DigitsNet(nn.Module):
    """Pictures (batch, 1, 8, 8), grey levels 0 to 1, to logits (batch, 10), one a digit."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())
        self.blocks = nn.Sequential(ResidualBlock(channels), nn.MaxPool2d(2), ResidualBlock(channels))
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels, 10))

    def forward(self, pictures: Tensor) -> Tensor:
        """Map (batch, 1, 8, 8) to (batch, 10)."""
        return self.head(self.blocks(self.stem(pictures)))


def get_model(checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """Load the trained network from a safetensors file, and name its tensors as Triton serves them."""
    from safetensors.torch import load_model

    model = DigitsNet()
    load_model(model, checkpoint)
    return model.eval(), {"inputs": [INPUT], "outputs": [OUTPUT]}
