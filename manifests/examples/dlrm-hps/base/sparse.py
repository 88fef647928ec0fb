"""The sparse part: one embedding table that holds all 26 categories' vectors, one after the other."""

import numpy as np
from safetensors.numpy import load_file

Tables = dict[str, tuple[np.ndarray, np.ndarray]]


def get_model(checkpoint: str) -> tuple[Tables, dict[str, list[str]]]:
    """Read the table, float32 (rows, 128); its keys are the rows' numbers. The names are the hps backend's own."""
    vectors = load_file(checkpoint)["embeddings"]
    tables = {"embeddings": (np.arange(len(vectors), dtype=np.int64), vectors)}
    return tables, {"inputs": ["KEYS", "NUMKEYS"], "outputs": ["OUTPUT0"]}
