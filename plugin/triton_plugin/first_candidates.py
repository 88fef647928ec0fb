"""The candidates of a first TritonDeployment, from the converters' own registry. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from triton_converters.contract.formats import FORMATS, SOURCES

FP32, BOTH = ("fp32",), ("fp32", "fp16")


class FirstCandidate(NamedTuple):
    """A candidate of spec.models[].candidates."""

    name: str
    format: str
    precision: str
    accelerator: str


def candidates(source: str, gpu: bool) -> list[FirstCandidate]:
    """Return candidates in each format that the source format converts to and that today's servers support.

    fp16 is included where it is likely to pay: on a GPU, or if there would be only one candidate.
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
    """Yield the formats that are left out, each with the reason."""
    for name in SOURCES[source].converters:
        if reason := _reason(name, gpu):
            yield f"{name} ({reason})"


def _reason(name: str, gpu: bool) -> str:
    form = FORMATS[name]
    if form.last_release:
        return f"no server after release {form.last_release} supports it"
    return "needs --gpu PRODUCT" if form.needs_gpu and not gpu else ""
