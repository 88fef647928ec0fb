"""The real metrics-server, as a process of this machine, in the development cluster."""

import json
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from hack.deploy.command import TargetCluster
from hack.devcluster.addresses import NODE_ADDRESS
from hack.devcluster.binaries import program
from hack.imagebuild.pod import free_ports
from tests.apiserver.operator_process import eventually
from tests.integrations.aggregated import aggregated, certified, is_available, start

NAMESPACE, SERVICE = "kube-system", "metrics-server"
API_SERVICE = "v1beta1.metrics.k8s.io"


class MetricsServer:
    """metrics-server, between entry and exit of the block: what a HorizontalPodAutoscaler by CPU asks."""

    def __init__(self, cluster: TargetCluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self._port = free_ports()[0]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        certificates = certified(self._folder, NAMESPACE, SERVICE)
        bodies = aggregated(NAMESPACE, SERVICE, API_SERVICE, self._port, (certificates / "ca.crt").read_bytes())
        body = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies})
        self._cluster.run("kubectl", "apply", "--server-side", "--filename", "-", stdin=body)
        try:
            start(self._stack, self._folder, SERVICE, self._arguments(certificates), {})
            eventually(lambda: is_available(self._cluster, API_SERVICE), within=180)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self._cluster.run("kubectl", "delete", "apiservice", API_SERVICE, "--ignore-not-found")
        self._cluster.run("kubectl", "delete", "service", SERVICE, "--namespace", NAMESPACE, "--ignore-not-found")

    def _arguments(self, certificates: Path) -> list[str]:
        kubeconfig = self._cluster.kubeconfig
        return [
            str(program("metrics-server")),
            f"--secure-port={self._port}",
            f"--bind-address={NODE_ADDRESS}",
            f"--tls-cert-file={certificates / 'tls.crt'}",
            f"--tls-private-key-file={certificates / 'tls.key'}",
            "--kubelet-insecure-tls",
            "--kubelet-preferred-address-types=InternalIP",
            "--metric-resolution=15s",
            f"--kubeconfig={kubeconfig}",
            *(f"--{use}-kubeconfig={kubeconfig}" for use in ("authentication", "authorization")),
        ]
