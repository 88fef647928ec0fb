"""Up and down: the whole cluster in the order it starts."""

import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hack.devcluster import addons, node, policy_engine
from hack.devcluster.addresses import (
    API_PORT,
    API_SERVICE_ADDRESS,
    CLUSTER_DOMAIN,
    GPU_COUNT,
    GPU_RESOURCE,
    NODE_ADDRESS,
    NODE_NAME,
    POLICY_TABLE,
    SERVICE_RANGE,
)
from hack.devcluster.binaries import build_all, program
from hack.devcluster.certificates import Identity, create_authority, create_certificate
from hack.devcluster.cgroups import create_cgroup
from hack.devcluster.commands import run, succeeds
from hack.devcluster.control_plane import (
    OPERATOR,
    ApiServerPlace,
    etcd,
    kube_apiserver,
    kube_controller_manager,
    kube_scheduler,
)
from hack.devcluster.images import ctr, link_image_store, load_image, write_busybox_archive
from hack.devcluster.kubeconfig import write_kubeconfig
from hack.devcluster.lock import exclusive
from hack.devcluster.network import create_network, leftover_tables
from hack.devcluster.nodes import MOST_NODES, Node, all_nodes, present_nodes
from hack.devcluster.packages import install_packages
from hack.devcluster.paths import ClusterError, ClusterPaths, cache_home
from hack.devcluster.process import Daemon, Recorded, recorded_processes, start
from hack.devcluster.readiness import answers_ready, wait_until
from hack.devcluster.teardown import remove_cluster

CLIENTS = (
    Identity("admin", "admin", "system:masters"),
    Identity("kube-controller-manager", "system:kube-controller-manager"),
    Identity("kube-scheduler", "system:kube-scheduler"),
    Identity("kube-proxy", "system:kube-proxy"),
    Identity("coredns", addons.DNS_USER),
    Identity("local-path-provisioner", addons.STORAGE_USER),
    Identity(policy_engine.NAME, addons.POLICY_USER),
)
FRONT_PROXY = Identity("front-proxy", "front-proxy")
"""Whom the API server is to an API that it passes requests on to, such as KEDA's metrics."""
API_SERVER = Identity(
    "apiserver",
    "kube-apiserver",
    "",
    (
        f"IP:{NODE_ADDRESS}",
        "IP:127.0.0.1",
        f"IP:{API_SERVICE_ADDRESS}",
        "DNS:kubernetes",
        "DNS:kubernetes.default",
        "DNS:kubernetes.default.svc",
        f"DNS:kubernetes.default.svc.{CLUSTER_DOMAIN}",
    ),
)
TOLERATION_SECONDS, DEFAULT_TOLERATION_SECONDS = 30, 300
"""How long pods stay on a node that does not answer: of several nodes, and of one, where they have no other place."""
RUNTIME_MODULES = ("kubernetes", "etcd", "coredns", "local-path-provisioner")


def _kubelet_identity(each: Node) -> Identity:
    alternative_names = (f"IP:{each.address}", f"DNS:{each.name}")
    return Identity(each.numbered("kubelet"), f"system:node:{each.name}", "system:nodes", alternative_names)


def daemons_of(each: Node) -> tuple[Daemon, ...]:
    """What runs on each node, besides its containerd."""
    return (
        node.kubelet(program("kubelet"), each),
        node.kube_proxy(program("kube-proxy"), each),
        policy_engine.policy_engine(each),
    )


def set_up_modules(*, foreign: bool) -> tuple[str, ...]:
    """The Go modules of a cluster with the operator in it; `foreign`: somebody else runs the cluster."""
    runtime = () if foreign else RUNTIME_MODULES
    return runtime if shutil.which("helm") else (*runtime, "helm")


def lock_path() -> Path:
    """The lock every change to the cluster holds."""
    return cache_home() / "cluster.lock"


