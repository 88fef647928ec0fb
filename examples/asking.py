"""What a client sends to the samples of what people serve, and what it gets: a picture's file, a text."""

import importlib.util
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import tritonclient.grpc
from PIL import Image

TIMEOUT_SECONDS = 10
LEAST_PROBABILITY = 0.5
TEXTS = {
    "Bitte eine gültige Adresse eingeben.": "de",
    "Veuillez saisir une adresse valide.": "fr",
    "Ange en giltig adress.": "sv",
}
"""Sentences and their languages."""


@dataclass(frozen=True)
class Answer:
    """What a client got for one request."""

    sent: str
    """What was sent, in words."""
    wanted: str
    """The right label."""
    label: str
    probability: float

    def __str__(self) -> str:
        """The answer in words."""
        return f"{self.sent} is {self.label}, with probability {self.probability:.3f}"

    @property
    def fault(self) -> str:
        """What is wrong with the answer; empty: nothing."""
        if self.label != self.wanted:
            return f"{self}, and {self.wanted} is right"
        return "" if LEAST_PROBABILITY < self.probability <= 1 else f"{self}, which is no probability of a sure label"


def pictures(url: str, folder: Path) -> list[Answer]:
    """Send a PNG and a JPEG, each of a held-out picture; ``folder``: the sample's files, ``url``: host:port, gRPC.

    Raises tritonclient.utils.InferenceServerException where the server does not answer.
    """
    _, inputs, labels = next(user_file(folder, "dataloader").get_dataloader_fn(2)())
    png, other = inputs["FILE"][:, 0]
    files = (("a PNG", png), ("a JPEG", as_jpeg(other)))
    return [
        ask(url, "pictures", "FILE", file, f"{kind} of a written {wanted}", wanted)
        for (kind, file), wanted in zip(files, labels["label"].tolist(), strict=True)
    ]


def texts(url: str, folder: Path) -> list[Answer]:
    """Send sentences. Raises as ``pictures``."""
    return [ask(url, "texts", "TEXT", text.encode(), f"the text {text!r}", wanted) for text, wanted in TEXTS.items()]


def as_jpeg(file: bytes) -> bytes:
    """Return a picture's file as a JPEG."""
    written = io.BytesIO()
    with Image.open(io.BytesIO(file)) as picture:
        picture.save(written, "JPEG")
    return written.getvalue()


def user_file(folder: Path, name: str) -> ModuleType:
    """Return the module of a folder that has this name."""
    specification = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def faults(answers: Sequence[Answer]) -> list[str]:
    """Return one sentence for each answer that is wrong."""
    return [each.fault for each in answers if each.fault]


def ask(url: str, model: str, name: str, content: bytes, sent: str, wanted: str) -> Answer:
    """Send one sample to a pipeline whose outputs are LABEL and PROBABILITY. Raises as ``pictures``.

    ``name``: of its input. ``sent``: the sample in words. ``wanted``: the right label.
    """
    value = np.array([[content]], dtype=object)
    given = tritonclient.grpc.InferInput(name, value.shape, "BYTES")
    given.set_data_from_numpy(value)
    with tritonclient.grpc.InferenceServerClient(url) as client:
        result = client.infer(model, [given], client_timeout=TIMEOUT_SECONDS)
        label, probability = result.as_numpy("LABEL"), result.as_numpy("PROBABILITY")
    return Answer(sent, wanted, label[0, 0].decode(), float(probability[0, 0]))
