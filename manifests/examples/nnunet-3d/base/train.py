"""Make volumes with planted tumours, fit the network's head to some of them, and publish what the example needs.

The body's weights are drawn from a seed; the head, a linear map of 32 features a voxel, is fitted by weighted least
squares.
Below --directory: model/ (user files and unet.safetensors) and data/ (held-out.npz). model/ appears last, by one
rename, so a reader finds all of it or nothing.
"""

import argparse
import shutil
import time
from pathlib import Path

import numpy as np
import torch
from dataloader import get_dataloader_fn
from metrics import MetricsCalculator
from model import CLASSES, INPUT, MODALITIES, OUTPUT, UNet3d
from safetensors.torch import save_model
from torch import nn

SEED = 0
FITTED = 3
"""Volumes that the head is fitted to."""
RIDGE = 1e-3
"""The ridge as a share of the mean square of the features."""
WINDOW = (0.25, 1.0, 0.25)
"""Factors along a kernel's side: drawn weights that are strongest in the middle keep edges where they are."""
ENTRYPOINTS = ("model.py", "dataloader.py", "metrics.py")
CONTRAST = np.array([[0.0, 0.0, 0.0, 0.0], [0.2, -0.3, 0.4, 1.6], [0.3, -0.9, 1.4, 1.0], [-0.3, 1.8, 0.6, 0.8]])
"""What a class adds to each modality, in standard deviations: oedema is bright in the fourth, and so on."""


def plant(shape: tuple[int, int, int], random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One volume, float32 (4, *shape), of mean 0 and deviation 1, and its classes, uint8 ``shape``.

    A tumour is an ellipsoid of oedema (1) around a core (2) around what takes up contrast (3).
    """
    grid = np.stack(np.meshgrid(*(np.linspace(-1.0, 1.0, side) for side in shape), indexing="ij"))
    centre, radii = random.uniform(-0.4, 0.4, 3), random.uniform(0.45, 0.75, 3)
    distance = np.sqrt((((grid.T - centre) / radii) ** 2).sum(-1)).T
    classes = np.digitize(-distance, (-1.0, -0.7, -0.4)).astype(np.uint8)
    tissue = np.cos(3.0 * grid + random.uniform(0.0, 6.0, (MODALITIES, 3, 1, 1, 1))).sum(1) * 0.2
    volume = tissue + CONTRAST[classes].transpose(3, 0, 1, 2) + random.normal(0.0, 0.15, (MODALITIES, *shape))
    volume -= volume.mean((1, 2, 3), keepdims=True)
    return (volume / volume.std((1, 2, 3), keepdims=True)).astype(np.float32), classes


def plant_many(count: int, shape: tuple[int, int, int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """``count`` volumes (count, 4, *shape) and their classes (count, *shape)."""
    random = np.random.default_rng(seed)
    volumes, classes = zip(*(plant(shape, random) for _ in range(count)), strict=True)
    return np.stack(volumes), np.stack(classes)


def draw() -> UNet3d:
    """The network with seeded weights."""
    torch.manual_seed(SEED)
    model = UNet3d().eval().requires_grad_(False)
    side = torch.tensor(WINDOW)
    window = side[:, None, None] * side[:, None] * side
    for module in model.modules():
        if isinstance(module, nn.Conv3d) and module.kernel_size == window.shape:
            module.weight *= window
    return model


def fit(volumes: np.ndarray, classes: np.ndarray) -> UNet3d:
    """The drawn network with a head that gives each voxel's class its indicator; rare classes count for more."""
    model = draw()
    with torch.inference_mode():
        features = torch.cat([model.features(torch.from_numpy(volume[None]))[0].flatten(1) for volume in volumes], 1)
    wanted = torch.nn.functional.one_hot(torch.from_numpy(classes).flatten().long(), CLASSES).float()
    weights = (wanted / wanted.sum(0).sqrt()).sum(1)
    gram = (features * weights) @ features.T
    gram += RIDGE * gram.diagonal().mean() * torch.eye(len(gram))
    solution = torch.linalg.solve(gram, (features * weights) @ wanted)
    model.head.weight.copy_(solution.T.reshape(model.head.weight.shape))
    return model


def main() -> None:
    """Plant, fit, publish, and say how good the network is on the volumes it has not seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--patch", default="128,128,128", help="voxels a side, each divisible by 32")
    parser.add_argument("--held-out", type=int, default=8, help="volumes to measure with")
    options = parser.parse_args()
    start = time.monotonic()
    depth, height, width = map(int, options.patch.split(","))
    patch = depth, height, width
    model = fit(*plant_many(FITTED, patch, SEED))
    print(f"head fitted to {FITTED} volumes of {patch} voxels in {time.monotonic() - start:.1f} s", flush=True)

    data, target = options.directory / "data", options.directory / "model"
    data.mkdir(exist_ok=True)
    volumes, classes = plant_many(options.held_out, patch, SEED + 1)
    np.savez(data / "held-out.npz", volumes=volumes, classes=classes)
    ids, inputs, labels = next(get_dataloader_fn(str(data), batch_size=min(2, options.held_out))())
    with torch.inference_mode():
        logits = model(torch.from_numpy(inputs[INPUT])).numpy()
    quality = MetricsCalculator(OUTPUT).calc(ids=ids, y_pred={OUTPUT: logits}, x=inputs, y_real=labels)
    print(f"on {len(ids)} held-out volumes: {quality}", flush=True)

    partial = options.directory / ".model.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for name in ENTRYPOINTS:
        shutil.copyfile(Path(__file__).parent / name, partial / name)
    save_model(model, str(partial / "unet.safetensors"))
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


if __name__ == "__main__":
    main()
