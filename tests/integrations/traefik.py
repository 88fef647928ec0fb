"""The real Traefik as a Gateway: a process of this machine, which reaches the pods of the development cluster."""

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hack.devcluster.binaries import program
from hack.imagebuild.pod import free_ports
from tests.apiserver.definitions import HTTP_ROUTES
from tests.apiserver.operator_process import eventually
from tests.e2e.kubectl import Kubectl

JSON = dict[str, Any]
NAME = "public"
"""Of the Gateway and its class."""
CONTROLLER = "traefik.io/gateway-controller"


class Traefik:
    """Traefik with one Gateway in the namespace, between entry and exit of the block; the Gateway API's kinds too."""

    def __init__(self, kubectl: Kubectl, folder: Path) -> None:
        self._kubectl, self._folder = kubectl, folder
        self.port, *_ = free_ports()
        """Where the Gateway listens on this machine, for HTTP/1.1 and for HTTP/2 without TLS."""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        definitions = f"--filename={HTTP_ROUTES.folder()}"
        self._kubectl.run("apply", "--server-side", "--force-conflicts", definitions, timeout=120)
        names = [f"crd/{kind}.gateway.networking.k8s.io" for kind in ("gatewayclasses", "gateways", "httproutes")]
        eventually(lambda: self._kubectl.run("wait", "--for=condition=Established", *names))
        self._kubectl.apply(*objects(self._kubectl.namespace, self.port))
        try:
            self._start()
            eventually(self._is_programmed, within=120)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
        self._kubectl.run("delete", "--ignore-not-found", f"--filename={HTTP_ROUTES.folder()}", timeout=180)

    def log(self) -> str:
        """The end of its log."""
        return (self._folder / "log").read_text()[-4000:]

    def _start(self) -> None:
        argv = [
            str(program("traefik")),
            f"--entryPoints.web.address=127.0.0.1:{self.port}",
            "--providers.kubernetesGateway=true",
            "--global.checkNewVersion=false",
            "--global.sendAnonymousUsage=false",
            "--log.level=INFO",
        ]
        environment = os.environ | {"KUBECONFIG": str(self._kubectl.kubeconfig)}
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(argv, cwd=self._folder, env=environment, stdout=log, stderr=log)

    def _is_programmed(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"Traefik ended: {self.log()}")
        conditions = self._kubectl.get("gateway", NAME).get("status", {}).get("conditions", [])
        found = {each["type"]: each["status"] for each in conditions}
        return found.get("Programmed") == "True"


def objects(namespace: str, port: int) -> tuple[JSON, JSON]:
    """A class, and a Gateway with one listener, which takes routes of its own namespace."""
    version = "gateway.networking.k8s.io/v1"
    listener = {"name": "web", "protocol": "HTTP", "port": port}
    return (
        {
            "apiVersion": version,
            "kind": "GatewayClass",
            "metadata": {"name": NAME},
            "spec": {"controllerName": CONTROLLER},
        },
        {
            "apiVersion": version,
            "kind": "Gateway",
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": {"gatewayClassName": NAME, "listeners": [listener]},
        },
    )
