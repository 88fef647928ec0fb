"""`kubectl_complete-triton WORD...`, which kubectl calls for a Tab after `kubectl triton`: the last word is completed.

It prints a line for each word that may stand there, with its help after a tab, and last a directive of Cobra.
"""

import re
import subprocess
import sys
from argparse import Action, ArgumentParser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from triton_plugin.command_line import NAME_OR_FILE, parser

FILES, NO_FILES = ":0", ":4"
"""Cobra's directives: the shell offers files if no line fits, or it does not."""
SECONDS = 2
"""How long kubectl may take: then a Tab offers nothing."""
MOST = 500
"""The most names that are offered."""
OBJECTS = ("get", "tritondeployments.triton-operator.dev", "--output=name")
LISTS = {
    "NAME": OBJECTS,
    "namespace": ("get", "namespaces", "--output=name"),
    "context": ("config", "get-contexts", "--output=name"),
}
"""The arguments of kubectl, by the argument, as help shows it, or the option that takes what kubectl lists."""
WORD = re.compile(r"[\w.:/@+-]+", re.ASCII)
"""A name that may go into a shell's line."""
CLUSTER = ("namespace", "context", "kubeconfig")
"""The options that say where the objects are."""


@dataclass
class Line:
    """The words before the one that is completed, as far as they are understood."""

    parser: ArgumentParser
    """The parser of what comes next."""
    commands: Mapping[str, ArgumentParser]
    """The commands, one of which comes next; empty: it is there."""
    arguments: list[str] = field(default_factory=list)
    waiting: Action | None = None
    """The option whose value is completed."""
    only_arguments: bool = False
    """Whether `--` was there."""
    used: set[str] = field(default_factory=set)
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
        elif self.commands:
            self.parser = self.commands.get(word) or ArgumentParser(add_help=False)
            self.commands = {}
        else:
            self.arguments.append(word)

    def options(self) -> Sequence[Action]:
        """Return the options that may stand here."""
        return [each for each in _actions(self.parser) if each.option_strings]

    def find(self, name: str) -> Action | None:
        """Return the option of that name; None if there is none."""
        return next((each for each in self.options() if name in each.option_strings), None)

    def argument(self) -> Action | None:
        """Return the argument that comes next; None if there is no other."""
        positionals = [each for each in _actions(self.parser) if not each.option_strings]
        if len(self.arguments) < len(positionals):
            return positionals[len(self.arguments)]
        return positionals[-1] if positionals and positionals[-1].nargs in ("*", "+") else None

    def _option(self, word: str) -> None:
        name, has_value, value = word.partition("=")
        if not word.startswith("--"):
            # -nNAMESPACE is one word.
            name, has_value, value = word[:2], word[2:], word[2:]
        option = self.find(name)
        if option is None:
            return
        self.used.add(option.dest)
        if has_value:
            self._value(option, value)
        elif option.nargs != 0:
            self.waiting = option

    def _value(self, option: Action, value: str) -> None:
        if option.dest in CLUSTER:
            self.cluster[option.dest] = value


def main(argv: Sequence[str] | None = None) -> int:
    """Print what may stand in the place of the last word; returns the exit status, 0."""
    words = list(sys.argv[1:] if argv is None else argv) or [""]
    lines, directive = completed(words[:-1], words[-1])
    print(*lines, directive, sep="\n")
    return 0


def completed(before: Sequence[str], last: str) -> tuple[list[str], str]:
    """Return the lines for the word that begins with ``last``, and the directive."""
    top = parser()
    line = Line(top, dict(_actions(top)[-1].choices or {}))
    for word in before:
        line.take(word)
    if line.waiting is not None:
        return _values(line, line.waiting, last)
    if last.startswith("--") and "=" in last:
        name, _, last = last.partition("=")
        return _values(line, line.find(name), last)
    if last.startswith("-") and not line.only_arguments:
        return _fitting(_options(line), last), NO_FILES
    if line.commands:
        commands = ((name, each.description or "") for name, each in line.commands.items())
        return _fitting(commands, last), NO_FILES
    return _values(line, line.argument(), last)


def _actions(parser: ArgumentParser) -> Sequence[Action]:
    return parser._actions  # noqa: SLF001 - argparse tells them by no public name


def _options(line: Line) -> Iterator[tuple[str, str]]:
    """Yield each option that is not on the line yet, or may be given again, by its longest name, and by its others."""
    for option in line.options():
        if isinstance(option.default, list) or option.dest not in line.used:
            yield from ((name, option.help or "") for name in reversed(option.option_strings))


def _values(line: Line, taker: Action | None, last: str) -> tuple[list[str], str]:
    """Return what may be the value of an option, or an argument."""
    if taker is None:
        return [], NO_FILES
    words = [*_listed(taker, line.cluster), *(taker.choices or ())]
    others = [(word, "") for word in words if word not in line.arguments]
    is_file = str(taker.help).startswith(NAME_OR_FILE) or {"FILE", "FOLDER"} & set(str(taker.metavar).split("|"))
    return _fitting(others, last), FILES if is_file else NO_FILES


def _fitting(words: Iterable[tuple[str, str]], last: str) -> list[str]:
    return [f"{word}\t{text}" if text else word for word, text in words if word.startswith(last)]


def _listed(taker: Action, cluster: Mapping[str, str]) -> list[str]:
    """Ask kubectl for names. What the cluster answers is trusted for nothing: no other text gets to the shell."""
    listing = LISTS.get(taker.dest if taker.option_strings else str(taker.metavar))
    if listing is None:
        return []
    given = sorted(each for each in cluster.items() if listing == OBJECTS or each[0] != "namespace")
    argv = ["kubectl", *listing, f"--request-timeout={SECONDS}s", *(f"--{name}={value}" for name, value in given)]
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
    names = [word if taker.dest == "context" else word.rpartition("/")[2] for word in words[:MOST]]
    return [name for name in names if WORD.fullmatch(name)]


if __name__ == "__main__":
    sys.exit(main())
