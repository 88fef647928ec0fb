"""The table of parameters in NVIDIA's READMEs, of one candidate. Pure."""

from collections.abc import Iterable, Sequence

from triton_converters.contract.formats import FORMATS
from triton_operator.api.model import Model
from triton_operator.api.schema import ApiType
from triton_operator.api.search_status import ConfigStatus
from triton_operator.api.status import CandidateStatus
from triton_plugin.reading.subject import Subject, member_parts

BACKENDS = {
    "hps": "Merlin HPS",
    "onnxruntime": "ONNX Runtime",
    "python": "Python",
    "pytorch": "PyTorch",
    "tensorflow": "TensorFlow",
    "tensorrt": "TensorRT",
}
"""The names of Triton's backends in NVIDIA's READMEs."""
VARIANTS = {"ts-trace": "Trace", "ts-script": "Script"}
"""The ways to TorchScript, as NVIDIA's READMEs name them."""


class Parameter(ApiType):
    """A line of the table of parameters in NVIDIA's READMEs."""

    name: str
    """The name of the parameter in NVIDIA's READMEs."""
    value: str
    """The value that was used."""


FORMAT, PRECISION, ACCELERATOR = "Model Format", "Precision", "Backend Accelerator"
"""The parameters that a heading names."""


def heading(found: Sequence[Parameter]) -> str:
    """Return what was measured, in the words of NVIDIA's headings, such as "onnx with FP16, cuda"."""
    values = {each.name: each.value for each in found}
    words = f"{values.get(FORMAT, 'unknown format')} with {values.get(PRECISION, 'unknown precision')}"
    accelerator = values.get(ACCELERATOR, "")
    return f"{words}, {accelerator}" if {*accelerator.split(" + ")} - {"", "none"} else words


def parameters(shown: CandidateStatus | None, subject: Subject) -> list[Parameter]:
    """Return the parameters of the candidate that is shown."""
    formats, precisions, accelerators = _of_members(shown)
    spec, models = subject.spec, subject.spec.models
    tuned = shown.config if shown else None
    lines = {
        "Ensemble of": " + ".join(each.name for each in models) if spec.ensemble else "",
        "Export Format": _joined(each.format for each in models if each.format),
        "Backend": _joined(BACKENDS[FORMATS[each].backend] for each in formats if each in FORMATS),
        FORMAT: " + ".join(formats),
        "Conversion variant": _joined(VARIANTS[each] for each in formats if each in VARIANTS),
        "Model size": _size(shown, subject),
        "Input": _inputs(subject),
        PRECISION: _joined(precisions).upper(),
        ACCELERATOR: _joined(accelerators),
        "GPU" if spec.gpu_count else "Device Kind": _device(subject),
        "Configuration found by": f"{spec.selection.search.mode} search" if tuned else "",
        **(_found(tuned) if tuned else _given(subject)),
        "Overrides of config.pbtxt": _joined(" ".join(each.config.overrides.split()) for each in models),
        "Protocol": spec.performance.protocol,
        "Shared memory": ", ".join(sorted(spec.performance.shared_memory)) or "none",
        "Measurement": _measurement(subject),
    }
    return [Parameter(name=name, value=value) for name, value in lines.items() if value]


def _of_members(shown: CandidateStatus | None) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the formats, precisions and accelerators of a candidate's models."""
    members = [member_parts(each) for each in shown.members] if shown else []
    formats, precisions, accelerators = zip(*members, strict=True) if members else ((), (), ())
    return formats, precisions, accelerators


def _size(shown: CandidateStatus | None, subject: Subject) -> str:
    """Return how large the candidate's file is; empty: not known."""
    conversion = subject.conversion(shown) if shown else None
    return f"{conversion.file_bytes / 1e6:.3g} MB" if conversion and conversion.file_bytes else ""


def _inputs(subject: Subject) -> str:
    """Return the shapes that clients send, such as 4x128x128x128; -1 is any size."""
    signature = subject.status.signature
    shapes = {each.name: "x".join(map(str, each.dims)) for each in signature.inputs} if signature else {}
    return ", ".join(f"{name} {shape}" if len(shapes) > 1 else shape for name, shape in shapes.items())


def _device(subject: Subject) -> str:
    """Return what the active revision was measured on, or else the GPU that the spec wants."""
    performance, gpu = subject.status.performance, subject.spec.gpu
    environment = performance.environment if performance else None
    if environment:
        return environment.gpu_product or environment.device
    return gpu.product if gpu else ""


def _given(subject: Subject) -> dict[str, str]:
    """Return the spec's configuration."""
    models = subject.spec.models
    members = f" ({_joined(str(each.config.largest_batch) for each in models)})" if subject.spec.ensemble else ""
    return {
        "Max Batch Size": f"{subject.spec.max_batch_size}{members}",
        "Number of model instances": _joined(str(each.config.instances) for each in models),
        "Dynamic batching": _joined("yes" if each.config.dynamic_batching else "no" for each in models),
        "Triton Max Queue Delay": _joined(_delay(each) for each in models),
        "Triton Preferred Batch Sizes": _joined(_preferred(each) for each in models),
        "CUDA graphs": _joined("yes" if each.config.cuda_graphs else "no" for each in models),
    }


def _found(tuned: ConfigStatus) -> dict[str, str]:
    """Return the configuration that a search found."""
    batching = tuned.dynamic_batching
    return {
        "Max Batch Size": str(tuned.max_batch_size),
        "Number of model instances": str(tuned.instances),
        "Dynamic batching": "yes" if batching else "no",
        "Triton Max Queue Delay": batching.max_queue_delay if batching else "",
        "Triton Preferred Batch Sizes": " ".join(map(str, batching.preferred_batch_sizes)) if batching else "",
        "CUDA graphs": "yes" if tuned.cuda_graphs else "no",
    }


def _joined(words: Iterable[str]) -> str:
    """Return one word for each model of an ensemble, or the word that they share; empty if there is none."""
    found = list(words)
    return found[0] if len(set(found)) == 1 else " + ".join(word or "none" for word in found)


def _delay(model: Model) -> str:
    batching = model.config.dynamic_batching
    return batching.max_queue_delay if batching else ""


def _preferred(model: Model) -> str:
    batching = model.config.dynamic_batching
    return " ".join(map(str, batching.preferred_batch_sizes)) if batching else ""


def _measurement(subject: Subject) -> str:
    how = subject.spec.performance.measurement
    windows = f"of {how.request_count} requests" if how.mode == "CountWindows" else f"of {how.interval}"
    return f"windows {windows}, three within {how.stability_percent} %"
