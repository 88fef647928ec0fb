"""Seeded random batches for each model."""

from collections.abc import Callable, Iterator

import numpy as np

Batch = tuple[list[str], dict[str, np.ndarray], None]


def get_dataloader_fn(
    kind: str, batch_size: int, batches: int = 3, rename: tuple[str, ...] = ()
) -> Callable[[], Iterator[Batch]]:
    random = np.random.default_rng(3)

    def normal(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    def inputs(size: int, number: int) -> dict[str, np.ndarray]:
        match kind:
            case "Classifier":
                return {"INPUT__0": normal(size, 1, 8, 8)}
            case "Recommender":
                return {"items": random.integers(0, 20, (size, 5)), "visitor": normal(size, 4)}
            case "Masked":
                length = 6 + number
                return {"steps": normal(size, length, 4), "mask": random.random((size, length)) > 0.3}
            case "Points":
                return {"points": normal(6 + number, 3)}
            case "Attention" | "Recurrent":
                return {"x": normal(size, 6 + number, 8)}
            case "Swapped" | "KeywordOnly":
                return {name: normal(size, 4) for name in ("types", "mask", "ids")}
            case "LeftOut":
                return {name: normal(size, 4) for name in ("types", "ids")}
            case "Looked":
                return {"x": random.integers(0, 20, (size, 5 + number))}
            case "Folding":
                return {"x": normal(size, 4, 9)}
            case "Unused":
                return {"x": normal(size, 4), "ignored": normal(size, 2)}
        if kind == "Branching":
            return {"x": np.abs(normal(size, 4)) * (-1) ** number}
        return {"x": normal(size, 4)}

    def generate() -> Iterator[Batch]:
        for number in range(batches):
            arrays = inputs(batch_size, number)
            arrays = dict(zip(rename, arrays.values(), strict=True)) if rename else arrays
            yield [f"{number}/{index}" for index in range(batch_size)], arrays, None

    return generate
