"""The argv of etcd, the API server, the controller manager and the scheduler, and the audit policy."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.devcluster.addresses import POD_RANGE
from hack.devcluster.process import Daemon

OPERATOR = "system:serviceaccount:triton-operator:triton-operator"
"""The user whose reads are audited too: a test compares all that it asks for with what it may."""


def audit_policy(*readers: str) -> dict[str, Any]:
    """Every write, once, with who wrote what, and the reads of the users that are named; no bodies."""
    rules: list[dict[str, Any]] = [{"level": "None", "verbs": ["get", "list", "watch"]}, {"level": "Metadata"}]
    if readers:
        rules.insert(0, {"level": "Metadata", "users": list(readers)})
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": rules,
    }


@dataclass(frozen=True)
class ApiServerPlace:
    """Where one API server and its etcd live."""

    home: Path
    """Holds certificates/, etcd/ and audit.log."""
    sockets: Path
    """Holds etcd's sockets, so etcd needs no port and no certificates: folder permissions guard it."""
    address: str
    port: int
    service_range: str

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"https://{self.address}:{self.port}"

    @property
    def certificates(self) -> Path:
        """The folder of certificates."""
        return self.home / "certificates"

    @property
    def audit_log(self) -> Path:
        """The file of audit events, one JSON object a line."""
        return self.home / "audit.log"


def etcd(program: Path, place: ApiServerPlace) -> Daemon:
    """Etcd on Unix sockets; it does not fsync because nothing in it outlives the cluster."""
    argv = [
        str(program),
        "--name=devcluster",
        f"--data-dir={place.home / 'etcd-data'}",
        f"--listen-client-urls=unix://{place.sockets / 'etcd'}",
        f"--listen-peer-urls=unix://{place.sockets / 'peer'}",
        # Advertised addresses must look like host:port; a single member neither listens on nor dials them.
        "--advertise-client-urls=http://localhost:2379",
        "--initial-advertise-peer-urls=http://localhost:2380",
        "--initial-cluster=devcluster=http://localhost:2380",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]
    return Daemon("etcd", argv)


def kube_apiserver(
    program: Path, place: ApiServerPlace, *, nodes: bool, readers: Sequence[str], toleration_seconds: int = 300
) -> Daemon:
    """The API server, with RBAC and an audit log of writes.

    `readers`: users whose reads are in that log too.
    `toleration_seconds`: how long pods stay on a node that does not answer; 300 is Kubernetes' default.
    `nodes`: whether a kubelet and the controllers belong to it. Without them nobody makes service accounts,
    so pods are admitted without one, as envtest does.
    """
    policy = place.home / "audit-policy.json"
    policy.write_text(json.dumps(audit_policy(*readers)))
    keys = place.certificates
    argv = [
        str(program),
        f"--bind-address={place.address}",
        f"--default-not-ready-toleration-seconds={toleration_seconds}",
        f"--default-unreachable-toleration-seconds={toleration_seconds}",
        f"--advertise-address={place.address}",
        f"--secure-port={place.port}",
        f"--etcd-servers=unix://{place.sockets / 'etcd'}",
        f"--service-cluster-ip-range={place.service_range}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged",
        f"--client-ca-file={keys / 'ca.crt'}",
        f"--tls-cert-file={keys / 'apiserver.crt'}",
        f"--tls-private-key-file={keys / 'apiserver.key'}",
        f"--service-account-key-file={keys / 'service-account.key'}",
        f"--service-account-signing-key-file={keys / 'service-account.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--audit-policy-file={policy}",
        f"--audit-log-path={place.audit_log}",
        # Megabytes before rotation: a reader of the log must find all of it in one file.
        "--audit-log-maxsize=10000",
        "--profiling=false",
    ]
    if nodes:
        argv += [
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-certificate-authority={keys / 'ca.crt'}",
            f"--kubelet-client-certificate={keys / 'admin.crt'}",
            f"--kubelet-client-key={keys / 'admin.key'}",
            # For APIServices: who the API server is to them, and how it tells them who asks.
            f"--requestheader-client-ca-file={keys / 'ca.crt'}",
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={keys / 'front-proxy.crt'}",
            f"--proxy-client-key-file={keys / 'front-proxy.key'}",
        ]
    else:
        argv.append("--disable-admission-plugins=ServiceAccount")
    return Daemon("kube-apiserver", argv)


def kube_controller_manager(program: Path, place: ApiServerPlace, kubeconfig: Path) -> Daemon:
    """The controllers, alone: no election of a leader, so no lease is written at rest."""
    argv = [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--bind-address={place.address}",
        "--leader-elect=false",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={place.certificates / 'service-account.key'}",
        f"--root-ca-file={place.certificates / 'ca.crt'}",
        f"--cluster-cidr={POD_RANGE}",
        f"--flex-volume-plugin-dir={place.home / 'volume-plugins'}",
        f"--service-cluster-ip-range={place.service_range}",
        "--profiling=false",
    ]
    return Daemon("kube-controller-manager", argv)


def kube_scheduler(program: Path, place: ApiServerPlace, kubeconfig: Path) -> Daemon:
    """The scheduler, alone."""
    argv = [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--bind-address={place.address}",
        "--leader-elect=false",
        "--profiling=false",
    ]
    return Daemon("kube-scheduler", argv)
