"""How the example's one voice would say each character: the rule that the weights are fitted to, and measured against.

It is made up, not recorded: each character has its own duration, pitch and spectrum.
"""

import numpy as np
from text import CHARACTERS

BANDS = 80
SILENCE = -11.5
"""Natural logarithm of a mel band's amplitude where there is nothing: log(1e-5)."""
VOWELS, STOPS = "aeiouyAEIOUY", " -!'\"(),.:;?"


def durations() -> np.ndarray:
    """Frames of each character by its id, float32 (ids,): a vowel 4, another letter 2 or 3, a pause 3; padding 0."""
    frames = [4 if letter in VOWELS else 3 if letter in STOPS else 2 + number % 2 for number, letter in _numbered()]
    return np.array([0, *frames], dtype=np.float32)


def pitches() -> np.ndarray:
    """Pitch of each character by its id, in standard deviations, float32 (ids,): vowels are high, pauses are low."""
    pitch = [
        1.0 if letter in VOWELS else -1.0 if letter in STOPS else 0.05 * (number % 7) for number, letter in _numbered()
    ]
    return np.array([0.0, *pitch], dtype=np.float32)


def spectra() -> np.ndarray:
    """Log mel amplitudes of each character by its id, float32 (ids, 80): two formants, or silence."""
    bands = np.arange(BANDS)
    rows = [np.full(BANDS, SILENCE)]
    for number, letter in _numbered():
        formants = sum(np.exp(-(((bands - centre) / 9.0) ** 2)) for centre in (8 + number % 23, 35 + 2 * number % 41))
        rows.append(np.where(letter in STOPS, SILENCE, -9.0 + 9.5 * formants))
    return np.stack(rows).astype(np.float32)


def _numbered() -> list[tuple[int, str]]:
    return list(enumerate(CHARACTERS))[1:]
