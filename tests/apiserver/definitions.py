"""The Gateway API's own CustomResourceDefinitions, in the version that Traefik is built with."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.devcluster.binaries import BUILD_ENVIRONMENT, MODULES
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import eventually

KIND = "httproutes.gateway.networking.k8s.io"
MODULE = MODULES["traefik"]


@contextmanager
def http_routes(kubectl: Kubectl) -> Iterator[None]:
    """Have the API server know HTTPRoutes for the block."""
    file = str(definitions() / "gateway.networking.k8s.io_httproutes.yaml")
    kubectl("apply", "--server-side", "-f", file)
    try:
        eventually(lambda: kubectl("wait", "--for=condition=Established", f"crd/{KIND}", "--timeout=60s"))
        yield
    finally:
        kubectl("delete", "-f", file)


def definitions() -> Path:
    """The folder of the CustomResourceDefinitions, from the Go module of the Gateway API."""
    text = (MODULE.folder / "go.mod").read_text()
    version = next(line.split()[1] for line in text.splitlines() if line.split()[:1] == ["sigs.k8s.io/gateway-api"])
    argv = ["go", "mod", "download", "-json", f"sigs.k8s.io/gateway-api@{version}"]
    environment = os.environ | BUILD_ENVIRONMENT
    done = subprocess.run(argv, cwd=MODULE.folder, env=environment, capture_output=True, check=True)
    return Path(json.loads(done.stdout)["Dir"]) / "config/crd/standard"
