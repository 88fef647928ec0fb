"""The same source from a ConfigMap, suspended at first."""

import base64
import json
import time
from dataclasses import dataclass
from hashlib import sha256

from tests.e2e.kubectl import Object
from tests.e2e.state import State
from tests.e2e.suite import Suite
from tests.e2e.workbench import SOURCE

NAME = "from-configmap"
SUSPENDED_SECONDS = 3.0
DUMP = """
import base64, json, pathlib, sys
files = pathlib.Path(sys.argv[1]).iterdir()
print(json.dumps({file.name: base64.b64encode(file.read_bytes()).decode() for file in files}))
"""


@dataclass(frozen=True)
class FromConfigMap:
    """The object while it was suspended, with its Jobs, and once it was Ready."""

    suspended: State
    jobs_while_suspended: tuple[Object, ...]
    ready: State
    digest: str
    """SHA-256 of the source, computed as docs/source.md says."""


def run(suite: Suite) -> FromConfigMap:
    """Copy the files of the claim into a ConfigMap, apply, look, resume."""
    files = json.loads(suite.workbench.run("python3", "-c", DUMP, SOURCE))
    suite.busy.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "suite"}, "binaryData": files})
    applied = suite.new(NAME)
    source = {"source": {"uri": "configmap://suite"}}
    generation = applied.apply({**source, "suspend": True})
    suspended = applied.wait("Suspended", lambda state: state.says("Ready", "Suspended"), generation=generation)
    time.sleep(SUSPENDED_SECONDS)
    jobs = tuple(applied.jobs().values())
    ready = applied.wait_ready(applied.apply(source)).state
    return FromConfigMap(suspended.state, jobs, ready, digest_of(files))


def digest_of(files: dict[str, str]) -> str:
    """Of the files' base64 by name."""
    contents = {name: base64.b64decode(content) for name, content in files.items()}
    lines = [f"{sha256(content).hexdigest()}  {name}\n" for name, content in sorted(contents.items())]
    return sha256("".join(lines).encode()).hexdigest()
