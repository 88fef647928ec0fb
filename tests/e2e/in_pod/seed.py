"""python3 seed.py SOURCE DATA: write checkpoints of seeded random weights, good and bad, and labels.

Labels are the classes the model itself chooses: its accuracy is 1 by construction, and tells a broken conversion from a
good one. They say nothing about the model.
"""

import os
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

SOURCE, DATA = map(Path, sys.argv[1:])
sys.path.insert(0, str(SOURCE))


class Hostile:
    """Unpickled, it runs a command; whoever finds the file knows that a checkpoint was executed."""

    def __reduce__(self):
        return os.system, ("touch /repository/canary",)


def main():
    from classifier import Classifier
    from loader import SAMPLES, samples_of
    from ranking import Ranking
    from recommender import Recommender
    from sequence import Tagger

    models = {"classifier": Classifier(), "recommender": Recommender(), "sequence": Tagger(), "ranking": Ranking()}
    for number, (name, model) in enumerate(models.items()):
        torch.manual_seed(number)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        save_file(model.state_dict(), SOURCE / f"{name}.safetensors")
    weights = models["classifier"].state_dict()
    torch.save(weights, SOURCE / "classifier.pt")
    torch.save({**weights, "extra": Hostile()}, SOURCE / "hostile.pt")
    whole = (SOURCE / "classifier.safetensors").read_bytes()
    (SOURCE / "corrupt.safetensors").write_bytes(whole[: len(whole) // 2])
    (SOURCE / "corrupt.pt").write_bytes((SOURCE / "classifier.pt").read_bytes()[:200])
    inputs = np.concatenate([samples_of("classifier", start, 8)["INPUT__0"] for start in range(0, SAMPLES, 8)])
    with torch.no_grad():
        classes = models["classifier"](torch.from_numpy(inputs)).argmax(dim=1).numpy()
    np.save(SOURCE / "classes.npy", classes)
    np.save(DATA / "classes.npy", classes)


main()
