"""Train both parts on a synthetic click log, and publish what a TritonDeployment needs.

Below --directory: model/ (the user files, sparse.safetensors and dense.safetensors) and data/ (held-out.npz). Each
folder appears by one rename, so a reader finds it whole or not at all; the model's comes last.
"""

import argparse
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from clicks import OFFSETS, ROWS, generate
from dense import PARAMETERS, new_model
from layers import WIDTH
from metrics import area_under_curve
from safetensors.torch import save_file, save_model

SEED = 0
IMPRESSIONS = 12_288
HELD_OUT = 4_096
BATCH_SIZE = 256
LEARNING_RATE = 1e-3
FILES = ("clicks.py", "dataloader.py", "dense.py", "layers.py", "metrics.py", "sparse.py")


class Recommender(torch.nn.Module):
    """The table and the dense part, as they are trained together."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = torch.nn.Parameter(torch.empty(ROWS, WIDTH).uniform_(-0.05, 0.05))
        self.dense = new_model()

    def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        """Numbers (n, 13) and keys (n, 26) to logits (n,)."""
        vectors = self.embeddings[categories.T.reshape(-1)].reshape(-1)
        return self.dense(vectors, numbers.reshape(1, -1)).reshape(-1)


def train() -> Recommender:
    """One pass over the log, from a fixed seed."""
    torch.manual_seed(SEED)
    model = Recommender()
    count = sum(parameter.numel() for parameter in model.dense.parameters())
    assert count == PARAMETERS, f"the dense part has {count} parameters, not {PARAMETERS}"
    print(f"{count} parameters in the dense part, {ROWS * WIDTH} in the table", flush=True)
    numbers, categories, clicks = (torch.from_numpy(array) for array in generate(IMPRESSIONS, SEED + 1))
    categories = categories + torch.from_numpy(OFFSETS)
    optimizer = torch.optim.Adam(
        [{"params": model.dense.parameters()}, {"params": [model.embeddings], "lr": 10 * LEARNING_RATE}],
        lr=LEARNING_RATE,
    )
    started, total = time.monotonic(), 0.0
    for step, part in enumerate(torch.randperm(IMPRESSIONS).split(BATCH_SIZE), start=1):
        optimizer.zero_grad()
        logits = model(numbers[part], categories[part])
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, clicks[part])
        loss.backward()
        optimizer.step()
        total += loss.item()
        if step % 24 == 0:
            print(f"{step * BATCH_SIZE} impressions: loss {total / 24:.4f}", flush=True)
            total = 0.0
    print(f"trained in {time.monotonic() - started:.1f} s", flush=True)
    return model.eval()


@contextmanager
def published(folder: Path) -> Iterator[Path]:
    """Give a folder to fill, and rename it to ``folder`` once it is whole; an older one is replaced."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def main() -> None:
    """Train, publish, and say how good the model is on impressions that it has not seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", type=Path, required=True)
    options = parser.parse_args()
    model = train()
    numbers, categories, clicks = generate(HELD_OUT, SEED + 2)
    with published(options.directory / "data") as folder:
        np.savez(folder / "held-out.npz", numbers=numbers, categories=categories, clicks=clicks)
    with torch.inference_mode():
        logits = model(torch.from_numpy(numbers), torch.from_numpy(categories + OFFSETS)).numpy()
    with published(options.directory / "model") as folder:
        for name in FILES:
            shutil.copyfile(Path(__file__).parent / name, folder / name)
        save_file({"embeddings": model.embeddings.detach().contiguous()}, str(folder / "sparse.safetensors"))
        save_model(model.dense, str(folder / "dense.safetensors"))
    print(f"AUC on {HELD_OUT} held-out impressions: {area_under_curve(logits, clicks):.4f}", flush=True)


if __name__ == "__main__":
    main()
