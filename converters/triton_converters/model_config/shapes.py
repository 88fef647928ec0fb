"""The shape that a tensor has in requests and answers, and the one that the model's file has. Pure.

They differ only by dimensions of 1: Triton allows no empty dims, and a config.pbtxt may reshape.
"""

from triton_converters.contract.results import Tensor

Shape = tuple[int, ...]


def requested(tensor: Tensor, shape: Shape) -> Shape:
    """Return the shape that clients use for a tensor of the model, without the batch dimension.

    A shape that does not fit the tensor is returned as it is.
    """
    return _moved(shape, tensor.dims, tensor.served_dims)


def own(tensor: Tensor, shape: Shape) -> Shape:
    """Return the shape that the model has for a tensor of a request or an answer, without the batch dimension.

    A shape that does not fit the tensor is returned as it is.
    """
    return _moved(shape, tensor.served_dims, tensor.dims)


def differ_by_ones(one: Shape, other: Shape) -> bool:
    """Whether two lists of dimensions are the same but for those of 1."""
    return [size for size in one if size != 1] == [size for size in other if size != 1]


def _moved(shape: Shape, dims: Shape, wanted: Shape) -> Shape:
    """Return the sizes of ``shape``, which has the dimensions ``dims``, where ``wanted`` has them."""
    if len(shape) != len(dims) or any(dim == 1 != size for size, dim in zip(shape, dims, strict=True)):
        return shape
    sizes = (size for size, dim in zip(shape, dims, strict=True) if dim != 1)
    return tuple(1 if dim == 1 else next(sizes) for dim in wanted)
