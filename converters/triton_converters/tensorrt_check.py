"""``python3 -m triton_converters.tensorrt_check STAGE KEY VERSION``: compare this image's TensorRT with an engine's.

An engine runs only with the TensorRT version that built it. This check runs in the server's own image, before the
server: it imports only the standard library, not even its own package. If the image does not tell its version, the
server will find out.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

LIBRARIES = ("/usr/lib", "/usr/local/lib", "/usr/local/tensorrt", "/opt/tritonserver")
"""Where images keep TensorRT; NVIDIA's images use the first."""
EXIT_FINAL = 42
"""Equal to contract.envelope.EXIT_FINAL, which this program may not import."""
REASON = "FormatNotServed"
"""Equal to contract.reasons.Reason.FORMAT_NOT_SERVED, which this program may not import."""


def main(arguments: list[str]) -> int:
    """Compare, write a mismatch to the termination message, and return the exit code."""
    stage, key, built = arguments
    found = installed(os.environ, LIBRARIES)
    print(f"the engine was built with TensorRT {built}; this image has {found or 'an unknown version'}")
    if not found or same(built, found):
        return 0
    message = (
        f"the engine was built with TensorRT {built}, but the server's image has {found}; set spec.conversion.image"
        f" to an image with {found}, or spec.serving.image to one with {built}"
    )
    outcome = {"stage": stage, "key": key, "reason": REASON, "message": message}
    Path(os.environ.get("TERMINATION_LOG", "/dev/termination-log")).write_text(json.dumps(outcome), encoding="utf-8")
    return EXIT_FINAL


def installed(environment: Mapping[str, str], libraries: Iterable[str]) -> str:
    """Return the image's TensorRT version, from NVIDIA's TRT_VERSION or the library's file name; empty: unknown."""
    told = re.match(r"\d+(\.\d+)+", environment.get("TRT_VERSION", ""))
    if told:
        return told.group()
    for folder in libraries:
        for path in sorted(Path(folder).glob("**/libnvinfer.so.*.*.*")):
            return path.name.partition(".so.")[2]
    return ""


def same(built: str, found: str) -> bool:
    """Whether two versions agree in all parts that both have; a file name has three of four."""
    return all(one == other for one, other in zip(built.split("."), found.split("."), strict=False))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
