"""References of a model as the operator makes them, and the gates' verdict on a variant, in this process."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy

from triton_converters.claim_store.dump import Array, Arrays, read_all, read_batches, read_sizes
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import DEFAULT_TOLERANCES, ServedModel
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature
from triton_converters.gates.answers import scales_of
from triton_converters.gates.candidate import ServedCandidate, judge
from triton_converters.incoming.documents import Names
from triton_converters.load.onnx import load
from triton_converters.model_config.data_types import strings
from triton_converters.stages.reference import produce, publish

FILE = "model.onnx"
SOURCE = "5eed" * 16
"""The digest of the source, by which inputs are generated."""
LARGEST_BATCH = 4
"""``maxBatchSize`` where the spec leaves it out."""
MOST_SAMPLES = 256
"""``accuracy.maxSamples`` where the spec leaves it out."""
DATALOADER = """
import numpy

def get_dataloader_fn(batch_size):
    def batches():
        with numpy.load(FILE, allow_pickle=False) as saved:
            for number, ids in enumerate(IDS):
                yield ids, {name: saved[f"{number}/{name}"] for name in NAMES}, {}
    return batches
"""


@dataclass(frozen=True)
class Reference:
    """What a model's framework answered, and the signature that it is served with."""

    directory: Path
    signature: Signature
    samples: int
    batches: int

    @property
    def batched(self) -> bool:
        """Whether the first dimension is a batch."""
        return self.signature.max_batch_size > 0


def reference(source: Path, max_batch_size: int, directory: Path, rows: list[dict[str, Array]] | None) -> Reference:
    """Make the reference of ``source``/model.onnx; ``rows``: a dataloader's samples; None: inputs are generated.

    Raises StageError as the reference stage does.
    """
    dataloader = None if rows is None else _dataloader(source, rows, max_batch_size)
    model = ModelCode("onnx", Entrypoint(FILE, {}), max_batch_size)
    request = ReferenceRequest("k", SOURCE, model, dataloader, MOST_SAMPLES, needs_labels=False)
    incoming = directory.with_name(f"{directory.name}-incoming")
    incoming.mkdir(parents=True)
    directory.mkdir()
    framework = load(source, model, "onnx")
    produce.record(framework, request, source, incoming)
    names = Names(framework.inputs, framework.outputs, framework.open_axes)
    signature, samples, batches, _ = publish.record(request, names, incoming, directory)
    return Reference(directory, signature, samples, batches)


def _dataloader(source: Path, rows: list[dict[str, Array]], max_batch_size: int) -> Entrypoint:
    """Write the samples, and the dataloader that yields them in batches of one shape."""
    batches = list(batched(rows, max_batch_size))
    saved = source / "samples.npz"
    arrays = {f"{number}/{name}": array for number, (_, batch) in enumerate(batches) for name, array in batch.items()}
    numpy.savez(saved, allow_pickle=False, **arrays)
    facts = {"FILE": str(saved), "IDS": [ids for ids, _ in batches], "NAMES": list(rows[0])}
    head = "".join(f"{name} = {value!r}\n" for name, value in facts.items())
    (source / "dataloader.py").write_text(head + DATALOADER, encoding="utf-8")
    return Entrypoint("dataloader.py", {})


def batched(rows: list[dict[str, Array]], size: int) -> Iterator[tuple[list[int], dict[str, Array]]]:
    """Yield the numbers and the inputs of at most ``size`` samples of one shape; 0: one sample as it is."""
    waiting: dict[tuple[tuple[int, ...], ...], list[int]] = {}

    def joined(numbers: list[int]) -> tuple[list[int], dict[str, Array]]:
        return numbers, {name: numpy.stack([rows[each][name] for each in numbers]) for name in rows[0]}

    for number, row in enumerate(rows):
        if not size:
            yield [number], row
            continue
        group = waiting.setdefault(tuple(array.shape for array in row.values()), [])
        group.append(number)
        if len(group) == size:
            yield joined(group.copy())
            group.clear()
    yield from (joined(group) for group in waiting.values() if group)


def verdict(
    run: Callable[[Arrays], dict[str, Array]], path: Path, precision: str, made: Reference
) -> StageError | None:
    """Return why the gates fail a variant; None: they pass it. ``path``: its file, from which types are read."""

    def infer(inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        given = {name: array.reshape(array.shape[:-1]) if name in scalars else array for name, array in inputs.items()}
        try:
            answered = run(given)
        except Exception as error:
            raise StageError(Reason.INFERENCE_FAILED, f"{type(error).__name__}: {error}") from error
        return {name: _wire(numpy.asarray(answered[name]), name in scalars) for name in outputs}

    scalars = {each.name for each in (*made.signature.inputs, *made.signature.outputs) if not each.dims}
    tolerance = DEFAULT_TOLERANCES[precision]
    return judge(
        ServedCandidate(
            declared=lambda: _served(made.signature),
            infer=infer,
            signature=made.signature,
            precision=precision,
            tolerance=tolerance,
            scales=lambda: scales_of(read_all(made.directory), made.batched, tolerance, precision),
            batches=read_batches(made.directory),
            sizes=read_sizes(made.directory),
            files=[(path, ServedModel("m", "onnx", precision))],
            keep_outputs=False,
            published_types=(),
            engine_caches=(),
        )
    )


def _served(signature: Signature) -> Signature:
    """Return the signature as the written config.pbtxt declares it: a scalar is a tensor of one element."""
    inputs, outputs = (
        tuple(replace(each, dims=each.served_dims) for each in side) for side in (signature.inputs, signature.outputs)
    )
    return Signature(inputs, outputs, signature.max_batch_size)


def _wire(array: Array, is_scalar: bool) -> Array:
    """Return an output as a server sends it."""
    array = array.reshape(*array.shape, 1) if is_scalar else array
    return strings(array) if array.dtype.hasobject else array
