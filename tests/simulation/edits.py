"""What users change of a spec, by name: each edit changes its part of the spec that it meets, and keeps the rest."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from tests.simulation.deployments import candidate

Body = dict[str, Any]


@dataclass(frozen=True)
class Edit:
    """A change of a spec; two of the same words and arguments are equal."""

    change: Callable[..., Body]
    """Given a spec and the arguments, the fields that become others."""
    arguments: tuple[Any, ...] = ()

    def __call__(self, spec: Body) -> Body:
        """The fields of that spec that become others; the caller's own."""
        return deepcopy(self.change(spec, *self.arguments))


def _batch(spec: Body, size: int) -> Body:
    return {"models": [each | {"config": {"maxBatchSize": size, "dynamicBatching": {}}} for each in spec["models"]]}


def a_wider_batch() -> Edit:
    """Batches of 16 in place of 8."""
    return Edit(_batch, (16,))


def the_usual_batch() -> Edit:
    """Batches of 8, as at first."""
    return Edit(_batch, (8,))


def a_narrower_batch() -> Edit:
    """Batches of 4 in place of 8."""
    return Edit(_batch, (4,))


def _candidates(spec: Body, *names: str) -> Body:
    return {"models": [each | {"candidates": [candidate(name) for name in names]} for each in spec["models"]]}


def only(*names: str) -> Edit:
    """Every model has the candidates of these names, FORMAT-PRECISION, and no other."""
    return Edit(_candidates, names)


def _source(spec: Body, uri: str, version: str) -> Body:
    return {"source": {"uri": uri} | ({"version": version} if version else {})}


def another_source() -> Edit:
    """Another folder."""
    return Edit(_source, ("pvc://models/other", ""))


def another_version() -> Edit:
    """The same folder, to be read anew."""
    return Edit(_source, ("pvc://models/digits", "v2"))


def _merged(spec: Body, field: str, added: Body) -> Body:
    return {field: spec.get(field, {}) | added}


def merged(field: str, **added: Any) -> Edit:
    """A field of the spec that has fields has these too, or others in place of those of the same names."""
    return Edit(_merged, (field, added))
