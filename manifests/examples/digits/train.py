"""Train the network on scikit-learn's 1,797 real handwritten digits, and publish what a TritonDeployment needs.

Below --model-dir: what lies next to this file, and digits.safetensors; below --data-dir: held-out.npz.
Each folder appears by one rename, so a reader finds it whole or not at all; the model's comes last.
"""

import argparse
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from dataloader import get_dataloader_fn
from metrics import MetricsCalculator
from model import INPUT, OUTPUT, DigitsNet
from safetensors.torch import save_model
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 0
HELD_OUT = 360
EPOCHS = 20
BATCH_SIZE = 64
LEARNING_RATE = 3e-3
HERE = Path(__file__).parent


def user_files() -> list[Path]:
    """The Python files of this folder and of those in it, without this one; in a ConfigMap's volume some are links."""
    found = (file.relative_to(HERE) for file in (*HERE.glob("[!.]*.py"), *HERE.glob("[!._]*/*.py")))
    return sorted(file for file in found if file != Path(Path(__file__).name))


def split() -> list[np.ndarray]:
    """Pictures to train with, held-out ones (float32, (n, 1, 8, 8), 0 to 1), and the digits of both (int64, (n,))."""
    digits = load_digits()
    pictures = (digits.images / 16.0).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    return train_test_split(pictures, labels, test_size=HELD_OUT, stratify=labels, random_state=SEED)


def train(pictures: np.ndarray, digits: np.ndarray) -> DigitsNet:
    """Train from a fixed seed on one thread: two runs on one machine give the same weights."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    model = DigitsNet()
    x, y = torch.from_numpy(pictures), torch.from_numpy(digits)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=1e-2)
    steps = EPOCHS * -(-len(y) // BATCH_SIZE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LEARNING_RATE, total_steps=steps)
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for part in torch.randperm(len(y)).split(BATCH_SIZE):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x[part]), y[part])
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(part)
        print(f"epoch {epoch:2d} of {EPOCHS}: loss {total / len(y):.4f}", flush=True)
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
    """Train, publish, and say how good the network is on the pictures it has not seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model-dir", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    options = parser.parse_args()
    start = time.monotonic()
    seen, held_out, seen_digits, held_out_digits = split()
    model = train(seen, seen_digits)
    print(f"trained on {len(seen)} pictures in {time.monotonic() - start:.1f} s", flush=True)

    with published(options.data_dir) as folder:
        np.savez(folder / "held-out.npz", pictures=held_out, digits=held_out_digits)
    ids, inputs, labels = next(get_dataloader_fn(str(options.data_dir), batch_size=HELD_OUT)())
    with torch.inference_mode():
        logits = model(torch.from_numpy(inputs[INPUT])).numpy()
    quality = MetricsCalculator(OUTPUT).calc(ids=ids, y_pred={OUTPUT: logits}, x=inputs, y_real=labels)
    with published(options.model_dir) as folder:
        for file in user_files():
            (folder / file).parent.mkdir(exist_ok=True)
            shutil.copyfile(HERE / file, folder / file)
        save_model(model, str(folder / "digits.safetensors"))
    print(f"accuracy on {HELD_OUT} held-out pictures: {quality['accuracy']:.4f}", flush=True)


if __name__ == "__main__":
    main()
