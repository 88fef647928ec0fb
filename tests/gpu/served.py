"""`python3 served.py FOLDER` in the server's image: serve the repository of `repository.py`, and compare each answer.

It needs Python's standard library and the converters' own check of TensorRT alone.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from triton_converters.tensorrt_check import LIBRARIES, installed, same

URL = "http://127.0.0.1:8000/v2"
START_SECONDS = 600
TOLERANCE = 1e-4
"""The default tolerance of fp32, absolute and relative."""


def main(folder: Path) -> int:
    """Return the number of checks that failed; print each."""
    built, found = (folder / "tensorrt").read_text(), installed(os.environ, LIBRARIES)
    failed = [
        check("TensorRT", f"built with {built}, served with {found or 'unknown'}", bool(found) and same(built, found))
    ]
    argv = ["tritonserver", f"--model-repository={folder / 'models'}", "--exit-on-error=true", "--log-info=false"]
    with subprocess.Popen(argv) as server:
        try:
            wait(server)
            failed += [answers(folder, name) for name in ("graph", "engine")]
        finally:
            server.terminate()
    return sum(failed)


def wait(server: "subprocess.Popen[bytes]") -> None:
    """Return once the server is ready. Raises RuntimeError if it ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"{URL}/health/ready", timeout=5)
        except (urllib.error.URLError, OSError):
            time.sleep(1)
        else:
            return
    raise RuntimeError(f"tritonserver is not ready; its exit code is {server.poll()}")


def answers(folder: Path, name: str) -> bool:
    """Whether the model does not answer as the CPU does."""
    body = (folder / "request.json").read_bytes()
    with urllib.request.urlopen(f"{URL}/models/{name}/infer", data=body, timeout=60) as response:
        (output,) = json.load(response)["outputs"]
    expected = json.loads((folder / "answer.json").read_text())
    pairs = list(zip(output["data"], expected, strict=True))
    outside = sum(abs(one - other) > TOLERANCE + TOLERANCE * abs(other) for one, other in pairs)
    worst = max(abs(one - other) for one, other in pairs)
    words = f"{outside} of {len(pairs)} elements outside {TOLERANCE}, largest difference {worst:.3g}"
    return check(f"{name} on the GPU", words, not outside)


def check(what: str, words: str, passed: bool) -> bool:
    """Print a check; return whether it failed."""
    print(f"{'passed' if passed else 'FAILED'}  {what}: {words}", flush=True)
    return not passed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
