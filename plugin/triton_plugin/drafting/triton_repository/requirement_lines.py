"""The lines of requirements files, and of the Dockerfiles that install packages, as far as they are plain. Pure."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from triton_plugin.drafting.marks import TODO
from triton_plugin.drafting.triton_repository.distributions import normal

NUMPY = "numpy"
LONGEST = 1000
"""Characters of a plain requirement."""
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSIONS = r"(?:[<>=!~]{1,3}\s*[A-Za-z0-9.*+!_-]+)"
_PLAIN = re.compile(
    rf"(?P<name>{_NAME})\s*(?:\[[A-Za-z0-9._,\s-]*\])?\s*(?:{_VERSIONS}(?:\s*,\s*{_VERSIONS})*)?"
    r"(?:\s*;[ -\x22$-~]*)?(?:\s+--hash[= ][!-~]+)*"
)
_BOUND = re.compile(r"[=~<]=|<")
_COMMENT = re.compile(r"(^|\s)#.*$")
_INSTALLS = re.compile(r"\bpip[0-9.]*\s+install\b(.*)")
_SERVER = re.compile(r"^[ \t]*FROM[ \t].*tritonserver", re.MULTILINE | re.IGNORECASE)
_VALUED = frozenset(
    {
        *("-c", "--constraint", "-e", "--editable", "-f", "--find-links", "-i", "--index-url", "--extra-index-url"),
        *("-t", "--target", "--platform", "--python-version", "--trusted-host", "--prefix", "--root", "--timeout"),
        *("--only-binary", "--no-binary", "--default-timeout", "--retries", "--proxy", "--progress-bar"),
    }
)
"""Options of pip whose value is the next word."""


@dataclass(frozen=True)
class RequirementLine:
    """A line that says something."""

    number: int
    text: str
    """Without its comment."""
    name: str
    """The package's, normalized; empty: the line is no plain requirement."""
    is_open: bool = False
    """Whether the line is a comment with TODO."""

    @property
    def bounds_numpy(self) -> bool:
        """Whether the line takes some NumPy alone, and none that is newer. A step gets the server's."""
        return self.name == NUMPY and bool(_BOUND.search(self.text.partition(";")[0]))


def lines(text: str) -> Iterator[RequirementLine]:
    """Yield the lines of a requirements file that say something, or are marked TODO."""
    joined, began = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        began = began if joined else number
        if line.lstrip().startswith("#") and TODO in line:
            yield RequirementLine(number, line.strip("# \t"), "", True)
        if line.endswith("\\") and not _COMMENT.search(line):
            joined += f"{line[:-1]} "
            continue
        said, joined = (joined + _COMMENT.sub("", line)).strip(), ""
        if said:
            yield RequirementLine(began, said, name_of(said))


def name_of(text: str) -> str:
    """Return the normalized name of a plain requirement's package; empty: the text is none."""
    found = _PLAIN.fullmatch(" ".join(text.split())) if len(text) <= LONGEST else None
    return normal(found["name"]) if found else ""


def of_dockerfile(text: str) -> tuple[list[str], list[str]]:
    """Return the plain requirements that a Dockerfile of a Triton server installs, and the requirements files.

    Both are empty for another Dockerfile: what it installs is not for the server's steps.
    """
    requirements: list[str] = []
    files: list[str] = []
    if not _SERVER.search(text):
        return requirements, files
    whole = re.sub(r"\\[ \t]*\n", " ", re.sub(r"^[ \t]*#.*\n", "", text, flags=re.MULTILINE))
    for command in re.split(r"&&|[;|\n]", whole):
        if (found := _INSTALLS.search(command)) is None:
            continue
        words = iter(_words(found[1]))
        for word in words:
            if word in ("-r", "--requirement"):
                files.append(next(words, ""))
            elif word.startswith(("-r", "--requirement=")):
                files.append(word.removeprefix("-r").removeprefix("--requirement="))
            elif word in _VALUED:
                next(words, "")
            elif name_of(word):
                requirements.append(word)
    return requirements, files


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