class DevCluster:
    """The full cluster of this machine."""

    def __init__(self, paths: ClusterPaths) -> None:
        self.paths = paths
        self.place = ApiServerPlace(paths.home, paths.runtime, NODE_ADDRESS, API_PORT, SERVICE_RANGE)
        self.processes: list[Recorded] = []

    def up(self, nodes: int | None = None) -> None:
        """Start the cluster, or keep one that is healthy; returns when it takes work.

        `nodes`: how many it has; None: one, or as many as a healthy cluster has already.

        Raises:
            ClusterError: not root, or another number of nodes runs, or a part did not come up: which one, and the end
                of its log.

        """
        self.paths.check_lengths()
        require_root()
        if nodes is not None and not 1 <= nodes <= MOST_NODES:
            raise ClusterError(f"{nodes} nodes: give a number from 1 to {MOST_NODES}")
        with exclusive(lock_path(), "the cluster"):
            install_packages()
            if self.healthy():
                present = len(present_nodes(self.paths))
                if nodes not in (None, present):
                    raise ClusterError(f"a cluster of {present} nodes is up: remove it first by `make cluster-down`")
                print(f"the cluster is up already: {self.paths.kubeconfig}", flush=True)
                return
            build_all(RUNTIME_MODULES)
            began = time.monotonic()
            remove_cluster(self.paths)
            try:
                self._start(all_nodes(self.paths, nodes or 1))
            except BaseException:
                # Logs stay; half a cluster would only hide what went wrong.
                remove_cluster(self.paths)
                raise
            print(f"cluster ready in {time.monotonic() - began:.1f} s: {self.paths.kubeconfig}", flush=True)

    def prepare(self) -> None:
        """Install the Debian packages that `up` and the image builds need.

        Raises:
            ClusterError: not root, or apt failed.

        """
        require_root()
        with exclusive(lock_path(), "the cluster"):
            install_packages()

    def down(self) -> None:
        """Remove the cluster and what killed ones left; keeps programs, images and logs.

        Raises:
            ClusterError: not root, or something resists.

        """
        require_root()
        with exclusive(lock_path(), "the cluster"):
            remove_cluster(self.paths)

    def load_images(self, archives: Sequence[Path]) -> None:
        """Import docker-archives, one after the other, skipping those already there.

        Raises:
            ClusterError: an archive is unusable, or no cluster is up.

        """
        with exclusive(lock_path(), "the cluster"):
            for archive in archives:
                began = time.monotonic()
                loaded = [load_image(archive, each.paths) for each in present_nodes(self.paths)]
                state = "loaded in" if any(loaded) else "is there already, checked in"
                print(f"{archive.name} {state} {time.monotonic() - began:.1f} s", flush=True)

    def healthy(self) -> bool:
        """Whether every process of a complete start still runs and all nodes are Ready."""
        recorded = recorded_processes(self.paths.processes)
        if not self.paths.kubeconfig.exists() or not recorded:
            return False
        ready = all(self._node_ready(each.name) for each in present_nodes(self.paths))
        return ready and all(process.alive() for process in recorded)

    def _start(self, nodes: Sequence[Node]) -> None:
        paths = self.paths
        paths.processes.mkdir(parents=True, mode=0o700)
        paths.runtime.chmod(0o700)
        paths.audit_log.unlink(missing_ok=True)
        for folder in (paths.storage, paths.shared_storage):
            folder.mkdir(parents=True)
        for each in nodes:
            for folder in (each.paths.configuration, each.paths.kubelet, each.paths.pod_logs, each.paths.runtime):
                folder.mkdir(parents=True, exist_ok=True)
            create_network(each)
            create_cgroup(each.cgroup)
            if not each.is_machine:
                link_image_store(paths.containerd, each.paths.containerd)
        self._create_identities(nodes)
        for each in nodes:
            self._run(node.containerd(each))
        self._run(etcd(program("etcd"), self.place))
        patience = TOLERATION_SECONDS if len(nodes) > 1 else DEFAULT_TOLERATION_SECONDS
        api_server = program("kube-apiserver")
        self._run(kube_apiserver(api_server, self.place, nodes=True, readers=(OPERATOR,), toleration_seconds=patience))
        self._load_busybox(nodes)
        self._wait(lambda: answers_ready(self.place), "the API server's readiness", 60)
        self._kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(addons.manifests(paths)))
        self._start_clients(nodes)
        for each in nodes:
            self._wait(lambda name=each.name: self._node_ready(name), f"node {each.name} Ready", 60)  # type: ignore[misc]  # a default binds the loop variable
            self._advertise_gpus(each.name)
        self._wait(self._default_account, "the default service account", 30)
        self._wait(lambda: _listens(NODE_ADDRESS, 53), "CoreDNS", 30)
        self._wait(lambda: ("ip", POLICY_TABLE) in leftover_tables(), "the table of network policies", 30)
        # Last: its presence says that the start was complete.
        certificates = paths.certificates
        write_kubeconfig(paths.kubeconfig, server=self.place.url, certificates=certificates, identity="admin")

    def _create_identities(self, nodes: Sequence[Node]) -> None:
        create_authority(self.paths.certificates)
        clients = (*CLIENTS, *map(_kubelet_identity, nodes))
        for identity in (API_SERVER, FRONT_PROXY, *clients):
            create_certificate(self.paths.certificates, identity)
        for identity in clients:
            self._kubeconfig_for(identity.name)

    def _kubeconfig_for(self, identity: str) -> Path:
        path = self.paths.configuration / f"{identity}.kubeconfig"
        certificates = self.paths.certificates
        write_kubeconfig(path, server=self.place.url, certificates=certificates, identity=identity)
        return path

    def _start_clients(self, nodes: Sequence[Node]) -> None:
        paths, configuration = self.paths, self.paths.configuration
        manager = configuration / "kube-controller-manager.kubeconfig"
        daemons = (
            kube_controller_manager(program("kube-controller-manager"), self.place, manager),
            kube_scheduler(program("kube-scheduler"), self.place, configuration / "kube-scheduler.kubeconfig"),
            node.coredns(program("coredns"), paths),
            addons.local_path_provisioner(program("local-path-provisioner"), paths),
            *(daemon for each in nodes for daemon in daemons_of(each)),
        )
        for daemon in daemons:
            self._run(daemon)

    def _load_busybox(self, nodes: Sequence[Node]) -> None:
        archive = self.paths.configuration / "busybox.tar"
        write_busybox_archive(archive)
        for each in nodes:
            client = [*ctr(each.paths), "version"]
            self._wait(lambda client=client: succeeds(client), f"containerd of {each.name}", 30)  # type: ignore[misc]  # a default binds the loop variable
            load_image(archive, each.paths)

    def _advertise_gpus(self, name: str) -> None:
        patch = json.dumps(node.capacity_patch())
        self._kubectl("patch", "node", name, "--subresource=status", "--type=merge", f"--patch={patch}")
        path = "{.status.allocatable." + GPU_RESOURCE.replace(".", r"\.") + "}"

        def advertised() -> bool:
            return self._kubectl("get", "node", name, f"--output=jsonpath={path}") == str(GPU_COUNT)

        self._wait(advertised, f"{GPU_COUNT} {GPU_RESOURCE} on node {name}", 30)

    def _node_ready(self, name: str = NODE_NAME) -> bool:
        path = '{.status.conditions[?(@.type=="Ready")].status}'
        try:
            return self._kubectl("get", "node", name, f"--output=jsonpath={path}") == "True"
        except ClusterError:
            return False

    def _default_account(self) -> bool:
        return succeeds(self._kubectl_argv("get", "serviceaccount", "default", "--namespace=default"))

    def _run(self, daemon: Daemon) -> None:
        self.processes.append(start(daemon, records=self.paths.processes, logs=self.paths.logs))

    def _wait(self, condition: Callable[[], bool], what: str, seconds: float) -> None:
        wait_until(condition, what, seconds=seconds, processes=self.processes, logs=self.paths.logs)

    def _kubectl_argv(self, *words: str) -> list[str]:
        kubeconfig = self.paths.configuration / "admin.kubeconfig"
        return [str(program("kubectl")), f"--kubeconfig={kubeconfig}", "--request-timeout=10s", *words]

    def _kubectl(self, *words: str, stdin: str | None = None) -> str:
        return run(self._kubectl_argv(*words), stdin=stdin)


def require_root() -> None:
    """Refuse a user who cannot run a cluster.

    Raises:
        ClusterError: not root.

    """
    if os.geteuid() != 0:
        raise ClusterError("a cluster needs root: run as root, or set KUBECONFIG to use a cluster you have")


def _listens(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=1):
            return True
    except OSError:
        return False
