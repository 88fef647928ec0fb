"""Read the outputs of every sample that user code left, and write them anew, for any stage that keeps them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from triton_converters.claim_store import served_outputs
from triton_converters.claim_store.dump import Array
from triton_converters.contract.results import Tensor
from triton_converters.gates import signature
from triton_converters.incoming import arrays
from triton_converters.incoming.files import unfit
from triton_converters.model_config.data_types import triton_type


def take(root: Path, folder: str, tensors: Sequence[Tensor], samples: int, target: Path) -> None:
    """Write the outputs in a folder of ``root`` anew, into the new directory ``target``.

    ``tensors``: those that each sample has. Raises StageError: Crashed for other ones, StorageFull.
    """
    target.mkdir(parents=True)
    for number, start in enumerate(range(0, samples, served_outputs.CHUNK)):
        count = min(served_outputs.CHUNK, samples - start)
        name = f"{folder}/{served_outputs.file_name(number)}"
        # Strings that are no text are two arrays of the file.
        found = arrays.read_arrays(root, name, target, 2 * count * len(tensors))
        wanted = {f"{index}/{tensor.name}": tensor for index in range(count) for tensor in tensors}
        if found.keys() != wanted.keys() or not all(fits(wanted[each], array) for each, array in found.items()):
            raise unfit(root / name, f"it does not hold the outputs of {count} samples")
        kept: list[Mapping[str, Array]] = [
            {tensor.name: found[f"{index}/{tensor.name}"] for tensor in tensors} for index in range(count)
        ]
        served_outputs.write_chunk(target, number, kept)


def fits(tensor: Tensor, array: Array) -> bool:
    """Whether a sample's output has the type and sizes of its tensor."""
    return signature.fits(tensor, Tensor(tensor.name, triton_type(array.dtype) or "", array.shape))
