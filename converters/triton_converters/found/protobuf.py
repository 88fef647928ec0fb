"""The fields of a protobuf message, without its schema and without reading what they hold."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

MOST_FIELDS = 100_000
"""Fields of the outermost message. A model has one for its graph and some dozens of others."""
LONGEST_VARINT = 10
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types."""


def is_message(path: Path, known: Collection[int], needed: Collection[int]) -> bool:
    """Whether a file is one whole message of ``known`` fields, with all that are ``needed``, which hold messages."""
    found = set()
    try:
        with path.open("rb") as file:
            for count, (number, wire_type) in enumerate(_fields(file, path.stat().st_size)):
                if count >= MOST_FIELDS or number not in known or (number in needed and wire_type != BYTES):
                    return False
                found.add(number)
    except ValueError:
        return False
    return found >= set(needed)


def _fields(file: BinaryIO, size: int) -> Iterator[tuple[int, int]]:
    """Yield number and wire type of each field. Raises ValueError if it is no message, or is cut."""
    while file.tell() < size:
        tag = _varint(file)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == VARINT:
            _varint(file)
        elif wire_type in (FIXED64, FIXED32):
            file.seek(8 if wire_type == FIXED64 else 4, 1)
        elif wire_type == BYTES:
            length = _varint(file)
            if length > size - file.tell():
                raise ValueError("the field is longer than the file")
            file.seek(length, 1)
        else:
            raise ValueError(f"wire type {wire_type}")
        if file.tell() > size:
            raise ValueError("the file is cut")
        yield number, wire_type


def _varint(file: BinaryIO) -> int:
    value = 0
    for position in range(LONGEST_VARINT):
        byte = file.read(1)
        if not byte:
            raise ValueError("the file is cut")
        value |= (byte[0] & 0x7F) << (7 * position)
        if byte[0] < 0x80:
            return value
    raise ValueError("the number is too long")
