"""FastPitch: character ids of a text to a mel spectrogram, with the durations and the pitch it chose.

After Lancucki, "FastPitch: Parallel Text-to-speech with Pitch Prediction" (2020): two stacks of six feed-forward
transformer layers; between them each character is repeated for as many frames as a predictor says, and the pitch
that another one says is added. One voice.
"""

import math

import torch
from torch import Tensor, nn

INPUT = "INPUT__0"
MEL, LENGTH, DURATION, LOG_DURATION, PITCH = OUTPUTS = [f"OUTPUT__{index}" for index in range(5)]
SYMBOLS = 148
PADDING = 0
"""Id of what only fills a text up to its tensor's length."""
WIDTH = 384
LAYERS = 6
HEAD = 64
"""Channels of the one attention head."""
INNER = 1536
PREDICTOR = 256
BANDS = 80
LONGEST = 75.0
"""Frames of one character at most: 0.87 s with 256 samples a frame at 22,050 Hz."""
PARAMETERS = {
    "embedding": 56_832,
    "encoder": 21_845_376,
    "durations": 493_313,
    "pitch": 493_313,
    "pitch_embedding": 1_536,
    "decoder": 21_845_376,
    "head": 30_800,
}
"""Weights by part, 44,766,546 in all: `test_examples` counts them."""


class Attention(nn.Module):
    """Self-attention of one head, then the sum with its input, normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * HEAD)
        self.join = nn.Linear(HEAD, WIDTH, bias=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.scale = HEAD**-0.5

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map (batch, time, width) to the same; ``mask`` (batch, time, 1) is true where there is something to see."""
        query, key, value = self.project(x).chunk(3, dim=-1)
        scores = torch.matmul(query, key.transpose(1, 2)) * self.scale
        # Not -inf, whose softmax over a text of nothing but padding is NaN; fp16 holds up to 65504.
        scores = scores.masked_fill(~mask.transpose(1, 2), -1e4)
        seen = torch.matmul(torch.softmax(scores, dim=-1), value)
        return self.norm(x + self.join(seen))


class FeedForward(nn.Module):
    """Two convolutions over time of width 3, then the sum with their input, normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(WIDTH, INNER, 3, padding=1)
        self.second = nn.Conv1d(INNER, WIDTH, 3, padding=1)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map (batch, time, width) to the same; ``mask`` (batch, time, 1) is true where there is something to see."""
        # Masked in between too: else a text's last frames would depend on how far its batch is padded.
        hidden = torch.relu(self.first(x.transpose(1, 2))) * mask.transpose(1, 2)
        return self.norm(x + self.second(hidden).transpose(1, 2))


class Layer(nn.Module):
    """One feed-forward transformer layer; padding stays zero."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.feed_forward = FeedForward()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map (batch, time, width) to the same; ``mask`` (batch, time, 1) is true where there is something to see."""
        x = self.attention(x, mask) * mask
        return self.feed_forward(x, mask) * mask


class Transformer(nn.Module):
    """Sinusoidal positions are added, then the layers run."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map (batch, time, width) to the same; ``mask`` (batch, time, 1) is true where there is something to see."""
        # In fp32 also in an fp16 model: fp16 counts to 2,048 only.
        width = x.size(2)
        rates = torch.exp(torch.arange(0, width, 2, device=x.device).float() * (-math.log(10000.0) / width))
        angles = torch.arange(x.size(1), device=x.device).float().unsqueeze(1) * rates
        positions = torch.cat((angles.sin(), angles.cos()), dim=1).to(x.dtype)
        x = (x + positions.unsqueeze(0)) * mask
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Predictor(nn.Module):
    """One number for each character: two convolutions over time, each normalised, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        sizes = ((WIDTH, PREDICTOR), (PREDICTOR, PREDICTOR))
        self.convolutions = nn.ModuleList(nn.Conv1d(*size, 3, padding=1) for size in sizes)
        self.norms = nn.ModuleList(nn.LayerNorm(PREDICTOR) for _ in sizes)
        self.head = nn.Linear(PREDICTOR, 1)

    def features(self, x: Tensor, mask: Tensor) -> Tensor:
        """What the head sees: (batch, time, 256)."""
        for convolution, norm in zip(self.convolutions, self.norms):  # noqa: B905 - TorchScript knows no `strict`
            x = norm(torch.relu(convolution((x * mask).transpose(1, 2)).transpose(1, 2)))
        return x * mask

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map (batch, time, width) to (batch, time, 1); 0 where ``mask`` (batch, time, 1) is false."""
        return self.head(self.features(x, mask)) * mask


def repeat(x: Tensor, frames: Tensor) -> tuple[Tensor, Tensor]:
    """Repeat each character for its number of frames.

    ``x`` (batch, characters, width), ``frames`` (batch, characters) int64. Gives (batch, longest, width), zero beyond a
    text's own end, and the mask (batch, longest, 1) of what is not beyond it.
    """
    ends = frames.cumsum(1)
    starts = ends - frames
    lengths = ends[:, -1:]
    # One frame of silence where nothing is said: convolutions take no empty sequence.
    times = torch.arange(lengths.max().clamp(min=1), device=x.device).unsqueeze(0)
    # A product instead of an index: every exporter keeps it for any number of frames.
    path = (times.unsqueeze(2) >= starts.unsqueeze(1)) & (times.unsqueeze(2) < ends.unsqueeze(1))
    return torch.matmul(path.to(x.dtype), x), (times < lengths).unsqueeze(2)


class FastPitch(nn.Module):
    """Character ids (batch, characters) int64, 0 for padding, to five tensors; see ``forward``."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, WIDTH, padding_idx=PADDING)
        self.encoder = Transformer()
        self.durations = Predictor()
        self.pitch = Predictor()
        self.pitch_embedding = nn.Conv1d(1, WIDTH, 3, padding=1)
        self.decoder = Transformer()
        self.head = nn.Linear(WIDTH, BANDS)
        self.longest = LONGEST
        self.padding = PADDING

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Speak.

        Gives the log mel spectrogram (batch, 80, frames), zero beyond a text's own end; its length in frames
        (batch, 1) int64; and for each character its duration in frames, log(1 + duration) and pitch in standard
        deviations, (batch, characters) each, zero for padding.
        """
        mask = (ids != self.padding).unsqueeze(2)
        encoded = self.encoder(self.embedding(ids), mask)
        log_durations = self.durations(encoded, mask)
        durations = (torch.exp(log_durations) - 1).clamp(0.0, self.longest) * mask
        pitch = self.pitch(encoded, mask)
        spoken = encoded + self.pitch_embedding(pitch.transpose(1, 2)).transpose(1, 2)
        # Not round().long(): TorchScript's fuser on CPU makes zeros of that from the second call on (PyTorch 2.6).
        frames = torch.floor(durations.squeeze(2) + 0.5).long()
        repeated, spoken_mask = repeat(spoken, frames)
        mel = self.head(self.decoder(repeated, spoken_mask)) * spoken_mask
        lengths = frames.sum(1, keepdim=True)
        return mel.transpose(1, 2), lengths, durations.squeeze(2), log_durations.squeeze(2), pitch.squeeze(2)


def get_model(checkpoint: str) -> tuple[nn.Module, dict[str, list[str]]]:
    """Load the weights from a safetensors file, and name the tensors as Triton serves them."""
    from safetensors.torch import load_model

    model = FastPitch()
    load_model(model, checkpoint)
    return model.eval(), {"inputs": [INPUT], "outputs": OUTPUTS}
