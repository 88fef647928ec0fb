"""A tagger of words: an embedding, an LSTM in both directions, and a linear layer."""

import torch
from safetensors.torch import load_file
from torch import nn


class Tagger(nn.Module):
    """Words [batch, length] to scores of 5 tags."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, 32)
        self.lstm = nn.LSTM(32, 32, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(64, 5)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Return scores [batch, length, 5]."""
        return self.tags(self.lstm(self.words(words))[0])


def get_model(checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """Return the network with its weights."""
    net = Tagger()
    net.load_state_dict(load_file(checkpoint))
    return net.eval(), {"inputs": ["words"], "outputs": ["tags"]}
