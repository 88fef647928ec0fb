"""Sequences of any length, to one output a step and one a sequence."""

from checkpoints import load
from torch import Tensor, nn


class Tagger(nn.Module):
    """Steps (batch, time, 6) to tags (batch, time, 4) and a summary (batch, 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Conv1d(6, 8, 3, padding=1)
        self.tag = nn.Linear(8, 4)

    def forward(self, steps: Tensor) -> tuple[Tensor, Tensor]:
        """Map (batch, time, 6) to (batch, time, 4) and (batch, 4)."""
        hidden = self.before(steps.transpose(1, 2)).transpose(1, 2).tanh()
        tags = self.tag(hidden)
        return tags, tags.mean(dim=1)


def get_model(checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """Load the weights and name the tensors."""
    return load(Tagger(), checkpoint).eval(), {"inputs": ["INPUT__0"], "outputs": ["OUTPUT__0", "OUTPUT__1"]}
