"""`kubectl_complete-triton WORD...`, which kubectl calls for a Tab after `kubectl triton`: the last word is completed.

It prints a line for each word that may stand there, with its help after a tab, and last a directive of Cobra. A person
waits for it, so it imports no command: completion.json, which `make generate` writes, has them all.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("completion.json")
FILES, NO_FILES = ":0", ":4"
"""Cobra's directives: the shell offers files if no line fits, or it does not."""
SECONDS = 2
"""How long kubectl may take: then a Tab offers nothing."""
MOST = 500
"""The most names that are offered."""
LISTS = {
    "objects": ("get", "tritondeployments.triton-operator.dev", "--output=name"),
    "namespaces": ("get", "namespaces", "--output=name"),
    "contexts": ("config", "get-contexts", "--output=name"),
}
"""The arguments of kubectl, by what is completed."""
WORD = re.compile(r"[\w.:/@+-]+", re.ASCII)
"""A name that may go into a shell's line."""
CLUSTER = ("--namespace", "--context", "--kubeconfig")
"""The options that say where the objects are."""

Option = Mapping[str, Any]


@dataclass
class Line:
    """The words before the one that is completed, as far as they are understood."""

    table: Mapping[str, Any]
    command: str = ""
    arguments: list[str] = field(default_factory=list)
    waiting: Option | None = None
    """The option whose value is completed."""
    only_arguments: bool = False
    """Whether `--` was there."""
    used: list[Option] = field(default_factory=list)
    cluster: dict[str, str] = field(default_factory=dict)
    """The values of CLUSTER that are on the line."""

    def take(self, word: str) -> None:
        """Add a word."""
        if self.waiting is not None:
            self._value(self.waiting, word)
            self.waiting = None
        elif word == "--" and not self.only_arguments:
            self.only_arguments = True
        elif word.startswith("-") and word != "-" and not self.only_arguments:
            self._option(word)
        elif not self.command:
            self.command = word
        else:
            self.arguments.append(word)

    def options(self) -> Sequence[Option]:
        """Return the options that may stand here."""
        return list(self._known()["options"])

    def find(self, name: str) -> Option | None:
        """Return the option of that name; None if there is none."""
        return next((each for each in self.options() if name in each["names"]), None)

    def argument(self) -> Option | None:
        """Return the argument that comes next; None if there is no other."""
        known = self._known()["arguments"] if self.command else []
        if known and known[-1]["many"]:
            return dict(known[min(len(self.arguments), len(known) - 1)])
        return dict(known[len(self.arguments)]) if len(self.arguments) < len(known) else None

    def _known(self) -> Mapping[str, Any]:
        if not self.command:
            return self.table
        return dict(self.table["commands"].get(self.command, {"options": [], "arguments": []}))

    def _option(self, word: str) -> None:
        name, has_value, value = word.partition("=")
        if not word.startswith("--"):
            # -nNAMESPACE is one word.
            name, has_value, value = word[:2], word[2:], word[2:]
        option = self.find(name)
        if option is None:
            return
        self.used.append(option)
        if has_value:
            self._value(option, value)
        elif option["takes"]:
            self.waiting = option

    def _value(self, option: Option, value: str) -> None:
        for name in set(CLUSTER).intersection(option["names"]):
            self.cluster[name] = value


def main(argv: Sequence[str] | None = None) -> int:
    """Print what may stand in the place of the last word; returns the exit status, 0."""
    words = list(sys.argv[1:] if argv is None else argv) or [""]
    lines, directive = completed(words[:-1], words[-1])
    print(*lines, directive, sep="\n")
    return 0


def completed(before: Sequence[str], last: str) -> tuple[list[str], str]:
    """Return the lines for the word that begins with ``last``, and the directive."""
    line = Line(json.loads(TABLE.read_text(encoding="utf-8")))
    for word in before:
        line.take(word)
    if line.waiting is None and last.startswith("--") and "=" in last:
        name, _, last = last.partition("=")
        line.waiting = line.find(name) or {"takes": []}
    if line.waiting is not None:
        return _values(line, line.waiting, last)
    if last.startswith("-") and not line.only_arguments:
        return _fitting(_options(line), last), NO_FILES
    if not line.command:
        commands = [(name, each["help"]) for name, each in line.table["commands"].items()]
        return _fitting(commands, last), NO_FILES
    argument = line.argument()
    return _values(line, argument, last) if argument else ([], NO_FILES)


def _options(line: Line) -> Iterator[tuple[str, str]]:
    """Yield each option that is not on the line yet, by its longest name, and by its others."""
    for option in line.options():
        if option["many"] or option not in line.used:
            yield from ((name, option["help"]) for name in reversed(option["names"]))


def _values(line: Line, taker: Option, last: str) -> tuple[list[str], str]:
    takes = taker["takes"]
    words = [word for kind in takes if kind in LISTS for word in _listed(kind, line.cluster)]
    words += [each for each in taker.get("choices", ()) if each not in words]
    others = [(word, "") for word in words if word not in line.arguments]
    return _fitting(others, last), FILES if "files" in takes else NO_FILES


def _fitting(words: Iterator[tuple[str, str]] | Sequence[tuple[str, str]], last: str) -> list[str]:
    return [f"{word}\t{text}" if text else word for word, text in words if word.startswith(last)]


def _listed(kind: str, cluster: Mapping[str, str]) -> list[str]:
    """Ask kubectl for names. What the cluster answers is trusted for nothing: no other text gets to the shell."""
    import subprocess

    given = cluster if kind == "objects" else {name: value for name, value in cluster.items() if name != "--namespace"}
    argv = ["kubectl", *LISTS[kind], f"--request-timeout={SECONDS}s", *(f"{k}={v}" for k, v in sorted(given.items()))]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS + 1,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    words = done.stdout.decode(errors="replace").split()
    names = [word if kind == "contexts" else word.rpartition("/")[2] for word in words[:MOST]]
    return [name for name in names if WORD.fullmatch(name)]


if __name__ == "__main__":
    sys.exit(main())
