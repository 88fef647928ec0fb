"""Which ONNX operator sets the ONNX Runtime of a server's release reads. Pure.

Which ONNX Runtime a release has is written in `build.py` of github.com/triton-inference-server/server at the release's
tag. Each version was installed from PyPI and asked to load graphs of every operator set and of every version of ONNX's
file format.
"""

from dataclasses import dataclass
from itertools import takewhile


@dataclass(frozen=True)
class Runtime:
    """An ONNX Runtime, and what the files may be that it reads."""

    since: str
    """The first release of Triton that has it, as YY.MM."""
    version: str
    opset: int
    """The newest operator set; it refuses files of a newer one."""
    ir_version: int
    """The newest version of the file format. What the Jobs write is never newer than 10, unless it needs to be."""


RUNTIMES = (
    Runtime("23.05", "1.15", 19, 9),
    Runtime("24.03", "1.17", 20, 9),
    Runtime("24.05", "1.18", 21, 10),
    Runtime("25.03", "1.21", 22, 10),
    Runtime("25.08", "1.23", 23, 11),
    Runtime("26.02", "1.24", 25, 13),
    Runtime("26.07", "1.27", 26, 13),
)
"""The versions that read more than the one before, the oldest first. Releases in between have later versions of these:
1.16, 1.19, 1.20 and 1.22."""


def refusal(release: str, opset: int) -> str | None:
    """Return why a server of the release reads no graph of the operator set, and what to do; None: it may.

    ``release``: of NVIDIA's image, as YY.MM; empty, or older than all that are known here: nothing is known.
    """
    until = list(takewhile(lambda each: each.since <= release, RUNTIMES))
    if not until or opset <= until[-1].opset:
        return None
    reading = next((each for each in RUNTIMES if each.opset >= opset), None)
    other = f", or spec.serving.image to an image of {reading.since} or newer" if reading else ""
    return (
        f"release {release} reads ONNX operator sets up to {until[-1].opset}, and the spec asks for {opset}; set"
        f" spec.models[].onnx.opset to at most {until[-1].opset}{other}"
    )
