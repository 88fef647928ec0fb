"""The envelope of a Job's answer: one JSON document of at most 4,000 bytes in its container's termination message.

The kubelet silently cuts a message at 4,096 bytes, and at 12,288 bytes divided by the number of the pod's containers.
A document that is longer than the first is refused here. The second depends on the pod and on what a webhook adds to
it: the operator then reads the result by another Job, because the same document is stored as ``result.json`` in the
directory of its key on the claim. The Jobs write it and the operator reads it; standard library only.

User code runs in the Jobs and can write all of this itself, so the reader does not trust it.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, Self

from triton_converters.contract.document import LARGEST_INTEGER, Document, DocumentError, decode, given, wrong_type
from triton_converters.contract.reasons import FAILURES, Reason
from triton_converters.contract.results import SCENARIOS, CandidateMetrics, Row, SearchPoint, Tuning
from triton_converters.contract.search_parts import PART_POINTS, REPEATS
from triton_converters.contract.stages import STAGES
from triton_converters.contract.text import printable, shortened

MESSAGE_LIMIT_BYTES = 4000
FAILURE_LIMIT_BYTES = 1000
"""Longest failure, which is stored nowhere else: it fits into the message of a pod of twelve containers."""
MESSAGES_REMEMBERED = 32
"""The number of messages whose content is remembered. Few are, because user code writes them: one may take some MiB. An
object of four candidates has a dozen."""
MESSAGE_CUT_BYTES = 4096
"""Length at which the kubelet cuts; a longer text was never a termination message. Source:
MaxContainerTerminationMessageLength, and MaxPodTerminationMessageLogLength for the next one."""
POD_MESSAGES_BYTES = 12288
"""What the messages of all containers of a pod share evenly, however long they are."""
INFLATED_LIMIT_BYTES = 64 * 1024
"""Longest JSON of a deflated result, once inflated."""
EXIT_FINAL = 42
"""Exit code of a failure that a second run of the same Job cannot fix; the podFailurePolicy fails the Job at once."""

EXIT_RETRY = 1
"""Exit code of a failure that another try may fix."""
FEWER_TENSORS = "give the model fewer inputs and outputs, such as one input with all columns, or shorter names to them"
"""What to do about a result that is too long: most of it are the names of tensors."""


class MessageTooLongError(ValueError):
    """The document does not fit into a termination message."""


@dataclass(frozen=True)
class Outcome:
    """The envelope: a stage and a key, and either a result or a reason with a message."""

    stage: str
    key: str
    result: Document | None
    reason: Reason | None = None
    message: str = ""

    def to_json(self) -> str:
        """Return compact JSON with rows as arrays; deflates a result that is too long and shortens a failure's message.

        Raises MessageTooLongError if a result still exceeds MESSAGE_LIMIT_BYTES, or exceeds INFLATED_LIMIT_BYTES.
        """
        if self.result is None:
            return self._failure()
        packed = _pack(_plain(self.result))
        text = self._envelope(result=packed)
        if len(text.encode()) > MESSAGE_LIMIT_BYTES:
            text = self._envelope(deflated=_deflate(_compact(packed)))
        if len(text.encode()) > MESSAGE_LIMIT_BYTES:
            raise MessageTooLongError(
                f"{self.stage}: the result has {len(text.encode())} bytes, the limit is {MESSAGE_LIMIT_BYTES}"
            )
        return text

    def _failure(self) -> str:
        message = printable(self.message)
        room = FAILURE_LIMIT_BYTES
        while True:
            text = self._envelope(reason=str(self.reason), message=shortened(message, room))
            excess = len(text.encode()) - FAILURE_LIMIT_BYTES
            if excess <= 0 or room == 0:
                return text
            # JSON doubles backslashes, quotes and line ends.
            room = max(0, room - (excess + 1) // 2)

    def _envelope(self, **content: Any) -> str:
        return _compact({"stage": self.stage, "key": self.key} | content)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse an envelope; raises DocumentError if the text is anything else."""
        if len(text) > MESSAGE_CUT_BYTES or len(text.encode(errors="replace")) > MESSAGE_CUT_BYTES:
            raise DocumentError(f"the message is longer than {MESSAGE_CUT_BYTES} bytes")
        envelope = _Envelope.from_json(text)
        packed = envelope.result if envelope.deflated is None else decode(_inflate(envelope.deflated), _cut)
        if packed is not None:
            if envelope.stage not in STAGES:
                raise DocumentError("the message names a stage that has no results")
            return cls(envelope.stage, envelope.key, STAGES[envelope.stage].result.from_value(_unpack(packed)))
        if envelope.reason is None or envelope.message is None:
            raise DocumentError("the message holds neither a result nor a reason with a message")
        if envelope.reason not in FAILURES:
            raise DocumentError("the message's reason is not one of a failure")
        return cls(envelope.stage, envelope.key, None, envelope.reason, envelope.message)


