"""Every way in which a dataloader can go wrong, by the argument ``fault``."""

from collections.abc import Callable, Iterator

import numpy as np

Batch = tuple[list[str], dict[str, np.ndarray], dict[str, np.ndarray]]


def get_dataloader_fn(fault: str, batch_size: int = 8) -> Callable[[], Iterator[Batch]]:
    """Yield what ``fault`` says for the classifier, whose input is INPUT__0 (batch, 8)."""

    def batches() -> Iterator[Batch]:
        ids = [str(number) for number in range(4)]
        features = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
        match fault:
            case "wrong-names":
                yield ids, {"features": features}, {}
            case "wrong-shapes":
                yield ids, {"INPUT__0": features[:, :7]}, {}
            case "wrong-count":
                yield ids, {"INPUT__0": features[:3]}, {}
            case "raises":
                raise OSError("the feature store is closed")

    return batches
