"""The real KEDA: its operator and its metrics adapter as processes of this machine, in the development cluster."""

import json
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hack.deploy.command import TargetCluster
from hack.devcluster.addresses import NODE_ADDRESS
from hack.devcluster.binaries import MODULES, program
from hack.devcluster.commands import run
from hack.imagebuild.pod import free_ports
from tests.apiserver.operator_process import eventually
from tests.integrations.aggregated import aggregated, certified, holds, is_available, start

NAMESPACE = "keda"
SERVICE = "keda-metrics-apiserver"
API_SERVICE = "v1beta1.external.metrics.k8s.io"
SCALER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"

Body = dict[str, Any]


class Keda:
    """KEDA, between entry and exit of the block. ScaledObjects that are left lose their finalizers at the exit."""

    def __init__(self, cluster: TargetCluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._port, self._grpc, self._operator_metrics = free_ports()
        self._adapter_metrics, self._health, _ = free_ports()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        certificates = certified(self._folder, NAMESPACE, SERVICE)
        self._apply_crds()
        self._apply(*objects(self._port, (certificates / "ca.crt").read_bytes()))
        try:
            self._start("operator", self._operator_arguments(certificates))
            self._start("adapter", self._adapter_arguments(certificates))
            eventually(lambda: is_available(self._cluster, API_SERVICE), within=180)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # While KEDA runs: it removes its finalizers and its HorizontalPodAutoscalers.
        self._kubectl("delete", "scaledobjects", "--all", "--all-namespaces", "--timeout=60s", "--ignore-not-found")
        self._stack.close()
        self._kubectl("delete", "apiservice", API_SERVICE, "--ignore-not-found")
        self._kubectl("delete", "--filename", str(self._crds()), "--ignore-not-found", "--timeout=60s")
        self._kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=120s")

    def _operator_arguments(self, certificates: Path) -> list[str]:
        return [
            str(program("operator")),
            f"--metrics-bind-address=127.0.0.1:{self._operator_metrics}",
            f"--health-probe-bind-address=127.0.0.1:{self._health}",
            f"--metrics-service-bind-address=127.0.0.1:{self._grpc}",
            f"--cert-dir={certificates}",
        ]

    def _adapter_arguments(self, certificates: Path) -> list[str]:
        kubeconfig = self._cluster.kubeconfig
        return [
            str(program("adapter")),
            f"--port={self._adapter_metrics}",
            f"--bind-address={NODE_ADDRESS}",
            f"--secure-port={self._port}",
            f"--metrics-service-address=localhost:{self._grpc}",
            f"--cert-dir={certificates}",
            f"--tls-cert-file={certificates / 'tls.crt'}",
            f"--tls-private-key-file={certificates / 'tls.key'}",
            f"--client-ca-file={certificates / 'ca.crt'}",
            *(f"--{use}-kubeconfig={kubeconfig}" for use in ("lister", "authentication", "authorization")),
        ]

    def _start(self, name: str, argv: list[str]) -> None:
        own = {
            "KUBECONFIG": str(self._cluster.kubeconfig),
            "WATCH_NAMESPACE": "",
            "POD_NAMESPACE": NAMESPACE,
            "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE,
        }
        start(self._stack, self._folder, name, argv, own)

    def _crds(self) -> Path:
        """The folder of CustomResourceDefinitions, from the module that the programs are built from."""
        module = MODULES["keda"]
        folder = run(["go", "list", "-m", "-f", "{{.Dir}}", module.source], folder=module.folder).strip()
        return Path(folder) / "config/crd/bases"

    def _apply_crds(self) -> None:
        self._kubectl("apply", "--server-side", "--filename", str(self._crds()))
        names = [f"{each}.keda.sh" for each in ("scaledobjects", "triggerauthentications")]
        eventually(lambda: all(holds(self._cluster, "crd", each, "Established") for each in names), within=60)

    def _apply(self, *bodies: Body) -> None:
        body = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies})
        self._kubectl("apply", "--server-side", "--filename", "-", stdin=body)

    def _kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self._cluster.run("kubectl", *arguments, stdin=stdin)


def objects(port: int, authority: bytes) -> tuple[Body, ...]:
    """What leads the API server to the adapter, and lets the HorizontalPodAutoscalers' controller ask it."""
    reader = {"name": "keda-external-metrics-reader"}
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        *aggregated(NAMESPACE, SERVICE, API_SERVICE, port, authority),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": reader,
            "rules": [{"apiGroups": ["external.metrics.k8s.io"], "resources": ["*"], "verbs": ["*"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": reader,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **reader},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": SCALER}],
        },
    )
