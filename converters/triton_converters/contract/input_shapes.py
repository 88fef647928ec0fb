"""Whether the shapes that a measurement is asked to send are those of the model. Standard library only."""

from collections.abc import Sequence

from triton_converters.contract.measurement_requests import InputShape
from triton_converters.contract.results import Signature


def shapes_fault(shapes: Sequence[InputShape], signature: Signature) -> str:
    """Return why shapes of spec.performance.inputShapes do not fit the signature; empty: all fit."""
    by_name = {tensor.name: tensor for tensor in signature.inputs}
    for shape in shapes:
        tensor = by_name.get(shape.input)
        if tensor is None:
            return f"spec.performance.inputShapes: the model has no input {shape.input!r}; it has: {', '.join(by_name)}"
        dims = tensor.served_dims
        fits = len(dims) == len(shape.dims) and all(
            declared in (-1, asked) for declared, asked in zip(dims, shape.dims, strict=True)
        )
        if not fits:
            return (
                f"spec.performance.inputShapes: {list(shape.dims)} does not fit input {shape.input}, whose dimensions"
                f" are {list(dims)} (-1: varies)"
            )
    return ""
