"""The same source from a ConfigMap: suspended at first, then changed twice, well and badly.

The prober asks it all the while from its first revision on.
"""

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from tests.e2e.applied import Applied
from tests.e2e.kubectl import Object
from tests.e2e.state import State
from tests.e2e.suite import Suite
from tests.e2e.workbench import SOURCE

NAME = "from-configmap"
CODE = "classifier.py"
CHANGED = b"# Other bytes, the same model.\n"
BROKEN = b"raise RuntimeError('half of the file is missing')\n"
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
    moved: tuple[State, ...]
    """Every version from the edit of the source to the end of its roll-out."""
    broken: tuple[State, ...]
    """The same for a source that cannot be loaded."""
    since: float
    until: float


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
    since = time.time()
    moved = follow(applied, publish(suite, files, "2", CHANGED), "UpToDate", lambda state: state.holds("UpToDate"))
    broken = follow(applied, publish(suite, files, "3", BROKEN), "its failure", failed)
    return FromConfigMap(suspended.state, jobs, ready, digest_of(files), moved, broken, since, until=time.time())


def publish(suite: Suite, files: Mapping[str, str], version: str, more: bytes) -> Object:
    """Write the files with more lines in the model's code; gives the source by which the operator reads them again."""
    code = base64.b64decode(files[CODE]) + more
    contents = {**files, CODE: base64.b64encode(code).decode()}
    suite.busy.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "suite"}, "binaryData": contents})
    return {"uri": "configmap://suite", "version": version}


def follow(applied: Applied, source: Object, what: str, until: Callable[[State], bool]) -> tuple[State, ...]:
    """Apply a source and wait; gives every version with conditions of that generation."""
    generation = applied.apply({"source": source})
    applied.wait(what, until, generation=generation)
    seen = applied.watch.history(applied.kubectl.namespace, applied.name)
    return tuple(each.state for each in seen if each.state.generation == generation and each.state.condition("Ready"))


def failed(state: State) -> bool:
    """Whether the newer source is given up."""
    return state.says("UpToDate", "UserCodeFailed")


def digest_of(files: dict[str, str]) -> str:
    """Of the files' base64 by name."""
    contents = {name: base64.b64decode(content) for name, content in files.items()}
    lines = [f"{sha256(content).hexdigest()}  {name}\n" for name, content in sorted(contents.items())]
    return sha256("".join(lines).encode()).hexdigest()
