"""Fit ResNet-50's last layer to real handwritten digits, and publish what the example needs.

The body's weights are drawn from a seed and its normalisations are set from pictures; the last layer, 2,048 features to
1,000 classes of which the first ten occur, is fitted by least squares. Below --directory: model/ (user files and
resnet50.safetensors) and data/ (held-out.npz). model/ appears last, by one rename, so a reader finds all or nothing.
"""

import argparse
import shutil
import time
from pathlib import Path

import numpy as np
import torch
from dataloader import get_dataloader_fn
from metrics import MetricsCalculator
from model import CLASSES, INPUT, OUTPUT, Bottleneck, ResNet50
from safetensors.torch import save_model
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

SEED = 0
SIZE = 224
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""The statistics of ImageNet's channels; grey pictures have the same value in each."""
NORMALISED_BY = 32
"""Pictures whose statistics the normalisations take."""
BRANCH = 0.2
"""Weight of a bottleneck's branch relative to its shortcut: drawn branches blur what they see."""
BATCH_SIZE = 16
RIDGE = 1e-2
"""The ridge as a share of the mean square of the features."""
ENTRYPOINTS = ("model.py", "dataloader.py", "metrics.py")


def enlarge(images: np.ndarray) -> torch.Tensor:
    """Digits (n, 8, 8), 0 to 16, as pictures (n, 3, 224, 224), normalised as ImageNet's are."""
    grey = torch.from_numpy(images / 16.0).float()[:, None]
    large = nn.functional.interpolate(grey, size=(SIZE, SIZE), mode="bilinear", align_corners=False)
    mean, deviation = (torch.tensor(values)[:, None, None] for values in (MEAN, DEVIATION))
    return (large - mean) / deviation


def draw(pictures: torch.Tensor) -> ResNet50:
    """The network with seeded weights, each normalisation set to the statistics of ``pictures`` there."""
    torch.manual_seed(SEED)
    model = ResNet50().requires_grad_(False).train()
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1.0
        if isinstance(module, Bottleneck):
            module.body[-1][-1].weight.fill_(BRANCH)
    model.features(pictures)
    return model.eval()


def fit(model: ResNet50, pictures: torch.Tensor, classes: np.ndarray) -> None:
    """Give each class its indicator, by ridge regression on the features."""
    with torch.inference_mode():
        features = torch.cat([model.features(part) for part in pictures.split(BATCH_SIZE)])
    wanted = nn.functional.one_hot(torch.from_numpy(classes), CLASSES).float()
    centre, share = features.mean(0), wanted.mean(0)
    kernel = (features - centre) @ (features - centre).T
    kernel += RIDGE * kernel.diagonal().mean() * torch.eye(len(kernel))
    weight = torch.linalg.solve(kernel, wanted - share).T @ (features - centre)
    model.head.weight.copy_(weight)
    model.head.bias.copy_(share - weight @ centre)


def main() -> None:
    """Fit, publish, and say how good the network is on the digits it has not seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--fitted", type=int, default=240, help="digits to fit to")
    parser.add_argument("--held-out", type=int, default=128, help="digits to measure with")
    options = parser.parse_args()
    start, digits = time.monotonic(), load_digits()
    seen, held_out, seen_classes, held_out_classes = train_test_split(
        digits.images, digits.target, train_size=options.fitted, test_size=options.held_out,
        stratify=digits.target, random_state=SEED,
    )  # fmt: skip
    pictures = enlarge(seen)
    model = draw(pictures[:NORMALISED_BY])
    fit(model, pictures, seen_classes)
    print(f"last layer fitted to {len(seen)} digits in {time.monotonic() - start:.1f} s", flush=True)

    data, target = options.directory / "data", options.directory / "model"
    data.mkdir(exist_ok=True)
    np.savez(data / "held-out.npz", pictures=enlarge(held_out).numpy(), classes=held_out_classes.astype(np.int64))
    ids, inputs, labels = next(get_dataloader_fn(str(data), batch_size=BATCH_SIZE)())
    with torch.inference_mode():
        logits = model(torch.from_numpy(inputs[INPUT])).numpy()
    quality = MetricsCalculator(OUTPUT).calc(ids=ids, y_pred={OUTPUT: logits}, x=inputs, y_real=labels)
    print(f"on {len(ids)} held-out digits: {quality}", flush=True)

    partial = options.directory / ".model.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for name in ENTRYPOINTS:
        shutil.copyfile(Path(__file__).parent / name, partial / name)
    save_model(model, str(partial / "resnet50.safetensors"))
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


if __name__ == "__main__":
    main()