def inflated_bytes(text: str) -> int:
    """Return how many bytes of JSON a message is, once its result is inflated: reading it takes as long as they do.

    Raises DocumentError if it cannot be inflated.
    """
    return len(text) if '"deflated"' not in text or len(text) > MESSAGE_CUT_BYTES else _inflated_bytes(text)


@lru_cache(maxsize=MESSAGES_REMEMBERED)
def _inflated_bytes(text: str) -> int:
    deflated = _Envelope.from_json(text).deflated
    return len(text) if deflated is None else len(_inflate(deflated))


@lru_cache(maxsize=MESSAGES_REMEMBERED)
def read_again(text: str) -> Outcome:
    """Parse an envelope, or return what the same text was parsed to: each pass over an object reads all its results."""
    return Outcome.from_json(text)


@dataclass(frozen=True)
class _Envelope(Document):
    """What every message holds, and one of: a result, a deflated result, a reason with a message."""

    stage: str
    key: str
    result: Any = None
    deflated: str | None = None
    reason: Reason | None = None
    message: str | None = None


def _deflate(text: str) -> str:
    plain = text.encode()
    if len(plain) > INFLATED_LIMIT_BYTES:
        raise MessageTooLongError(
            f"the result has {len(plain)} bytes before compression, the limit is {INFLATED_LIMIT_BYTES}"
        )
    return base64.b85encode(zlib.compress(plain, 9)).decode()


def _inflate(text: str) -> str:
    inflation = zlib.decompressobj()
    try:
        # One byte more than allowed, so that inflating a result of the largest size reaches its end.
        plain = inflation.decompress(base64.b85decode(text), INFLATED_LIMIT_BYTES + 1)
        decoded = plain.decode()
    except (ValueError, zlib.error) as error:
        raise DocumentError(f"the deflated result cannot be read: {error}") from error
    if len(plain) > INFLATED_LIMIT_BYTES or not inflation.eof or inflation.unused_data:
        raise DocumentError(
            f"the deflated result is longer than {INFLATED_LIMIT_BYTES} bytes, is cut short, or has something after it"
        )
    return decoded


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _flags(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.type is bool)


_WHOLE = (Row, Tuning, CandidateMetrics, SearchPoint)
"""What ``_pack`` turns into arrays of all fields."""


def _plain(value: Any) -> Any:
    """Return a document as JSON, without the fields at their default: an earlier version does not know the newest."""
    if isinstance(value, _WHOLE):
        return asdict(value)
    if isinstance(value, Document):
        return {name: _plain(each) for name, each in given(value).items()}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


_SCENARIOS = set(SCENARIOS.values())
_COLUMNS = tuple(Row.__dataclass_fields__)
_ALWAYS_WRITTEN = _COLUMNS.index("request_rate")
_FLAGS = _flags(Row)
_MEBIBYTE = 2**20
"""Unit of memory in an answer, which has to be short."""
_TUNING_COLUMNS = tuple(Tuning.__dataclass_fields__)
_TUNING_FLAGS = _flags(Tuning)
_CANDIDATES = "candidates"
_CANDIDATE_COLUMNS = tuple(CandidateMetrics.__dataclass_fields__)
_POINTS = {"points": PART_POINTS, "repeats": REPEATS}
_POINT_COLUMNS = tuple(SearchPoint.__dataclass_fields__)


def _pack(result: dict[str, Any]) -> dict[str, Any]:
    """Turn rows, points and metrics into arrays in the order of their fields; names would double their length."""
    packed = dict(result)
    for scenario in packed.keys() & _SCENARIOS:
        packed[scenario] = [_pack_row(row) for row in packed[scenario]]
    for name in packed.keys() & {_CANDIDATES}:
        packed[name] = [_pack_candidate(each) for each in packed[name]]
    for name in packed.keys() & _POINTS.keys():
        packed[name] = [
            [_pack_tuning(each["tuning"]), _pack_row(each["row"]) if each["row"] else None, each["refused"]]
            for each in packed[name]
        ]
    return packed


