"""The dense part of DCNv2: low-rank cross layers in place of DLRM's dot products.

Wang et al., "DCN V2: Improved Deep & Cross Network", 2021, in the size of MLPerf's benchmark.
"""

from layers import CATEGORIES, TOP, WIDTH, FlattenedModel, load, stack
from torch import Tensor, nn

PARAMETERS = 16_044_545
"""171,392 below the cross layers, 10,627,200 in them, 5,245,953 above."""
CROSSES = 3
RANK = 512


class Cross(nn.Module):
    """x0 * (W V x + b) + x, where V x has RANK elements."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down = nn.Linear(width, RANK, bias=False)
        self.up = nn.Linear(RANK, width)

    def forward(self, first: Tensor, x: Tensor) -> Tensor:
        """Both (n, width) to (n, width)."""
        return first * self.up(self.down(x)) + x


class DCNv2(FlattenedModel):
    """Bottom layers 13-512-256-128, three crosses of 3,456 elements, top layers 3456-1024-1024-512-256-1."""

    def __init__(self) -> None:
        super().__init__()
        width = (CATEGORIES + 1) * WIDTH
        self.crosses = nn.ModuleList(Cross(width) for _ in range(CROSSES))
        self.top = stack((width, *TOP), ends_with_relu=False)

    def combine(self, features: Tensor) -> Tensor:
        """Features (n, 27, 128) to logits (n, 1)."""
        first = x = features.flatten(1)
        for cross in self.crosses:
            x = cross(first, x)
        return self.top(x)


def new_model() -> nn.Module:
    """The model before training."""
    return DCNv2()


def get_model(checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """The trained model and the names of its tensors."""
    return load(new_model(), checkpoint)
