"""Fit FastPitch's predictors and its last layer to a made-up voice, and publish what the example needs.

The transformers keep weights drawn from a seed. The two predictors are trained on the encoder's output with Adam, the
last layer is fitted by ridge regression. Below --directory: model/ (user files, text.txt and fastpitch.safetensors). It
appears by one rename, so a reader finds all of it or nothing.
"""

import argparse
import shutil
import time
from pathlib import Path

import numpy as np
import torch
from dataloader import get_dataloader_fn
from metrics import MetricsCalculator
from model import OUTPUTS, FastPitch, Predictor, repeat
from safetensors.torch import save_model
from text import encode, read_sentences
from torch import Tensor
from voice import durations, pitches, spectra

SEED = 0
LENGTH = 128
HELD_OUT = 16
"""Sentences at the beginning of the text that nothing is fitted to."""
LEARNING_RATE = 2e-3
RIDGE = 1e-3
"""The ridge as a share of the mean square of the features."""
FILES = ("model.py", "dataloader.py", "metrics.py", "text.py", "voice.py", "text.txt")


def learn(predictor: Predictor, encoded: Tensor, mask: Tensor, wanted: Tensor, steps: int) -> float:
    """Train a predictor for ``wanted`` (batch, time); gives the largest error left."""
    predictor.requires_grad_(True)
    optimizer = torch.optim.Adam(predictor.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LEARNING_RATE, total_steps=steps)
    error = torch.zeros(())
    for _ in range(steps):
        optimizer.zero_grad()
        error = predictor(encoded, mask).squeeze(2) - wanted
        error.square().sum().div(mask.sum()).backward()
        optimizer.step()
        schedule.step()
    predictor.requires_grad_(False)
    return float(error.detach().abs().max())


def fit(texts: np.ndarray, steps: int) -> FastPitch:
    """The seeded network, fitted to the voice on ``texts`` (sentences, characters)."""
    torch.manual_seed(SEED)
    model = FastPitch().eval().requires_grad_(False)
    ids = torch.from_numpy(texts)
    mask = (ids != 0).unsqueeze(2)
    frames, pitch, spectrum = (torch.from_numpy(rule())[ids] for rule in (durations, pitches, spectra))
    encoded = model.encoder(model.embedding(ids), mask)
    for what, predictor, rule in (
        ("log durations", model.durations, torch.log1p(frames)),
        ("pitch", model.pitch, pitch),
    ):
        print(f"{what}: largest error {learn(predictor, encoded, mask, rule, steps):.3f}", flush=True)

    pitched = encoded + model.pitch_embedding(model.pitch(encoded, mask).transpose(1, 2)).transpose(1, 2)
    wanted, spoken = repeat(spectrum, frames.long())
    features = model.decoder(repeat(pitched, frames.long())[0], spoken)[spoken.squeeze(2)]
    wanted = wanted[spoken.squeeze(2)]
    centre, mean = features.mean(0), wanted.mean(0)
    gram = (features - centre).T @ (features - centre)
    gram += RIDGE * gram.diagonal().mean() * torch.eye(len(gram))
    weight = torch.linalg.solve(gram, (features - centre).T @ (wanted - mean)).T
    model.head.weight.copy_(weight)
    model.head.bias.copy_(mean - weight @ centre)
    return model


def main() -> None:
    """Fit, publish, and say how close to the voice the sentences are that the network has not seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=120, help="of Adam, for each predictor")
    options = parser.parse_args()
    start, here, target = time.monotonic(), Path(__file__).parent, options.directory / "model"
    sentences = read_sentences(here / "text.txt")[HELD_OUT:]
    model = fit(encode(sentences, max(map(len, sentences))), options.steps)
    print(f"fitted in {time.monotonic() - start:.1f} s", flush=True)

    ids, inputs, labels = next(get_dataloader_fn(LENGTH, sentences=4, batch_size=4)())
    with torch.inference_mode():
        answers = model(torch.from_numpy(inputs["INPUT__0"]))
    spoken = {name: answer.numpy() for name, answer in zip(OUTPUTS, answers, strict=True)}
    print(
        f"on {len(ids)} held-out sentences: {MetricsCalculator().calc(ids=ids, y_pred=spoken, x=inputs, y_real=labels)}"
    )

    partial = options.directory / ".model.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for name in FILES:
        shutil.copyfile(here / name, partial / name)
    save_model(model, str(partial / "fastpitch.safetensors"))
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


if __name__ == "__main__":
    main()
