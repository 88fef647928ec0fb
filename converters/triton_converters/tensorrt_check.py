"""``python3 -m triton_converters.tensorrt_check STAGE KEY VERSION``: hold this image's TensorRT against an engine's.

An engine runs with the TensorRT that built it and with no other. This runs in the server's own image, before the
server: it imports nothing but the standard library, not even its own package, and keeps to Python 3.10, which NVIDIA's
images of 24.01 to 24.10 have. Where the image does not tell its version, the server is left to find out.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

LIBRARIES = ("/usr/lib", "/usr/local/lib", "/usr/local/tensorrt", "/opt/tritonserver")
"""Where images keep TensorRT: NVIDIA's in the first."""
EXIT_FINAL = 42
"""As in result.py."""
REASON = "TensorRtVersionMismatch"
"""As in reasons.py."""


def main(arguments: list[str]) -> int:
    """Compare, leave a mismatch in the termination message, and give the exit code."""
    stage, key, built = arguments
    found = installed(os.environ, LIBRARIES)
    print(f"the engine was built with TensorRT {built}, this image has {found or 'one of an unknown version'}")
    if not found or same(built, found):
        return 0
    message = (
        f"the engine was built with TensorRT {built}, the server's image has {found}: give spec.conversion.pod.image"
        f" one with {found}, or spec.serving.image one with {built}"
    )
    outcome = {"stage": stage, "key": key, "reason": REASON, "message": message}
    Path(os.environ.get("TERMINATION_LOG", "/dev/termination-log")).write_text(json.dumps(outcome), encoding="utf-8")
    return EXIT_FINAL


def installed(environment: Mapping[str, str], libraries: Iterable[str]) -> str:
    """The image's TensorRT: what NVIDIA's images say in TRT_VERSION, or else the library's file name; empty: none."""
    told = re.match(r"\d+(\.\d+)+", environment.get("TRT_VERSION", ""))
    if told:
        return told.group()
    for folder in libraries:
        for path in sorted(Path(folder).glob("**/libnvinfer.so.*.*.*")):
            return path.name.partition(".so.")[2]
    return ""


def same(built: str, found: str) -> bool:
    """Whether two versions agree in all the parts that both have; a file name has three of four."""
    return all(one == other for one, other in zip(built.split("."), found.split("."), strict=False))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
