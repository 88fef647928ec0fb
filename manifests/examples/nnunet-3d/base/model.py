"""A 3D U-Net as nnU-Net configures it for brain tumours: four modalities in, four classes out.

After Cicek et al., "3D U-Net" (2016), and Isensee et al., "nnU-Net" (2021): six resolutions, two 3x3x3 convolutions
each, strided convolutions down and transposed ones up, instance normalisation with weights, leaky ReLU. nnU-Net's
further heads, which only supervise training, are not part of it.
"""

from itertools import pairwise

from torch import Tensor, cat, nn

INPUT = "INPUT__0"
OUTPUT = "OUTPUT__0"
MODALITIES = 4
CLASSES = 4
CHANNELS = (32, 64, 128, 256, 320, 320)
"""The channels by resolution, the full one first; nnU-Net doubles up to 320."""
PARAMETERS = {
    "encoder": 14_027_712,
    "decoder": 17_168_064,
    "head": 128,
}
"""Weights by part, 31,195,904 in all: `test_examples` counts them."""


class Convolution(nn.Module):
    """3x3x3 convolution, instance normalisation, leaky ReLU; ``stride`` 2 halves each side."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv3d(inputs, outputs, 3, stride=stride, padding=1)
        self.norm = nn.InstanceNorm3d(outputs, affine=True)
        self.activation = nn.LeakyReLU(0.01)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, inputs, depth, height, width) to (batch, outputs, ...)."""
        return self.activation(self.norm(self.convolution(x)))


class Upward(nn.Module):
    """Doubles the resolution, joins what the encoder had there, and convolves twice."""

    def __init__(self, below: int, channels: int) -> None:
        super().__init__()
        self.grow = nn.ConvTranspose3d(below, channels, 2, stride=2, bias=False)
        self.body = nn.Sequential(Convolution(2 * channels, channels), Convolution(channels, channels))

    def forward(self, below: Tensor, beside: Tensor) -> Tensor:
        """Map (batch, below, d, h, w) and (batch, channels, 2d, 2h, 2w) to the shape of the latter."""
        return self.body(cat((self.grow(below), beside), dim=1))


class UNet3d(nn.Module):
    """Volumes (batch, 4, depth, height, width), sides divisible by 32, to logits of the same size, one a class."""

    def __init__(self) -> None:
        super().__init__()
        sizes = (MODALITIES, *CHANNELS)
        self.encoder = nn.ModuleList(
            nn.Sequential(Convolution(above, channels, 1 if level == 0 else 2), Convolution(channels, channels))
            for level, (above, channels) in enumerate(zip(sizes, CHANNELS, strict=False))
        )
        self.decoder = nn.ModuleList(Upward(below, channels) for below, channels in pairwise(CHANNELS[::-1]))
        self.head = nn.Conv3d(CHANNELS[0], CLASSES, 1, bias=False)

    def features(self, x: Tensor) -> Tensor:
        """What the head sees: (batch, 32, depth, height, width)."""
        beside: list[Tensor] = []
        for stage in self.encoder:
            x = stage(x)
            beside.append(x)
        for level, stage in enumerate(self.decoder):
            x = stage(x, beside[-2 - level])
        return x

    def forward(self, volumes: Tensor) -> Tensor:
        """Map (batch, 4, depth, height, width) to (batch, 4, depth, height, width)."""
        return self.head(self.features(volumes))


def get_model(checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """Load the weights from a safetensors file, and name the tensors as Triton serves them."""
    from safetensors.torch import load_model

    model = UNet3d()
    load_model(model, checkpoint)
    return model.eval(), {"inputs": [INPUT], "outputs": [OUTPUT]}
