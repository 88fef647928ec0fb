"""Truth tables: rows with a name, of which the first that fits the facts decides."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import EnumType
from itertools import product
from typing import Any, TypeVar

ANY = object()
"""A row's word for a fact that does not matter."""

F = TypeVar("F")
Rows = Mapping[str, Sequence[Any]]
"""By its name, what a row wants of each fact, and last what it decides."""


def everything(kind: type[F], **domains: Sequence[Any]) -> Iterator[F]:
    """Every combination of facts. ``domains``: the values of those that are neither flags nor members of an enum."""
    assert is_dataclass(kind)
    values = [domains.get(each.name) or _domain(each.type) for each in fields(kind)]
    for each in product(*values):
        yield kind(*each)


def decided(rows: Rows, facts: object) -> object:
    """What the first row decides that fits; None: none does."""
    for *wanted, decision in rows.values():
        if all(want is ANY or want == fact for want, fact in zip(wanted, vars(facts).values(), strict=True)):
            return decision
    return None


def idle(rows: Rows, every: Sequence[object]) -> list[str]:
    """The names of the rows without which everything would be decided alike."""
    return [name for name in rows if all(decided(rows, facts) == decided(_but(rows, name), facts) for facts in every)]


def _but(rows: Rows, name: str) -> Rows:
    return {each: row for each, row in rows.items() if each != name}


def _domain(kind: Any) -> Sequence[Any]:
    return list(kind) if isinstance(kind, EnumType) else (False, True)
