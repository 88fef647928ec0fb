"""Every way in which get_model can go wrong, by the argument ``fault``."""

import os
import sys
import time
from pathlib import Path

import torch
from classifier import get_model as get_classifier
from torch import Tensor, nn


class Faulty(nn.Module):
    """The classifier with a fault in its forward."""

    def __init__(self, inner: nn.Module, fault: str) -> None:
        super().__init__()
        self.inner = inner
        self.fault = fault
        self.dropout = nn.Dropout(0.5)

    def forward(self, features: Tensor) -> Tensor:
        """Map (batch, 8) to (batch, 4), or not."""
        scores = self.inner(features)
        match self.fault:
            case "random":
                return scores + torch.rand_like(scores)
            case "constant":
                return torch.ones_like(scores)
            case "not-a-number":
                return scores / torch.zeros_like(scores)
            case "forward-raises":
                raise ValueError("no such feature: colour")
        return self.dropout(scores)


def get_model(checkpoint: str, fault: str, file: str = "") -> tuple[nn.Module, dict[str, list[str]]]:
    """Fail as ``fault`` says."""
    match fault:
        case "raises":
            raise RuntimeError("the vocabulary has 7 words, the checkpoint 9")
        case "prints-and-raises":
            for number in range(2000):
                print(f"{number:5} still loading, please be patient, it takes time")
            raise RuntimeError("gave up loading")
        case "sys-exit":
            sys.exit(0)
        case "os-exit":
            os._exit(0)
        case "sleeps":
            time.sleep(3600)
        case "reads-file":
            Path(file).read_text()
    inner, names = get_classifier(checkpoint)
    # Not scriptable either: forward is Python that TorchScript does not know (match).
    model = Faulty(inner, fault)
    return model.train(fault == "training"), names
