"""Reads a requirements file: one plain requirement a line, with hashes or without, and nothing else of pip's syntax.

pip also takes options, paths, URLs, repositories and other files. By these a file would choose the index, or have code
run in the Job that installs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import printable, shortened

LARGEST_BYTES = 2**20
MOST_REQUIREMENTS = 1000
LONGEST = 1000
"""Most characters of a requirement, besides its hashes."""
MOST_PARENTHESES = 20
QUOTED_BYTES = 120
"""How much of a line a message quotes."""
_COMMENT = re.compile(r"(^|\s)#.*$")
_HASH = re.compile(r"\s--hash(?:=|\s+)(\S+)")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")
_PLACE = re.compile(r"://|^[./~]|\$")
"""What pip takes for a URL, for a path, or for an environment variable whose value it puts in."""
_UNPLAIN = re.compile(r"[^\w\s.,;<>=!~()\[\]\"'*+-]", re.ASCII)
"""What no requirement of an index needs. pip puts in variables, cuts off comments and looks for URLs in a marker's
strings too, and a backslash may stand for any character there."""
_STRING = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_ARCHIVE = re.compile(r"\.(whl|zip|tar|tgz|tbz|txz|tlz|gz|bz2|xz|lzma)$", re.IGNORECASE)


@dataclass(frozen=True)
class Line:
    """A requirement and where it stands."""

    place: str
    """FILE:LINE."""
    requirement: Requirement
    hashes: tuple[str, ...]
    """Each as ALGORITHM:DIGEST; empty: any file of the right version will do."""

    @property
    def name(self) -> str:
        """The package's normalized name."""
        return str(canonicalize_name(self.requirement.name))

    def __str__(self) -> str:
        """The requirement as pip reads it."""
        return " ".join([str(self.requirement), *(f"--hash={each}" for each in self.hashes)])


def read(file: Path, name: str) -> tuple[Line, ...]:
    """Return the requirements of a file that messages call ``name``; raises StageError(RequirementsInvalid)."""
    with file.open("rb") as opened:
        content = opened.read(LARGEST_BYTES + 1)
    if len(content) > LARGEST_BYTES:
        raise _invalid(f"{name} has more than {LARGEST_BYTES} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _invalid(f"{name} is not UTF-8 text: {error.reason} at byte {error.start}; save it as UTF-8") from None
    lines = tuple(_line(f"{name}:{number}", line) for number, line in _logical_lines(text))
    if len(lines) > MOST_REQUIREMENTS:
        raise _invalid(f"{name} has {len(lines)} requirements; at most {MOST_REQUIREMENTS} are taken")
    return lines


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line that says something, with its number: joined after a backslash, and without its comment."""
    joined, began = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        began = began if joined else number
        # A comment ends with its line, even if that ends with a backslash.
        if line.endswith("\\") and not _COMMENT.search(line):
            joined += line[:-1] + " "
            continue
        whole = (joined + _COMMENT.sub("", line)).strip()
        joined = ""
        if whole:
            yield began, whole
    if joined.strip():
        yield began, joined.strip()


def _line(place: str, text: str) -> Line:
    quoted = f"{place}: {shortened(printable(text), QUOTED_BYTES)!r}"
    hashes = tuple(_HASH.findall(text))
    plain = _HASH.sub("", text).strip()
    if plain.startswith("-"):
        raise _invalid(f"{quoted} is an option of pip; only requirements with --hash are taken: remove the line")
    if len(plain) > LONGEST:
        raise _invalid(f"{quoted} is longer than {LONGEST} characters")
    if plain.count("(") > MOST_PARENTHESES:
        raise _invalid(f"{quoted} has more than {MOST_PARENTHESES} parentheses")
    if unknown := [each for each in hashes if not _DIGEST.fullmatch(each)]:
        what = shortened(printable(unknown[0]), QUOTED_BYTES)
        raise _invalid(f"{place}: {what!r} is no hash; write --hash=sha256: and 64 hexadecimal digits")
    try:
        requirement = None if _PLACE.search(plain) else Requirement(plain)
    except InvalidRequirement as error:
        why = " ".join(str(error).splitlines()[0].split())
        raise _invalid(f"{quoted} is not a requirement such as timm==1.0.9: {why}") from None
    if requirement is None or requirement.url or _ARCHIVE.search(plain.partition(";")[0].strip()):
        message = "names a place, and only packages of the index are installed: write the package's name and version"
        raise _invalid(f"{quoted} {message}")
    if why := _misread(plain):
        raise _invalid(f"{quoted} {why}; only plain requirements are taken, such as timm==1.0.9")
    return Line(place, requirement, hashes)


def _misread(plain: str) -> str:
    """Return why pip would read the requirement in another way than ``packaging`` does; empty: it would not."""
    if found := _UNPLAIN.search(plain):
        return f"holds {found[0]!r}"
    if re.search(r"\s-", plain):
        return "holds what pip takes for an option"
    if any(set(text) & set("'\"") for pair in _STRING.findall(plain) for text in pair):
        return "holds a quote within quotes"
    return ""


def _invalid(message: str) -> StageError:
    return StageError(Reason.REQUIREMENTS_INVALID, message)
