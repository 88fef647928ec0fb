"""The candidates of a first TritonDeployment, from the converters' own registry. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from triton_converters.contract.formats import FORMATS, SOURCES

FP32, BOTH = ("fp32",), ("fp32", "fp16")


class FirstCandidate(NamedTuple):
    """As in spec.models[].candidates."""

    name: str
    format: str
    precision: str
    accelerator: str


def candidates(source: str, gpu: bool) -> list[FirstCandidate]:
    """What a model of that source format converts into and today's servers serve, each format once or twice.

    fp16 only where it is likely to pay: on a GPU; and where there would be one candidate alone.
    """
    formats = [name for name in SOURCES[source].converters if not _reason(name, gpu)]
    precisions = BOTH if gpu or len(formats) == 1 else FP32
    accelerators = ("none", "trt") if gpu else ("none",)
    return [
        FirstCandidate(f"{name}-{'trt-' if accelerator == 'trt' else ''}{precision}", name, precision, accelerator)
        for name in formats
        for accelerator in accelerators
        if accelerator in FORMATS[name].accelerators
        for precision in precisions
    ]


def left_out(source: str, gpu: bool) -> Iterator[str]:
    """The other formats, each with the reason."""
    for name in SOURCES[source].converters:
        if reason := _reason(name, gpu):
            yield f"{name} ({reason})"


def _reason(name: str, gpu: bool) -> str:
    form = FORMATS[name]
    if form.last_release:
        return f"no server after release {form.last_release} has it"
    return "needs --gpu PRODUCT" if form.needs_gpu and not gpu else ""
