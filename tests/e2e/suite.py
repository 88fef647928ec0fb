"""What every part of the suite needs: the cluster, the two namespaces, the watch and the pods that help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.applied import Applied
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.manifests import read
from tests.e2e.outside import Outside
from tests.e2e.prober import Prober
from tests.e2e.watching import Watch
from tests.e2e.workbench import Workbench


def thorough(case: Any, alike: bool) -> Any:
    """A parameter of a test; ``alike``: others like it run too, and it is left to the target that runs them all."""
    return pytest.param(case, marks=[pytest.mark.thorough] if alike else [])


@dataclass(frozen=True)
class Suite:
    """One run: a busy namespace for most objects, and a quiet one where a single object comes to rest."""

    busy: Kubectl
    quiet: Kubectl
    watch: Watch
    workbench: Workbench
    prober: Prober
    kubelet: Path
    """The kubelet's root directory on the node."""
    certificate: Path
    """Of a server named `index`, with its key. The installation's source and packages Jobs trust its authority."""
    outside: Outside | None
    """None: the node of another cluster is not this machine."""
    cases: frozenset[str]
    """The texts among the parameters of the tests that run: a lane of many alike does only what they ask for."""
    image: str
    """Of the converter: it holds torch, onnx and tritonclient."""

    def new(self, name: str, manifest: str = "classifier") -> Applied:
        """An object of the busy namespace, not applied yet."""
        return Applied(self.busy, self.watch, read(manifest), name)

    def compare(self, service: str, entrypoint: str, kind: str, batch: int) -> Object:
        """Served outputs against the framework's, by in_pod/compare.py, for a model of the suite's source."""
        return self.workbench.compare(entrypoint, kind, f"{service}.{self.busy.namespace}:8001", batch)
