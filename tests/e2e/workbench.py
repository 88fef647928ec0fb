"""The tests' own pod in a namespace: it fills claims, and looks at and tampers with what lies on them."""

import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.manifests import read

HERE = Path(__file__).parent
SOURCE = "/models/suite"
DATA = "/models/data"
MODEL_NAMES = {"sequence": "tagger"}
"""Triton's model name by the kind of samples, where they differ."""


@dataclass(frozen=True)
class Workbench:
    """The pod; its claims are mounted at /models and /repository."""

    kubectl: Kubectl
    pod: str = "workbench"

    def python(self, script: str, *arguments: str, timeout: float = 120) -> str:
        """Run a script of ``in_pod/``; gives what it prints."""
        return self.kubectl.execute(self.pod, "python3", f"/scripts/{script}", *arguments, timeout=timeout)

    def run(self, *command: str) -> str:
        """Run a command."""
        return self.kubectl.execute(self.pod, *command)

    def files(self, folder: str) -> dict[str, str]:
        """Path, below the folder, and mode (as find's %m) of every file below it; folders end with a slash."""
        listed = self.run("find", folder, "-type", "f", "-printf", "%P %m\n", "-o", "-type", "d", "-printf", "%P/ %m\n")
        pairs = (line.rsplit(" ", 1) for line in listed.splitlines())
        return {path: mode for path, mode in pairs if path != "/"}

    def result(self, folder: str, key: str) -> Object:
        """The result.json of a key on the claim."""
        return self.json(f"/repository/.triton-operator/{folder}/{key}/result.json")

    def json(self, path: str) -> Object:
        """A file that holds JSON."""
        found: Object = json.loads(self.run("cat", path))
        return found

    def compare(self, entrypoint: str, kind: str, url: str, batch: int) -> Object:
        """Served outputs against the framework's, by in_pod/compare.py; ``url`` is host:port of the gRPC endpoint."""
        arguments = (SOURCE, entrypoint, f"{kind}.safetensors", kind, MODEL_NAMES.get(kind, kind), url, str(batch))
        compared: Object = json.loads(self.python("compare.py", *arguments))
        return compared

    def fill(self) -> None:
        """Put the models' code, checkpoints and data on the models claim."""
        self.run("mkdir", "-p", SOURCE, DATA)
        program = f"import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode='r|').extractall('{SOURCE}')"
        self.kubectl.execute(self.pod, "python3", "-c", program, stdin=archive(HERE / "models"))
        self.python("seed.py", SOURCE, DATA)
        # Importing the models in this pod must not add files to the source.
        self.run("rm", "-rf", f"{SOURCE}/__pycache__")


def start(kubectl: Kubectl, image: str, repository: str = "repository") -> Workbench:
    """Make the pod, its scripts and the claims, and wait until it runs; ``repository`` is the claim at /repository."""
    if not kubectl.exists("configmap", "scripts"):
        kubectl.run("create", "configmap", "scripts", f"--from-file={HERE / 'in_pod'}")
        kubectl.apply(*read("claims")["items"])
    pod = read("workbench")
    pod["spec"]["containers"][0]["image"] = image
    claim = next(each for each in pod["spec"]["volumes"] if each["name"] == "repository")
    claim["persistentVolumeClaim"]["claimName"] = repository
    kubectl.apply(pod)
    kubectl.run("wait", "--for=condition=Ready", "pod/workbench", "--timeout=120s", timeout=130)
    return Workbench(kubectl)


def archive(folder: Path) -> bytes:
    """The Python files of a folder as a tar, with fixed owners and times: equal files, equal digest."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for file in sorted(folder.glob("*.py")):
            entry = tarfile.TarInfo(file.name)
            entry.size, entry.mode = file.stat().st_size, 0o644
            tar.addfile(entry, io.BytesIO(file.read_bytes()))
    return buffer.getvalue()
