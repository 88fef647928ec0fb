"""A repository's object as commented YAML: `models` and `ensemble` of the spec. Pure."""

import json
import re
from collections.abc import Iterator
from typing import Any

from triton_plugin.drafting.marks import TODO
from triton_plugin.drafting.triton_repository.members import Entry
from triton_plugin.drafting.triton_repository.pipeline import Pipeline

PLAIN = frozenset({"dataType", "format"})
"""Fields whose values are words of the API."""
BLOCKS = ("inputs", "outputs")
STEPS = "steps"


def lines(found: Pipeline) -> Iterator[str]:
    """Yield the lines of `models` and `ensemble`, which are fields of `spec`."""
    yield "  models:"
    for model in found.models:
        yield from _entry(model)
    yield "  ensemble:"
    for name, value in found.ensemble.items():
        if isinstance(value, list):
            yield f"    {name}:"
            yield from _steps(value) if name == STEPS else (f"    - {flow(each)}" for each in value)
        else:
            yield f"    {name}: {flow(value)}"


def comments(found: Pipeline) -> Iterator[str]:
    """Yield what is to be added, what may fail, and what is left out, one sentence each."""
    yield from (f"{TODO}: {name}: {words}." for name, words in found.missing)
    yield from (f"Check: {name}: {words}." for name, words in found.doubts)
    yield from (f"Left out: {name}: {words}." for name, words in found.left_out)


def flow(value: Any, field: str = "") -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(name)}: {flow(each, name)}' for name, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    return value if field in PLAIN and re.fullmatch("[a-zA-Z0-9-]+", value) else json.dumps(value)


def _entry(model: Entry) -> Iterator[str]:
    mark = "-"
    for name, value in model.items():
        if name in BLOCKS:
            yield f"    {name}:"
            yield from (f"    - {flow(each)}" for each in value)
        else:
            yield f"  {mark} {name}: {flow(value, name)}"
        mark = " "


def _steps(steps: list[Entry]) -> Iterator[str]:
    for step in steps:
        mark = "-"
        for name, value in step.items():
            yield f"    {mark} {name}: {flow(value)}"
            mark = " "


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z]+", name) else json.dumps(name)
