"""The flags of tritonserver that a spec may set, and the CEL rules that refuse all others.

This is an allow-list, because a flag may name a file, a port, an address or a library, open an interface, or take back
what the operator sets. Each flag here only tunes, and exists in every server that the operator supports. A flag of a
later server is added once all of them know it: a server that does not know a flag ends at once.

Sources: `tritonserver --help` of 2.51, and src/command_line_parser.cc of triton-inference-server/server.
"""

import re
from collections.abc import Iterator, Mapping

from triton_operator.api.schema import cel_list

Range = tuple[int, int]
"""The least and the largest whole number."""
Words = tuple[str, ...]

NUMBERS: Mapping[str, Range] = {
    "http-thread-count": (1, 256),
    "grpc-infer-allocation-pool-size": (0, 4096),
    "buffer-manager-thread-count": (0, 256),
    "model-load-thread-count": (1, 64),
    "metrics-interval-ms": (100, 60000),
}
"""Flags in serving.flags that take a whole number."""
WORDS: Mapping[str, Words] = {
    "grpc-infer-response-compression-level": ("none", "low", "medium", "high"),
    "rate-limit": ("off", "execution_count"),
}
"""Flags in serving.flags that take one of some words."""
_NUMBER = "[0-9]{1,9}"

_ALLOWED = "; ".join(
    [
        *(f"{name}, {least} to {most}" for name, (least, most) in NUMBERS.items()),
        *(f"{name}, {' or '.join(words)}" for name, words in WORDS.items()),
    ]
)
ONLY_ALLOWED = f"flags must be allowed flags of tritonserver: remove or correct the others. Allowed are {_ALLOWED}"
"""The words of a refusal of any other flag."""


def flag_rules() -> Iterator[tuple[str, str]]:
    """Yield the CEL rules of the map serving.flags, as pairs of expression and message."""
    yield f"self.all(k, k in {cel_list([*NUMBERS, *WORDS])})", ONLY_ALLOWED
    for name, (least, most) in NUMBERS.items():
        value = f"self['{name}']"
        in_range = f"int({value}) >= {least} && int({value}) <= {most}"
        yield f"!('{name}' in self) || ({value}.matches('^{_NUMBER}$') && {in_range})", _of_range(name, (least, most))
    for name, words in WORDS.items():
        yield f"!('{name}' in self) || self['{name}'] in {cel_list(words)}", _of_words(name, words)


def refusals(flags: Mapping[str, str]) -> Iterator[str]:
    """Yield a message for each rule that flags break."""
    if not flags.keys() <= {*NUMBERS, *WORDS}:
        yield ONLY_ALLOWED
    for name, (least, most) in NUMBERS.items():
        value = flags.get(name, str(least))
        if not (re.fullmatch(_NUMBER, value, re.ASCII) and least <= int(value) <= most):
            yield _of_range(name, (least, most))
    for name, words in WORDS.items():
        if flags.get(name, words[0]) not in words:
            yield _of_words(name, words)


def _of_range(name: str, bounds: Range) -> str:
    least, most = bounds
    return f"flags.{name} must be a whole number from {least} to {most}: correct it"


def _of_words(name: str, words: Words) -> str:
    return f"flags.{name} must be one of {', '.join(words)}: correct it"
