"""The fields of a protobuf message in a file, without its schema. Only what is asked for is read."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import BinaryIO

MOST_FIELDS = 1_000_000
"""Fields that are read of a file. A large graph has some ten thousand nodes and weights."""
LONGEST_VARINT = 10
LONGEST_TEXT = 4096
"""The limit of a name, in bytes."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types."""


class CutError(ValueError):
    """The file ends within a field."""


@dataclass(frozen=True)
class Field:
    """One field."""

    number: int
    wire_type: int
    value: int
    """The number of a varint; of bytes, where they begin in the file; of other types, 0."""
    size: int = 0
    """Number of bytes."""


@dataclass(frozen=True)
class Message:
    """A message between two places of a file. Its methods raise ValueError if it is no message, is cut or too long."""

    file: BinaryIO
    start: int
    end: int
    number: Iterator[int]
    """Numbers the fields that were read of the whole file."""

    def fields(self) -> Iterator[Field]:
        """Yield each field; other parts of the file may be read in between.

        Raises CutError if the message is cut, and ValueError if it has too many fields, or one of a number or a wire
        type that protobuf does not know.
        """
        place = self.start
        while place < self.end:
            if next(self.number) >= MOST_FIELDS:
                raise ValueError("too many fields")
            self.file.seek(place)
            tag = _varint(self.file)
            number = tag >> 3
            wire_type = tag & 7
            if not number:
                # A file of zeros would be a million fields.
                raise ValueError("a field has the number 0")
            value = size = 0
            if wire_type == VARINT:
                value = _varint(self.file)
            elif wire_type in (FIXED64, FIXED32):
                size = 8 if wire_type == FIXED64 else 4
            elif wire_type == BYTES:
                size = _varint(self.file)
                value = self.file.tell()
            else:
                raise ValueError(f"wire type {wire_type}")
            place = self.file.tell() + size
            if place > self.end:
                raise CutError("the message is cut")
            yield Field(number, wire_type, value, size)

    def inner(self, number: int) -> Iterator["Message"]:
        """Yield the messages in all fields of that number."""
        for field in self.fields():
            if field.number == number and field.wire_type == BYTES:
                yield Message(self.file, field.value, field.value + field.size, self.number)

    def text(self, number: int) -> str:
        """Return the text in the last field of that number; empty: there is none.

        Raises ValueError if the message is cut, or the text is too long for a name.
        """
        found = [each for each in self.fields() if each.number == number and each.wire_type == BYTES]
        if not found:
            return ""
        if found[-1].size > LONGEST_TEXT:
            raise ValueError("the name is too long")
        self.file.seek(found[-1].value)
        return self.file.read(found[-1].size).decode()

    def integer(self, number: int) -> int | None:
        """Return the signed integer in the last field of that number; None: there is none."""
        found = [each.value for each in self.fields() if each.number == number and each.wire_type == VARINT]
        return (found[-1] + 2**63) % 2**64 - 2**63 if found else None


@contextmanager
def opened(path: Path) -> Iterator[Message]:
    """Open a file that is one message. Raises OSError."""
    with path.open("rb") as file:
        yield Message(file, 0, path.stat().st_size, count())


@dataclass(frozen=True)
class Fields:
    """The fields of a file that is one message, by their numbers."""

    numbers: frozenset[int]
    others: frozenset[int]
    """The numbers of fields that hold no bytes, so no message."""
    is_cut: bool
    """Whether the file ends within a field."""

    def are(self, known: Collection[int], needed: Collection[int], one_of: Collection[int] = ()) -> bool:
        """Whether the file is whole, all are ``known``, and there are those that are ``needed``, which hold messages.

        ``one_of``: fields of which there is at least one; empty: any.
        """
        return (
            not self.is_cut
            and self.numbers <= frozenset(known)
            and frozenset(needed) <= self.numbers - self.others
            and (not one_of or not self.numbers.isdisjoint(one_of))
        )


NO_FIELDS = Fields(frozenset(), frozenset(), is_cut=False)


def fields_of(path: Path) -> Fields:
    """Return the fields of a file; none if it is no message. Raises OSError."""
    numbers: set[int] = set()
    others: set[int] = set()
    try:
        with opened(path) as message:
            for field in message.fields():
                numbers.add(field.number)
                if field.wire_type != BYTES:
                    others.add(field.number)
    except CutError:
        return Fields(frozenset(numbers), frozenset(others), is_cut=True)
    except ValueError:
        return NO_FIELDS
    return Fields(frozenset(numbers), frozenset(others), is_cut=False)


def _varint(file: BinaryIO) -> int:
    value = 0
    for position in range(LONGEST_VARINT):
        byte = file.read(1)
        if not byte:
            raise CutError("the file is cut")
        value |= (byte[0] & 0x7F) << (7 * position)
        if byte[0] < 0x80:
            return value
    raise ValueError("the number is too long")
