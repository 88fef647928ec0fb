"""What is said of a repository's models: what cannot be served, what is left out, and what is missing. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from triton_converters.contract.repository_config import LEFT_OUT, REFUSED, paths
from triton_converters.contract.text import quoted
from triton_plugin.drafting.triton_repository.pbtxt import Config

NAMED = 8
"""The most names that one sentence has."""
Words = list[tuple[str, str]]
"""Sentences, each with the name of its model."""


@dataclass(frozen=True)
class RequirementsFile:
    """A requirements file that a step lacks."""

    path: str
    """Relative to the source."""
    text: str
    requirements: tuple[str, ...]
    """The lines that name packages."""


@dataclass
class Notes:
    """Sentences, as they are found."""

    faults: Words = field(default_factory=list)
    """What cannot be served, with what to do."""
    left_out: Words = field(default_factory=list)
    """What an object does not say, although what is served answers the same."""
    doubts: Words = field(default_factory=list)
    """What may fail on a server, with what to do: only the author can tell."""
    missing: Words = field(default_factory=list)
    """What has to be added before the object can run."""
    requirements_files: list[RequirementsFile] = field(default_factory=list)
    """The requirements files that steps lack."""

    def judge(self, name: str, config: Config, taken: Iterable[str], allowed: Iterable[str]) -> None:
        """Say of each field of a model's config.pbtxt that is not taken whether it is a fault or left out.

        ``taken``: paths of fields, and ``allowed``: beginnings of paths, that are taken.
        """
        fields, beginnings = frozenset(taken), tuple(allowed)
        for path in dict.fromkeys(paths(config)):
            if path in fields or any(f"{path}.".startswith(f"{each}.") for each in beginnings):
                continue
            if (left := _beginning(path, LEFT_OUT)) is not None:
                self.left_out.append((name, f"{left}: {LEFT_OUT[left]}"))
            elif (refused := _beginning(path, REFUSED)) is not None:
                self.faults.append((name, f"{refused} is not supported: {REFUSED[refused]}; remove it"))
            else:
                self.faults.append((name, f"{quoted(path)} is not supported: remove it"))


def names(found: Iterable[str]) -> str:
    """Return names of a hostile folder for a sentence."""
    given = list(found)
    more = f" and {len(given) - NAMED} more" if len(given) > NAMED else ""
    return ", ".join(map(quoted, given[:NAMED])) + more


def place(path: str, line: int) -> str:
    """Return a line of a file of a hostile folder for a sentence."""
    return f"{quoted(path)}, line {line}"


def _beginning(path: str, table: Iterable[str]) -> str | None:
    found = (each for each in table if f"{path}.".startswith(f"{each}."))
    return max(found, key=len, default=None)
