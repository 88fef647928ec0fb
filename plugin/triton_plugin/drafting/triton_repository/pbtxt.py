"""Reads the text of a config.pbtxt without Triton's message, as far as an object is made of it. Pure.

Standard library only, because the plugin comes without protobuf. It takes more than Triton does: fields that it does
not know, and values of another kind. Whatever an object gets of it is judged by the CRD, and the text itself by the
source Job, or by the server.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Union

from triton_converters.contract.repository_config import LONGEST

DEEPEST = 32
"""The most messages within messages; Triton's own have seven."""
TRUE = ("true", "True", "t", "1")
FALSE = ("false", "False", "f")
"""How a text says what a field without a value says, too."""
SWITCHES = frozenset(
    {
        *("decoupled", "enable", "optional", "allow_ragged_batch", "is_shape_tensor", "is_non_linear_format_io"),
        *("preserve_ordering", "eager_batching", "passive"),
    }
)
"""Fields that are true or false, of which 0 is false; a number of another field may be one of a list."""
MAPS = frozenset(
    {"parameters", "input_map", "output_map", "metric_tags", "reshape", "model_warmup", "cc_model_filenames"}
)
"""Messages that are taken, or judged, whole."""
Value = Union[str, "Fields"]
Fields = Mapping[str, list[Value]]
"""The values of each field by its name, in their order; a message is one value."""

_TOKEN = re.compile(
    r"(?:\s|#[^\n]*(?:\n|\Z))*(?:(?P<word>[-+]?[A-Za-z0-9_.][A-Za-z0-9_.+-]*)"
    r"|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<mark>[{}<>\[\]:,;])|(?P<end>\Z))"
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "?": "?"}
_CLOSED = {"{": "}", "<": ">"}


class PbtxtError(ValueError):
    """A text that is no config.pbtxt; the words say where."""


def read(content: bytes) -> Fields:
    """Return the fields of the file. Raises PbtxtError."""
    if len(content) > LONGEST:
        raise PbtxtError(f"it is longer than {LONGEST} bytes")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise PbtxtError("it is not in UTF-8") from error
    return _Reader(text).message("", 0)


def word(fields: Fields, name: str, default: str = "") -> str:
    """Return the last value of a field that is no message; ``default``: there is none."""
    return next((each for each in reversed(fields.get(name, [])) if isinstance(each, str)), default)


def words(fields: Fields, name: str) -> list[str]:
    """Return the values of a field that are no messages."""
    return [each for each in fields.get(name, []) if isinstance(each, str)]


def number(fields: Fields, name: str, default: int = 0) -> int:
    """Return the last value of a field as a whole number. Raises PbtxtError if it is none."""
    return whole(word(fields, name, str(default)), name)


def whole(text: str, name: str) -> int:
    """Return a value of the field as a whole number. Raises PbtxtError if it is none, or has more than 18 digits.

    To Triton, digits after a zero are those of an octal number.
    """
    if not re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", text):
        raise PbtxtError(f"{name} must be a whole number, without a zero before it: correct it")
    return int(text)


def is_true(fields: Fields, name: str) -> bool:
    """Whether a field says that something is so."""
    return word(fields, name) in TRUE


def messages(fields: Fields, name: str) -> list[Fields]:
    """Return the messages of a field."""
    return [each for each in fields.get(name, []) if not isinstance(each, str)]


def entries(fields: Fields, name: str) -> dict[str, str]:
    """Return a map of words, such as ``input_map``."""
    return {word(each, "key"): word(each, "value") for each in messages(fields, name)}


def paths(fields: Fields, above: str = "") -> Iterator[str]:
    """Yield the path of each field that is set, and of each message that sets nothing; a map is one field.

    What says false sets nothing.
    """
    for name, values in fields.items():
        path = f"{above}{name}"
        for each in values:
            if isinstance(each, str):
                if each not in FALSE and not (each == "0" and name in SWITCHES):
                    yield path
            elif name in MAPS:
                yield path
            else:
                yield from list(paths(each, f"{path}.")) or [path]


class _Reader:
    """One text, token by token."""

    def __init__(self, text: str) -> None:
        self._text, self._position = text, 0
        self._next()

    def message(self, close: str, depth: int) -> Fields:
        """Return the fields up to the mark that closes the message; empty: up to the end."""
        if depth > DEEPEST:
            raise PbtxtError(f"it has more than {DEEPEST} messages within messages")
        fields: dict[str, list[Value]] = {}
        while not self._closes(close):
            name = self._token["word"]
            if not name:
                raise self._fault("a field's name")
            self._next()
            has_colon = self._skip(":")
            fields.setdefault(name, []).extend(self._values(depth, has_colon))
            while self._skip(",") or self._skip(";"):
                pass
        return fields

    def _closes(self, close: str) -> bool:
        return bool(self._skip(close)) if close else self._token["end"] is not None

    def _values(self, depth: int, has_colon: bool) -> list[Value]:
        if not self._skip("["):
            return [self._value(depth, has_colon)]
        found: list[Value] = []
        while not self._skip("]"):
            found.append(self._value(depth, True))
            self._skip(",")
        return found

    def _value(self, depth: int, may_be_word: bool) -> Value:
        for opening, closing in _CLOSED.items():
            if self._skip(opening):
                return self.message(closing, depth + 1)
        if not may_be_word:
            raise self._fault("`:` or `{`")
        if (found := self._token["word"]) is not None:
            self._next()
            return found
        parts: list[str] = []
        while (text := self._token["text"]) is not None:
            parts.append(_ESCAPE.sub(self._escaped, text[1:-1]))
            self._next()
        if not parts:
            raise self._fault("a value")
        return "".join(parts)

    def _escaped(self, found: re.Match[str]) -> str:
        if found[1] not in _ESCAPED:
            raise PbtxtError(f"line {self._line()}: write the character itself, not \\{found[1]}")
        return _ESCAPED[found[1]]

    def _skip(self, mark: str) -> bool:
        if self._token["mark"] != mark:
            return False
        self._next()
        return True

    def _next(self) -> None:
        found = _TOKEN.match(self._text, self._position)
        if found is None:
            raise self._fault("a field")
        self._token, self._position = found, found.end()

    def _fault(self, expected: str) -> PbtxtError:
        return PbtxtError(f"line {self._line()}: {expected} is expected")

    def _line(self) -> int:
        return self._text.count("\n", 0, self._position) + 1
