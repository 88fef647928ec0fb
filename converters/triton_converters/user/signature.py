"""The signature of a model, read off what went in and came out."""

from dataclasses import dataclass, field

from triton_converters.claim_store.dump import Array
from triton_converters.contract.results import Tensor
from triton_converters.model_config.data_types import triton_type


@dataclass
class Observed:
    """Types and shapes of one tensor over all batches."""

    name: str
    batch_dimension: bool
    types: set[str] = field(default_factory=set)
    shapes: set[tuple[int, ...]] = field(default_factory=set)
    """Without the batch dimension."""

    def add(self, array: Array) -> None:
        """Take in the tensor of one more batch."""
        self.types.add(triton_type(array.dtype) or array.dtype.name)
        self.shapes.add(array.shape[1:] if self.batch_dimension else array.shape)

    def tensor(self) -> Tensor:
        """What config.pbtxt declares: a dimension is static where it never changed, else -1.

        Raises ValueError where type or rank changed between batches.
        """
        shapes = sorted(self.shapes)
        if len(self.types) != 1 or len({len(shape) for shape in shapes}) != 1:
            raise ValueError(f"{self.name} changes type or rank: {sorted(self.types)}, shapes {shapes[:4]}")
        dims = tuple(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True))
        return Tensor(self.name, next(iter(self.types)), dims)
