"""Universal Binary JSON, as far as XGBoost writes it (ubjson.org, draft 12; XGBoost's src/common/json.cc)."""

from typing import Any

import numpy

from triton_converters.trees.forest import BrokenError

NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
"""NumPy's types by the marker of a number."""
WORDS = {b"Z": None, b"T": True, b"F": False}
DEEPEST = 64
"""Values within values; XGBoost's models have 9."""


def loads(content: bytes) -> Any:
    """Return the value: dicts, lists, texts, numbers, and arrays of NumPy where numbers of one type follow each other.

    Raises BrokenError.
    """
    reader = _Scanner(content)
    return reader.value(reader.take(1), 0)


class _Scanner:
    """Reads from the beginning to the end; nothing is made that is larger than what the file holds."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if not 0 <= size <= len(self._content) - self._at:
            raise BrokenError("ends too early, or names a length that it does not have")
        self._at += size
        return self._content[self._at - size : self._at]

    def value(self, marker: bytes, depth: int) -> Any:
        """Return the value that follows a marker."""
        if depth > DEEPEST:
            raise BrokenError(f"has more than {DEEPEST} values within values")
        if marker in NUMBERS:
            return self._numbers(marker, 1)[0].item()
        if marker in WORDS:
            return WORDS[marker]
        if marker == b"S":
            return self._text()
        if marker == b"[":
            return self._array(depth)
        if marker == b"{":
            return self._object(depth)
        raise BrokenError(f"has a value of unknown type {marker!r}")

    def _numbers(self, marker: bytes, count: int) -> Any:
        kind = numpy.dtype(NUMBERS[marker])
        return numpy.frombuffer(self.take(count * kind.itemsize), kind).astype(kind.newbyteorder("="))

    def _length(self) -> int:
        marker = self.take(1)
        if marker not in NUMBERS or marker in b"dD":
            raise BrokenError(f"has a length of type {marker!r}")
        length = self._numbers(marker, 1)[0].item()
        assert isinstance(length, int)
        return length

    def _text(self) -> str:
        return self.take(self._length()).decode(errors="replace")

    def _array(self, depth: int) -> Any:
        marker = self.take(1)
        if marker == b"$":
            kind = self.take(1)
            if kind not in NUMBERS or self.take(1) != b"#":
                raise BrokenError(f"has an array of type {kind!r}")
            return self._numbers(kind, self._length())
        if marker == b"#":
            return [self.value(self.take(1), depth + 1) for _ in range(self._length())]
        found = []
        while marker != b"]":
            found.append(self.value(marker, depth + 1))
            marker = self.take(1)
        return found

    def _object(self, depth: int) -> dict[str, Any]:
        found = {}
        while self._content[self._at : self._at + 1] != b"}":
            name = self._text()
            found[name] = self.value(self.take(1), depth + 1)
        self.take(1)
        return found
