"""A Keras file as its user loads it."""

from typing import Any

import keras


def get_model(checkpoint: str) -> tuple[Any, dict[str, list[str]]]:
    """Return the network with its weights."""
    return keras.models.load_model(checkpoint), {"inputs": ["pictures"], "outputs": ["classes"]}
