"""A synthetic click log in the form of Criteo's: 13 numbers, 26 categories and a click, or none, an impression.

The signal is planted: the odds of a click depend on six of the numbers, on the values of the twelve smallest categories
and on pairs of them. The other columns are noise. It says nothing about how good the models are on real clicks.
"""

import numpy as np

NUMBERS = 13
CARDINALITIES = (
    1500, 800, 400, 250, 1200, 3, 600, 120, 40, 1800, 900, 350, 10, 200, 1000, 150, 4, 90, 14, 2000, 700, 1100, 60, 24,
    12, 30,
)  # fmt: skip
"""Values of each category. Criteo's 1 TB log has up to 40 million in one, which no disk of a demonstration holds."""
OFFSETS = np.concatenate([[0], np.cumsum(CARDINALITIES)[:-1]])
"""Where each category begins in one table that holds all."""
ROWS = sum(CARDINALITIES)
SIGNAL_NUMBERS = 6
SIGNAL_CATEGORIES = 12
SEED = 7

Log = tuple[np.ndarray, np.ndarray, np.ndarray]


def generate(impressions: int, seed: int) -> Log:
    """Numbers (n, 13) float32, categories (n, 26) int64, each from 0, and clicks (n,) float32, 0 or 1.

    Every call plants the same signal; ``seed`` chooses the impressions.
    """
    planted, drawn = np.random.default_rng(SEED), np.random.default_rng(seed)
    small = np.argsort(CARDINALITIES)[:SIGNAL_CATEGORIES]
    effects = [planted.normal(0, 0.5, CARDINALITIES[column]) for column in small]
    weights = planted.normal(0, 0.6, SIGNAL_NUMBERS)

    numbers = drawn.normal(0, 1, (impressions, NUMBERS)).astype(np.float32)
    # Few values are common and many are rare, as in any log.
    categories = np.stack(
        [np.floor(size * drawn.random(impressions) ** 2).astype(np.int64) for size in CARDINALITIES], axis=1
    )
    contributions = [effect[categories[:, column]] for effect, column in zip(effects, small, strict=True)]
    logits = numbers[:, :SIGNAL_NUMBERS] @ weights + sum(contributions)
    logits += 2 * contributions[0] * contributions[1] + contributions[2] * numbers[:, 0] - 0.5
    clicks = drawn.random(impressions) < 1 / (1 + np.exp(-logits))
    return numbers, categories, clicks.astype(np.float32)
