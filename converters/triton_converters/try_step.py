"""``python3 -m triton_converters.try_step FOLDER FILE ...``: run a Python step once, without a cluster.

It runs the file as the reference does, over the same stand-in of the backend's module, with the dataloader's first
sample or the arrays of a .npz file, and prints what comes out. It knows one step alone: neither its neighbours nor
models that it asks.
"""

import argparse
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.failures import failure_of
from triton_converters.load.triton_python import load
from triton_converters.model_config.data_types import BYTES, NUMPY_BY_TRITON
from triton_converters.user.user_code import call, running

TEXTS = "OSU"
"""NumPy's kinds of arrays that hold text or bytes."""
SHOWN = 200
"""Characters of an output's values that are printed."""


def main(arguments: Sequence[str]) -> int:
    """Run the step, print its outputs, and return the exit code; a failure is printed as a Job tells it."""
    options = _parser().parse_args(arguments)
    declared = Signature(tuple(options.input), tuple(options.output), options.max_batch_size)
    entrypoint = Entrypoint(options.file, dict(options.argument))
    code = ModelCode("triton-python", entrypoint, options.max_batch_size, declared=declared if options.input else None)
    try:
        step = load(options.folder.resolve(), code, "")
        given = _given(options)
        inputs = {name: _input(name, given, dict(options.take), declared) for name in step.inputs}
        outputs = step(inputs)
    except (Exception, SystemExit) as error:
        failure = failure_of(error)
        if not isinstance(error, StageError):
            print(f"{failure.reason}: {failure.message}", file=sys.stderr)
        return 1
    for title, arrays in (("input", inputs), ("output", outputs)):
        for name, array in arrays.items():
            print(f"{title} {name}: {array.dtype}{list(array.shape)} {array.tolist()!s:.{SHOWN}}")
    return _save(outputs, options.save) if options.save else 0


def _save(outputs: Arrays, path: Path) -> int:
    """Write the outputs and return the exit code: bytes that are no text cannot be kept without pickles."""
    if unkept := [name for name, array in outputs.items() if array.dtype.hasobject]:
        print(f"nothing is saved: {', '.join(unkept)} holds bytes, which a .npz file cannot keep", file=sys.stderr)
        return 1
    try:
        numpy.savez(path, allow_pickle=False, **outputs)
    except OSError as error:
        print(f"nothing is saved: {error}; mount a folder that may be written to", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python3 -m triton_converters.try_step", description="Run a Python step once.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the source's folder")
    parser.add_argument("file", metavar="FILE", help="the step's file below it, as in models[].entrypoint")
    for side in ("input", "output"):
        words = (
            f"an {side} as in models[].{side}s, such as pixels:FP32:64; again for each; default: what the file declares"
        )
        parser.add_argument(
            f"--{side}", action="append", default=[], type=_tensor, metavar="NAME:TYPE:DIM,DIM", help=words
        )
    parser.add_argument("--max-batch-size", type=int, default=0, metavar="N", help="0: no batch dimension (default)")
    parser.add_argument("--argument", action="append", default=[], type=_pair, metavar="NAME=VALUE", help="of the step")
    samples = parser.add_mutually_exclusive_group(required=True)
    samples.add_argument("--dataloader", default="", metavar="FILE", help="its first sample is given to the step")
    samples.add_argument("--data", type=Path, metavar="FILE.npz", help="arrays by name, with the batch dimension")
    parser.add_argument(
        "--dataloader-argument", action="append", default=[], type=_pair, metavar="NAME=VALUE", help="of the dataloader"
    )
    words = "the array that an input takes, if that has another name; as in inputMap"
    parser.add_argument("--take", action="append", default=[], type=_pair, metavar="INPUT=ARRAY", help=words)
    parser.add_argument("--save", type=Path, metavar="FILE.npz", help="where to write the outputs, for the next step")
    return parser


def _tensor(text: str) -> Tensor:
    try:
        name, kind, dims = text.rsplit(":", 2)
        sizes = tuple(int(each) for each in dims.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no tensor such as pixels:FP32:64") from error
    if kind != BYTES and kind not in NUMPY_BY_TRITON:
        raise argparse.ArgumentTypeError(f"{kind!r} is no type; types are {', '.join([*NUMPY_BY_TRITON, BYTES])}")
    return Tensor(name, kind, sizes)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} has no '='")
    return name, value


def _given(options: argparse.Namespace) -> Arrays:
    """Return the arrays of the file, or the inputs of the dataloader's first batch, by name.

    Raises StageError(DataloaderInvalid) for a file that holds no arrays, or a batch that is none.
    """
    if options.data is not None:
        try:
            with numpy.load(options.data, allow_pickle=False) as arrays:
                return {name: _kept(arrays, name) for name in arrays}
        # A file with one array, or none, is returned or refused in several ways.
        except (OSError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
            message = f"{options.data} is no .npz file with arrays by name, as --save and numpy.savez write it"
            raise StageError(Reason.DATALOADER_INVALID, message) from error
    folder = options.folder.resolve()
    path = options.dataloader
    stage: dict[str, int | str] = {"batch_size": 1, "precision": "fp32", "output_format": "ensemble"}
    loader = Entrypoint(path, dict(options.dataloader_argument))
    generate = call(folder, loader, "get_dataloader_fn", stage)
    with running(folder, path):
        batch = next(iter(generate()), None)
    if not isinstance(batch, tuple | list) or len(batch) != 3 or not isinstance(batch[1], Mapping):
        raise StageError(Reason.DATALOADER_INVALID, f"{path}: the first batch is not (ids, inputs, labels)")
    return {str(name): numpy.asarray(array) for name, array in batch[1].items()}


def _kept(arrays: Mapping[str, Array], name: str) -> Array:
    """Return an array of a .npz file. Raises StageError(DataloaderInvalid) for Python's objects."""
    try:
        return arrays[name]
    except ValueError as error:
        message = f'{name} holds objects, which are not read: save texts by numpy.array(texts, dtype="S") ({error})'
        raise StageError(Reason.DATALOADER_INVALID, message) from error


def _input(name: str, given: Arrays, taken: Mapping[str, str], declared: Signature) -> Array:
    """Return the array of an input.

    Raises StageError(DataloaderInvalid) if it has another type than declared, or more samples than the largest batch.
    """
    source = taken.get(name, name)
    if source not in given:
        message = f"nothing gives input {name}: there are {', '.join(given) or 'no arrays'}; write --take {name}=ARRAY"
        raise StageError(Reason.DATALOADER_INVALID, message)
    array = given[source]
    kind = next((each.data_type for each in declared.inputs if each.name == name), "")
    fits = array.dtype.kind in TEXTS if kind == BYTES else array.dtype.name == NUMPY_BY_TRITON.get(kind)
    if kind and not fits:
        message = f"{source} is {array.dtype}, and input {name} is declared as {kind}: give it in that type"
        raise StageError(Reason.DATALOADER_INVALID, message)
    if 0 < declared.max_batch_size < (samples := array.shape[0] if array.ndim else 0):
        words = f"{source} has {samples} samples, and --max-batch-size is {declared.max_batch_size}"
        raise StageError(Reason.DATALOADER_INVALID, f"{words}: give at most as many")
    return array


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
