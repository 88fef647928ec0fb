"""The API server takes every sample."""

from hack.docs.samples import FOLDER
from tests.apiserver.kubectl import Kubectl


def test_the_api_server_takes_every_sample(kubectl_shared: Kubectl) -> None:
    names = sorted(path.stem for path in FOLDER.glob("*.yaml"))
    said = kubectl_shared("create", "--dry-run=server", "--filename", str(FOLDER))
    assert said.splitlines() == [
        f"tritondeployment.triton-operator.dev/{name} created (server dry run)" for name in names
    ]
