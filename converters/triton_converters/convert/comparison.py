"""How far the converted file is from the framework when its format's own runtime runs it in the Job, without Triton.

This is a figure for the result, not a gate: the gates ask the server, which is what counts.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from triton_converters.claim_store.dump import Arrays, Batch, read_batches
from triton_converters.contract import layout, onnx_words
from triton_converters.contract.conversion_requests import ConvertRequest, Entrypoint, ModelCode
from triton_converters.contract.formats import FORMATS, has_runtime
from triton_converters.contract.measurement_requests import Tolerance
from triton_converters.contract.results import Signature
from triton_converters.gates import agreement
from triton_converters.load import framework
from triton_converters.load.framework import Framework
from triton_converters.user.dataloader import head

SAMPLES = 4
"""Number of the reference's first samples to compare; each costs a run of the model on the Job's processor."""
_ANY = Tolerance(0.0, 0.0)


def max_absolute_error(
    request: ConvertRequest, signature: Signature, directory: Path
) -> tuple[float | None, tuple[str, ...]]:
    """Return the largest |converted - framework| of all floating point outputs, and warnings.

    ``directory`` holds the converted file. The error is None if the Job has no runtime of the format, if the file does
    not run, or if it answers NaN or infinity; the last two with a warning.
    """
    if not has_runtime(request.format):
        return None, ()
    largest = 0.0
    try:
        answer = runtime(request.format, signature, directory)
        for batch in _first(request, signature):
            answers = answer(batch.inputs)
            for name, expected in batch.outputs.items():
                found = agreement.compare(name, expected[None], answers[name][None], [str(batch.ids[0])], _ANY)
                if found.not_finite:
                    return None, (f"outside Triton, output {name} holds {found.not_finite} NaN or infinite elements",)
                largest = max(largest, found.max_absolute_error)
    except Exception as error:
        words = onnx_words.own(str(error))
        return None, (f"the converted file does not run outside Triton: {type(error).__name__}: {words}",)
    return largest, ()


def runtime(format_name: str, signature: Signature, directory: Path) -> Callable[[Arrays], Arrays]:
    """Return what answers a batch by the converted file in ``directory``, under the signature's names.

    Raises what the format's own runtime raises.
    """
    code = ModelCode(format_name, Entrypoint(FORMATS[format_name].file, {}), signature.max_batch_size)
    return partial(_run, framework.load(directory, code, format_name), signature)


def _first(request: ConvertRequest, signature: Signature) -> Iterator[Batch]:
    """Yield batches of the reference that hold its first SAMPLES samples."""
    left = SAMPLES
    for batch in read_batches(layout.reference_directory(request.reference)):
        if left <= 0:
            return
        yield head(batch, left) if signature.max_batch_size else batch
        left -= batch.samples(signature.max_batch_size > 0)


def _run(model: Framework, signature: Signature, inputs: Arrays) -> Arrays:
    """Return outputs by the signature's names; a file with other names has them in the signature's order."""
    given = {own: inputs[tensor.name] for own, tensor in zip(model.inputs, signature.inputs, strict=True)}
    if set(model.inputs) == {tensor.name for tensor in signature.inputs}:
        given = dict(inputs)
    answers = model(given)
    if set(model.outputs) == {tensor.name for tensor in signature.outputs}:
        return answers
    return {tensor.name: answers[own] for own, tensor in zip(model.outputs, signature.outputs, strict=True)}
