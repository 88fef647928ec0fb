"""From an English text to character ids."""

from pathlib import Path

import numpy as np

CHARACTERS = "\0-!'\"(),.:;? ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""The characters by id; 0 is padding. The model has room for 148: others of its kind add a dictionary's phonemes."""
IDS = {character: number for number, character in enumerate(CHARACTERS)}


def read_sentences(file: Path) -> list[str]:
    """Lines of a UTF-8 text file that hold something."""
    return [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def encode(sentences: list[str], length: int) -> np.ndarray:
    """Ids, int64 (sentences, length), padded with 0; a longer sentence is cut, an unknown character is a space."""
    ids = np.zeros((len(sentences), length), dtype=np.int64)
    for row, sentence in zip(ids, sentences, strict=True):
        known = [IDS.get(character, IDS[" "]) for character in sentence[:length]]
        row[: len(known)] = known
    return ids
