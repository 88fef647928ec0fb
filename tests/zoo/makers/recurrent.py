"""Save weights as safetensors, and recurrent networks as TorchScript and ONNX.

`python3 recurrent.py FOLDER`, where torch, onnx and safetensors are.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
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


class Forecast(nn.Module):
    """Values [batch, 24, 1] to the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.next = nn.GRU(1, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the next value [batch, 1]."""
        return self.next(self.gru(values)[0][:, -1])


def main(folder: Path) -> None:
    """Write every model."""
    torch.manual_seed(0)
    tagger, forecast = Tagger().eval(), Forecast().eval()
    save_file(tagger.state_dict(), folder / "tagger.safetensors")
    torch.onnx.export(
        forecast, (torch.rand(2, 24, 1),), str(folder / "forecast.onnx"), input_names=["values"],
        output_names=["next"], dynamic_axes={"values": {0: "batch"}, "next": {0: "batch"}}, opset_version=20,
        dynamo=False,
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
