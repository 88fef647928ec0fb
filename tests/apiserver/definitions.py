"""CustomResourceDefinitions of other projects, from the Go modules that their programs are built from."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.devcluster.binaries import BUILD_ENVIRONMENT, MODULES, GoModule
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import eventually


@dataclass(frozen=True)
class Definition:
    """A CustomResourceDefinition of another project."""

    name: str
    """PLURAL.GROUP."""
    module: GoModule
    """Whose programs know the kind."""
    source: str
    """The Go module that holds the definition, in the version that the programs are built with."""
    within: str
    """The folder of it that holds the definitions."""

    def folder(self) -> Path:
        """The folder of all definitions of the project, downloaded if need be."""
        text = (self.module.folder / "go.mod").read_text()
        version = next(line.split()[1] for line in text.splitlines() if line.split()[:1] == [self.source])
        argv = ["go", "mod", "download", "-json", f"{self.source}@{version}"]
        environment = os.environ | BUILD_ENVIRONMENT
        done = subprocess.run(argv, cwd=self.module.folder, env=environment, capture_output=True, check=True)
        return Path(json.loads(done.stdout)["Dir"]) / self.within

    @contextmanager
    def served(self, kubectl: Kubectl) -> Iterator[None]:
        """Have the API server know the kind for the block."""
        plural, _, group = self.name.partition(".")
        file = str(self.folder() / f"{group}_{plural}.yaml")
        kubectl("apply", "--server-side", "-f", file)
        try:
            eventually(lambda: kubectl("wait", "--for=condition=Established", f"crd/{self.name}", "--timeout=60s"))
            yield
        finally:
            kubectl("delete", "-f", file)


HTTP_ROUTES = Definition(
    "httproutes.gateway.networking.k8s.io", MODULES["traefik"], "sigs.k8s.io/gateway-api", "config/crd/standard"
)
SCALED_OBJECTS = Definition("scaledobjects.keda.sh", MODULES["keda"], MODULES["keda"].source, "config/crd/bases")
