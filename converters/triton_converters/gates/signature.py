"""The signature of a model, derived from its inputs and outputs."""

from dataclasses import dataclass, field

from triton_converters.claim_store.dump import Array
from triton_converters.contract.results import Tensor
from triton_converters.model_config.data_types import triton_type


@dataclass
class Observed:
    """The types and shapes of one tensor over all batches."""

    name: str
    batch_dimension: bool
    types: set[str] = field(default_factory=set)
    shapes: set[tuple[int, ...]] = field(default_factory=set)
    """The shapes without the batch dimension."""

    def add(self, array: Array) -> None:
        """Add the tensor of one more batch."""
        self.types.add(triton_type(array.dtype) or array.dtype.name)
        self.shapes.add(array.shape[1:] if self.batch_dimension else array.shape)

    def tensor(self) -> Tensor:
        """Return what config.pbtxt declares: a dimension that never changed is static, any other is -1.

        Raises ValueError if type or rank changed between batches.
        """
        shapes = sorted(self.shapes)
        if len(self.types) != 1 or len({len(shape) for shape in shapes}) != 1:
            raise ValueError(f"{self.name} changes type or rank: {sorted(self.types)}, shapes {shapes[:4]}")
        dims = tuple(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True))
        return Tensor(self.name, next(iter(self.types)), dims)
