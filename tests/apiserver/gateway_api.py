"""The Gateway API's own CustomResourceDefinitions, in the version that Traefik is built with."""

import json
import os
import subprocess
from pathlib import Path

from hack.devcluster.binaries import BUILD_ENVIRONMENT, MODULES

MODULE = MODULES["traefik"]


def definitions() -> Path:
    """The folder of the CustomResourceDefinitions, from the Go module of the Gateway API."""
    text = (MODULE.folder / "go.mod").read_text()
    version = next(line.split()[1] for line in text.splitlines() if line.split()[:1] == ["sigs.k8s.io/gateway-api"])
    argv = ["go", "mod", "download", "-json", f"sigs.k8s.io/gateway-api@{version}"]
    environment = os.environ | BUILD_ENVIRONMENT
    done = subprocess.run(argv, cwd=MODULE.folder, env=environment, capture_output=True, check=True)
    return Path(json.loads(done.stdout)["Dir"]) / "config/crd/standard"
