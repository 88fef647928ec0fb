"""The signature of a model, derived from its inputs and outputs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from triton_converters.claim_store.dump import Array
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.gates.signature import fits
from triton_converters.incoming.documents import Names, OpenAxes
from triton_converters.model_config.data_types import triton_type


def observed_signature(
    names: Names, observed: tuple["ObservedTensors", "ObservedTensors"], max_batch_size: int, declared: Signature | None
) -> Signature:
    """Return what every candidate serves: the tensors as they were observed or, if it fits them, as it is declared.

    Outputs of a Python step that ``names`` says were answered in other sizes have -1 there.

    ``observed``: the inputs and the outputs by their names, because a Python step may have one of each with one name.
    ``declared``: by the user's config.pbtxt; None: there is none. Raises ValueError if a tensor changes its type or
    rank, StageError(ModelConfigRefused) if the declaration does not fit.
    """
    opened: OpenAxes = {
        name: (*names.open_axes.get(name, ()), *names.contradicted.get(name, ())) for name in names.outputs
    }
    inputs, outputs = (
        tuple(side[name].tensor(axes.get(name, ())) for name in named)
        for side, named, axes in zip(observed, (names.inputs, names.outputs), (names.open_axes, opened), strict=True)
    )
    if declared is None:
        return Signature(inputs, outputs, max_batch_size)
    inputs = _declared(inputs, observed[0], declared.inputs, {})
    return Signature(inputs, _declared(outputs, observed[1], declared.outputs, names.contradicted), max_batch_size)


def as_answered(declared: Tensor, actual: Tensor) -> Tensor:
    """Return the declared tensor with -1 where the answers had another size; with their rank, all -1 if it is another.

    Without the batch dimension; -1 in ``actual``: the size varied.
    """
    if len(declared.dims) != len(actual.dims):
        return replace(declared, dims=(-1,) * len(actual.dims))
    pairs = zip(declared.dims, actual.dims, strict=True)
    return replace(declared, dims=tuple(said if said == size else -1 for said, size in pairs))


def _declared(
    tensors: tuple[Tensor, ...], observed: "ObservedTensors", declared: tuple[Tensor, ...], contradicted: OpenAxes
) -> tuple[Tensor, ...]:
    """Return the tensors of a side as config.pbtxt declares them, in the model's order."""
    known = {each.name: each for each in declared}
    for name in (each.name for each in tensors):
        actual = observed[name].tensor(contradicted.get(name, ()))
        if name in known and name in contradicted:
            known[name] = as_answered(known[name], actual)
        if name not in known or not fits(known[name], actual):
            was = f"{actual.data_type}{list(actual.dims)}"
            said = f"{known[name].data_type}{list(known[name].dims)}" if name in known else "nothing"
            message = f"the spec, or config.pbtxt, declares {name} as {said}, but the model has {was} there: correct it"
            raise StageError(Reason.MODEL_CONFIG_REFUSED, message)
    return tuple(known[each.name] for each in tensors)


@dataclass
class Observed:
    """The types and shapes of one tensor over all batches."""

    name: str
    batch_dimension: bool
    types: set[str] = field(default_factory=set)
    shapes: set[tuple[int, ...]] = field(default_factory=set)
    """The shapes without the batch dimension."""
    ends: tuple[int, ...] = ()
    """The smallest and the largest integer; none of another type."""

    def add(self, array: Array) -> None:
        """Add the tensor of one more batch."""
        self.types.add(triton_type(array.dtype) or array.dtype.name)
        self.shapes.add(array.shape[1:] if self.batch_dimension else array.shape)
        if array.dtype.kind in "iu" and array.size:
            found = (*self.ends, int(array.min()), int(array.max()))
            self.ends = (min(found), max(found))

    def described(self) -> str:
        """Return name, type, shape and range in words."""
        tensor = self.tensor()
        ends = " to ".join(map(str, self.ends))
        return f"{self.name} {tensor.data_type}{list(tensor.dims)}{' of ' if ends else ''}{ends}"

    def tensor(self, open_axes: Collection[int] = ()) -> Tensor:
        """Return what config.pbtxt declares: a dimension that never changed is static, any other is -1.

        One that was always 0 is -1 too: Triton takes no size of 0, and where nothing was found, something may be.

        ``open_axes``: axes of the whole tensor that are -1 all the same, because the model's graph says so.
        Raises ValueError if type or rank changed between batches.
        """
        shapes = sorted(self.shapes)
        if len(self.types) != 1 or len({len(shape) for shape in shapes}) != 1:
            raise ValueError(f"{self.name} changes type or rank: {sorted(self.types)}, shapes {shapes[:4]}")
        first = 1 if self.batch_dimension else 0
        dims = tuple(
            sizes[0] if len(set(sizes)) == 1 and sizes[0] and axis not in open_axes else -1
            for axis, sizes in enumerate(zip(*shapes, strict=True), start=first)
        )
        return Tensor(self.name, next(iter(self.types)), dims)


ObservedTensors = Mapping[str, Observed]
"""The inputs of a model, or its outputs, by their names."""
