"""A Python branch on the data: a trace keeps the side its example took, a script keeps both."""

from checkpoints import load
from classifier import Classifier
from torch import Tensor, nn


class Branching(nn.Module):
    """Features (batch, 8) to scores (batch, 4); doubled where the features' sum is positive."""

    def __init__(self, inner: Classifier) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, features: Tensor) -> Tensor:
        """Map (batch, 8) to (batch, 4)."""
        scores = self.inner(features)
        if features.sum() > 0:
            scores = scores * 2
        return scores


def get_model(checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """Load the classifier's weights."""
    model = Branching(Classifier())
    load(model.inner, checkpoint)
    return model.eval(), {"inputs": ["INPUT__0"], "outputs": ["OUTPUT__0"]}
