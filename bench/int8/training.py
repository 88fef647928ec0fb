"""Train three networks, inside the converter image: `training.py FOLDER`, into which they and their data go.

Convolutions learn scikit-learn's handwritten digits, a transformer the languages of Django's messages, and convolutions
again to take made noise from one of scikit-learn's photographs. What they have not seen is the data: inputs and labels,
by which INT8 is calibrated and judged; of the third, parts of the other photograph.
"""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

DIGITS, TEXTS = Path("/digits"), Path("/texts")
"""The examples' folder with the network for digits, and the samples' with the tokenizer and the texts."""
DATA_SETS = Path("/datasets")
"""scikit-learn's: data/digits.csv.gz (64 grey levels from 0 to 16 and the digit) and images/*.jpg."""
SEED, BATCH_SIZE = 0, 64
HELD_OUT = 360
LENGTH, WIDTH, LAYERS, HEADS = 32, 256, 3, 4
"""Tokens of a text, which is cut or padded with 0; and the transformer's sizes."""
SIDE, NOISE, CHANNELS = 32, 1 / 255, 32
"""Pixels of a part of a photograph; the deviation of its noise, which is what eight bits of a pixel tell apart; and the
size of the network that takes it away."""
MOST_TEXTS = 6000
"""Texts that the transformer learns from."""


class Layer(nn.Module):
    """Attention and two linear layers, each with a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.body = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        """Map (batch, LENGTH, WIDTH) to the same shape; ``padding``: (batch, 1, 1, LENGTH), 0 or a large negative."""
        at = self.first(x)
        query, key, value = (
            part(at).view(-1, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        weights = torch.softmax(query @ key.transpose(2, 3) / math.sqrt(WIDTH // HEADS) + padding, dim=-1)
        x = x + self.out((weights @ value).transpose(1, 2).reshape(-1, LENGTH, WIDTH))
        return x + self.body(self.second(x))


class Languages(nn.Module):
    """Tokens int64 (batch, LENGTH) to logits (batch, languages)."""

    def __init__(self, vocabulary: int, languages: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, WIDTH), nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, languages)

    def forward(self, tokens: Tensor) -> Tensor:
        """Average what the last layer makes of the tokens that are no padding."""
        there = (tokens > 0).float()
        padding = ((there - 1) * 1e4)[:, None, None]
        x = self.words(tokens) + self.places
        for layer in self.layers:
            x = layer(x, padding)
        weights = there[:, :, None]
        return self.head((x * weights).sum(1) / weights.sum(1).clamp(min=1))


class Restorer(nn.Module):
    """Pictures (batch, 3, height, width) with noise, 0 to 1, to the same without."""

    def __init__(self) -> None:
        super().__init__()
        inner = [part for _ in range(4) for part in (nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.ReLU())]
        ends = nn.Conv2d(3, CHANNELS, 3, padding=1), nn.Conv2d(CHANNELS, 3, 3, padding=1)
        self.body = nn.Sequential(ends[0], nn.ReLU(), *inner, ends[1])

    def forward(self, pictures: Tensor) -> Tensor:
        """Subtract what the network takes for noise."""
        return pictures - self.body(pictures)


def fit(model: nn.Module, inputs: Tensor, labels: Tensor, epochs: int, rate: float) -> nn.Module:
    """Return the trained model."""
    loss_of = nn.functional.cross_entropy if labels.dim() == 1 else nn.functional.mse_loss
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=1e-2)
    steps = epochs * -(-len(labels) // BATCH_SIZE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=steps)
    for epoch in range(1, epochs + 1):
        total = 0.0
        for part in torch.randperm(len(labels)).split(BATCH_SIZE):
            optimizer.zero_grad()
            loss = loss_of(model(inputs[part]), labels[part])
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(part)
        print(f"epoch {epoch} of {epochs}: loss {total / len(labels):.5f}", flush=True)
    return model.eval()


def write(folder: Path, model: nn.Module, name: str, inputs: np.ndarray, labels: np.ndarray) -> None:
    """Write the graph, and the data: arrays ``inputs/NAME`` and ``labels/label``."""
    folder.mkdir()
    given = torch.from_numpy(inputs)
    with torch.inference_mode():
        torch.onnx.export(
            model,
            (given[:3],),
            str(folder / "model.onnx"),
            input_names=[name],
            output_names=["scores"],
            dynamic_axes={name: {0: "batch"}, "scores": {0: "batch"}},
            opset_version=17,
            dynamo=False,
        )
    arrays: dict[str, Any] = {f"inputs/{name}": inputs, "labels/label": labels}
    np.savez(folder / "data.npz", **arrays)


def digits(folder: Path) -> None:
    """Train the network of the example, wider: with its 32 channels, most of a request is the server's own work."""
    sys.path.insert(0, str(DIGITS))
    from model import DigitsNet

    table = np.loadtxt(DATA_SETS / "data" / "digits.csv.gz", delimiter=",", dtype=np.float32)
    order = np.random.default_rng(SEED).permutation(len(table))
    pictures, labels = table[order, :64].reshape(-1, 1, 8, 8) / 16, table[order, 64].astype(np.int64)
    seen = slice(HELD_OUT, None)
    model = fit(DigitsNet(96), torch.from_numpy(pictures[seen]), torch.from_numpy(labels[seen]), 8, 3e-3)
    write(folder, model, "pictures", pictures[:HELD_OUT], labels[:HELD_OUT])