def _unpack(result: Any) -> dict[str, Any]:
    if not isinstance(result, dict):
        raise wrong_type("result", "an object", result)
    unpacked = dict(result)
    for name in unpacked.keys() & _SCENARIOS:
        unpacked[name] = [_unpack_row(row, name) for row in _list(unpacked[name], name)]
    for name in unpacked.keys() & {_CANDIDATES}:
        unpacked[name] = [
            _named(each, _CANDIDATE_COLUMNS, name, len(_CANDIDATE_COLUMNS) - 1) for each in _list(unpacked[name], name)
        ]
    for name in unpacked.keys() & _POINTS.keys():
        unpacked[name] = [_unpack_point(each, name) for each in _list(unpacked[name], name)]
    return unpacked


def _cut(result: Any) -> Any:
    """Return a result with one point more than a part of a search may have, if it has even more.

    That suffices to refuse it, and a pass reads hundreds of parts.
    """
    if not isinstance(result, dict):
        return result
    cut = {name: result[name][: most + 1] for name, most in _POINTS.items() if isinstance(result.get(name), list)}
    return result | cut


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise wrong_type(place, "a list", value)
    return value


def _named(value: Any, columns: tuple[str, ...], place: str, least: int | None = None) -> dict[str, Any]:
    """Return a list's values by the names of its columns; the list has all columns, or at least ``least`` of them."""
    found = _list(value, place)
    if not (len(columns) if least is None else least) <= len(found) <= len(columns):
        raise DocumentError(f"{place} has {len(found)} columns, not {len(columns)}")
    return dict(zip(columns, found, strict=False))


def _unpack_point(value: Any, place: str) -> dict[str, Any]:
    point = _named(value, _POINT_COLUMNS, place)
    row = None if point["row"] is None else _unpack_row(point["row"], place)
    return point | {"tuning": _unpack_tuning(point["tuning"], place), "row": row}


def _pack_candidate(candidate: dict[str, Any]) -> list[Any]:
    """Leave out the last column, the metrics outside Triton, if there are none."""
    return [*candidate.values()][: None if candidate[_CANDIDATE_COLUMNS[-1]] else -1]


def _pack_row(row: dict[str, Any]) -> list[Any]:
    values = list((row | {"memory_bytes": row["memory_bytes"] // _MEBIBYTE}).values())
    # Rows without what is 0 at their end are those that earlier versions read.
    while len(values) > _ALWAYS_WRITTEN and not values[-1]:
        values.pop()
    return [_rounded(value) if isinstance(value, float) else int(value) for value in values]


def _rounded(value: float) -> float:
    """Return a figure with one decimal, or with two digits below 1, so that a slow model's is not 0."""
    return round(value, 1) if abs(value) >= 1 else float(f"{value:.2g}")


def _unpack_row(row: Any, place: str) -> dict[str, Any]:
    # Rows of earlier versions have fewer columns.
    named = _flagged(_named(row, _COLUMNS, place, least=0), _FLAGS, place)
    if "memory_bytes" in named:
        mebibytes = named["memory_bytes"]
        if type(mebibytes) is not int:
            raise wrong_type(f"{place}, memory_bytes", "int", mebibytes)
        if abs(mebibytes) > LARGEST_INTEGER // _MEBIBYTE:
            raise DocumentError(f"{place}, memory_bytes: the number of bytes takes more than 64 bits")
        named["memory_bytes"] = mebibytes * _MEBIBYTE
    return named


def _flagged(named: dict[str, Any], flags: Iterable[str], place: str) -> dict[str, Any]:
    """Return the values with 0 and 1 of the flags turned into bool."""
    given = {flag: named[flag] for flag in flags if flag in named}
    for flag, value in given.items():
        if not isinstance(value, int):
            raise wrong_type(f"{place}, {flag}", "0 or 1", value)
    return named | {flag: bool(value) for flag, value in given.items()}


def _pack_tuning(tuning: dict[str, Any]) -> list[Any]:
    return [int(value) if isinstance(value, bool) else value for value in tuning.values()]


def _unpack_tuning(tuning: Any, place: str) -> dict[str, Any]:
    return _flagged(_named(tuning, _TUNING_COLUMNS, place), _TUNING_FLAGS, place)
