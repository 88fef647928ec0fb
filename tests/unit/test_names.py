"""Hashes that outlive the operator that made them."""

from dataclasses import dataclass, field

from triton_operator import names
from triton_operator.api.serving import Serving


@dataclass(frozen=True)
class Old:
    model: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class New:
    model: str
    parts: tuple[str, ...] = ()
    added: int = 0
    nested: Old = field(default=Old("none"))


def test_a_field_that_is_added_changes_no_key_while_nobody_sets_it() -> None:
    assert names.digest([Old("digits")], 16) == names.digest([New("digits")], 16)
    assert names.digest([Old("digits")], 16) != names.digest([New("digits", added=1)], 16)
    assert names.digest([Old("digits")], 16) != names.digest([New("digits", nested=Old("other"))], 16)


def test_a_default_and_the_same_value_written_out_are_one() -> None:
    assert names.digest(Serving(), 10) == names.digest(Serving(replicas=1, shared_memory_size="1Gi"), 10)
    assert names.digest(Serving(), 10) != names.digest(Serving(replicas=2), 10)
