"""ResNet-50 v1.5: pictures of 224x224 pixels to logits of 1,000 classes.

After He et al., "Deep Residual Learning for Image Recognition" (2015). Version 1.5 halves the resolution in a
bottleneck's 3x3 convolution, where the paper does it in the 1x1 before.
"""

from torch import Tensor, nn

INPUT = "INPUT__0"
OUTPUT = "OUTPUT__0"
CLASSES = 1000
EXPANSION = 4
"""A bottleneck's output channels, as a multiple of its inner ones."""
STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Inner channels and number of bottlenecks."""
PARAMETERS = {
    "stem": 9_536,
    "stages": 23_498_496,
    "head": 2_049_000,
}
"""Weights by part, 25,557,032 in all: `test_examples` counts them."""


def convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    """Convolution without bias and its batch normalisation; the size stays but for the stride."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False), nn.BatchNorm2d(outputs)
    )


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions with a shortcut, which is a 1x1 convolution if shapes differ."""

    def __init__(self, inputs: int, inner: int, stride: int) -> None:
        super().__init__()
        outputs = EXPANSION * inner
        self.body = nn.Sequential(
            convolution(inputs, inner, 1),
            nn.ReLU(),
            convolution(inner, inner, 3, stride),
            nn.ReLU(),
            convolution(inner, outputs, 1),
        )
        self.shortcut = nn.Identity() if inputs == outputs else convolution(inputs, outputs, 1, stride)
        self.activation = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, inputs, height, width) to (batch, 4 * inner, height / stride, width / stride)."""
        return self.activation(self.body(x) + self.shortcut(x))


class ResNet50(nn.Module):
    """Pictures (batch, 3, 224, 224), normalised as ImageNet's are, to logits (batch, 1000)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1))
        blocks: list[nn.Module] = []
        channels = 64
        for number, (inner, count) in enumerate(STAGES):
            for block in range(count):
                blocks.append(Bottleneck(channels, inner, 2 if block == 0 and number > 0 else 1))
                channels = EXPANSION * inner
        self.stages = nn.Sequential(*blocks)
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(channels, CLASSES)

    def features(self, pictures: Tensor) -> Tensor:
        """What the head sees: (batch, 2048)."""
        return self.pool(self.stages(self.stem(pictures)))

    def forward(self, pictures: Tensor) -> Tensor:
        """Map (batch, 3, 224, 224) to (batch, 1000)."""
        return self.head(self.features(pictures))


def get_model(checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """Load the weights from a safetensors file, and name the tensors as Triton serves them."""
    from safetensors.torch import load_model

    model = ResNet50()
    load_model(model, checkpoint)
    return model.eval(), {"inputs": [INPUT], "outputs": [OUTPUT]}
