"""Two embedding tables for the format hps."""

import numpy as np

Tables = dict[str, tuple[np.ndarray, np.ndarray]]


def get_model(rows: int = 50) -> tuple[Tables, dict[str, list[str]]]:
    """Seeded vectors of 4 and 2 elements."""
    random = np.random.default_rng(3)
    tables = {
        name: (np.arange(rows, dtype=np.int64), random.normal(size=(rows, width)).astype(np.float32))
        for name, width in (("visitors", 4), ("items", 2))
    }
    return tables, {"inputs": ["KEYS", "NUMKEYS"], "outputs": ["OUTPUT0"]}