def languages(folder: Path) -> None:
    """Train the transformer on messages whose English is not that of any held-out text."""
    sys.path.insert(0, str(TEXTS))
    import train as texts
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(TEXTS / "tokenize" / "tokenizer.json"))

    def tokens(lines: list[str]) -> np.ndarray:
        rows = np.zeros((len(lines), LENGTH), np.int64)
        for row, line in zip(rows, lines, strict=True):
            ids = tokenizer.encode(line).ids[:LENGTH]
            row[: len(ids)] = ids
        return rows

    found = {language: texts.messages(language) for language in texts.LANGUAGES}
    held_out = set(sorted({english for each in found.values() for english in each})[:: texts.HELD_OUT])
    known = [
        (text, label)
        for label, each in enumerate(found.values())
        for english, text in each.items()
        if english not in held_out
    ]
    chosen = np.random.default_rng(SEED).permutation(len(known))[:MOST_TEXTS]
    inputs = torch.from_numpy(tokens([known[each][0] for each in chosen]))
    labels = torch.tensor([known[each][1] for each in chosen])
    rows = [line.split("\t") for line in (TEXTS / "texts.tsv").read_text(encoding="utf-8").splitlines()]
    model = fit(Languages(tokenizer.get_vocab_size(), len(found)), inputs, labels, 2, 1e-3)
    wanted = np.array([texts.LANGUAGES.index(language) for language, _ in rows])
    write(folder, model, "tokens", tokens([text for _, text in rows]), wanted)


def restorer(folder: Path) -> None:
    """Train on parts of one photograph; the data are parts of the other."""
    random = np.random.default_rng(SEED)

    def parts(name: str, count: int) -> tuple[np.ndarray, np.ndarray]:
        picture = np.asarray(Image.open(DATA_SETS / "images" / f"{name}.jpg").convert("RGB"), dtype=np.float32) / 255
        tops, lefts = (random.integers(0, size - SIDE + 1, count) for size in picture.shape[:2])
        clean = np.stack([picture[y : y + SIDE, x : x + SIDE] for y, x in zip(tops, lefts, strict=True)])
        clean = np.ascontiguousarray(clean.transpose(0, 3, 1, 2))
        return (clean + random.normal(0, NOISE, clean.shape)).astype(np.float32), clean

    noisy, clean = parts("china", 1024)
    model = fit(Restorer(), torch.from_numpy(noisy), torch.from_numpy(clean), 8, 2e-3)
    write(folder, model, "pictures", *parts("flower", 64))


def main(target: Path) -> None:
    """Train all, from a fixed seed."""
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    digits(target / "digits")
    languages(target / "languages")
    restorer(target / "restorer")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
