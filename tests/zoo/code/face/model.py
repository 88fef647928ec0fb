"""The first network of MTCNN, as facenet-pytorch defines it, for the weights that its package ships."""

import torch
from torch import nn


class PNet(nn.Module):
    """Picture [batch, 3, height, width] to where faces may be, and how likely."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.prelu1 = nn.Conv2d(3, 10, kernel_size=3), nn.PReLU(10)
        self.pool1 = nn.MaxPool2d(2, 2, ceil_mode=True)
        self.conv2, self.prelu2 = nn.Conv2d(10, 16, kernel_size=3), nn.PReLU(16)
        self.conv3, self.prelu3 = nn.Conv2d(16, 32, kernel_size=3), nn.PReLU(32)
        self.conv4_1, self.conv4_2 = nn.Conv2d(32, 2, kernel_size=1), nn.Conv2d(32, 4, kernel_size=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return boxes [batch, 4, h, w] and probabilities [batch, 2, h, w]."""
        x = self.pool1(self.prelu1(self.conv1(x)))
        x = self.prelu3(self.conv3(self.prelu2(self.conv2(x))))
        return self.conv4_2(x), torch.softmax(self.conv4_1(x), dim=1)


def get_model(checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """Return the network with its weights."""
    net = PNet()
    net.load_state_dict(torch.load(checkpoint, weights_only=True))
    return net.eval(), {"inputs": ["INPUT__0"], "outputs": ["OUTPUT__0", "OUTPUT__1"]}
