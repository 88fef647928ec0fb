"""The node: containerd, kubelet, kube-proxy and CoreDNS, each with its generated configuration."""

import json
from pathlib import Path
from typing import Any

from hack.devcluster.addresses import (
    BUSYBOX_IMAGE,
    CLUSTER_DOMAIN,
    GPU_COUNT,
    GPU_PRODUCT,
    GPU_RESOURCE,
    NODE_ADDRESS,
    POD_RANGE,
)
from hack.devcluster.network import CNI_PROGRAMS
from hack.devcluster.nodes import Node, network_wrapper
from hack.devcluster.paths import ClusterPaths
from hack.devcluster.process import Daemon

UNUSED_PLUGINS = (
    "io.containerd.internal.v1.opt",  # would create /opt/containerd
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.tracing.processor.v1.otlp",
)
CRI_PLUGIN = "io.containerd.grpc.v1.cri"


def containerd(node: Node, *, pods: bool = True) -> Daemon:
    """A containerd of our own, beside any the system runs. It attaches pods to the network that it runs in.

    Without `pods` it serves only its stores: for removing what killed containers left in them.
    """
    paths = node.paths
    disabled = [*UNUSED_PLUGINS, *([] if pods else [CRI_PLUGIN])]
    runc_root = paths.containerd_state / "runc"
    lines = [
        "version = 2",
        f"root = {json.dumps(str(paths.containerd))}",
        f"state = {json.dumps(str(paths.containerd_state))}",
        f"disabled_plugins = {json.dumps(disabled)}",
        "[grpc]",
        f"  address = {json.dumps(str(paths.containerd_socket))}",
        f"[plugins.{json.dumps(CRI_PLUGIN)}]",
        f"  sandbox_image = {json.dumps(BUSYBOX_IMAGE)}",
        # Without CAP_SYS_RESOURCE the kernel refuses the sandboxes' lower score and every pod fails.
        "  restrict_oom_score_adj = true",
        "  netns_mounts_under_state_dir = true",
        '  stream_server_address = "127.0.0.1"',
        f"  [plugins.{json.dumps(CRI_PLUGIN)}.cni]",
        f"    bin_dir = {json.dumps(str(CNI_PROGRAMS))}",
        f"    conf_dir = {json.dumps(str(paths.configuration / 'cni'))}",
        f"  [plugins.{json.dumps(CRI_PLUGIN)}.containerd]",
        '    default_runtime_name = "runc"',
        f"    [plugins.{json.dumps(CRI_PLUGIN)}.containerd.runtimes.runc]",
        '      runtime_type = "io.containerd.runc.v2"',
        f"      [plugins.{json.dumps(CRI_PLUGIN)}.containerd.runtimes.runc.options]",
        f"        Root = {json.dumps(str(runc_root))}",
    ]
    settings = _write(paths, "containerd.toml", "\n".join([*lines, ""]))
    return _daemon(node, "containerd", ["containerd", "--config", str(settings)])


def kubelet(program: Path, node: Node) -> Daemon:
    """The kubelet, with all of its folders below ours."""
    paths, certificates = node.paths, node.cluster.certificates
    identity = node.numbered("kubelet")
    configuration = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "healthzBindAddress": node.address,
        "readOnlyPort": 0,
        "tlsCertFile": str(certificates / f"{identity}.crt"),
        "tlsPrivateKeyFile": str(certificates / f"{identity}.key"),
        "authentication": {
            "anonymous": {"enabled": False},
            "x509": {"clientCAFile": str(certificates / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{paths.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        "podLogsDir": str(paths.pod_logs),
        "volumePluginDir": str(paths.home / "volume-plugins"),
        "resolvConf": str(_write(paths, "resolv.conf", _nameserver_lines())),
        "clusterDNS": [NODE_ADDRESS],
        "clusterDomain": CLUSTER_DOMAIN,
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        # Nobody can pull the loaded images again: never remove one to free space.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }
    settings = _write(paths, "kubelet.json", json.dumps(configuration, indent=2))
    argv = [
        str(program),
        f"--config={settings}",
        f"--kubeconfig={node.cluster.configuration / f'{identity}.kubeconfig'}",
        f"--root-dir={paths.kubelet}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        f"--node-labels={GPU_RESOURCE}.product={GPU_PRODUCT}",
    ]
    return _daemon(node, "kubelet", argv)


def kube_proxy(program: Path, node: Node) -> Daemon:
    """Service addresses through nftables; the kernel's connection tracking limits stay as they are."""
    configuration = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(node.cluster.configuration / "kube-proxy.kubeconfig")},
        "bindAddress": node.address,
        "healthzBindAddress": f"{node.address}:10256",
        "metricsBindAddress": f"{node.address}:10249",
        "hostnameOverride": node.name,
        "mode": "nftables",
        "clusterCIDR": POD_RANGE,
        "oomScoreAdj": 0,
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    settings = _write(node.paths, "kube-proxy.json", json.dumps(configuration, indent=2))
    return _daemon(node, "kube-proxy", [str(program), f"--config={settings}"])


def coredns(program: Path, paths: ClusterPaths) -> Daemon:
    """Names of services, and of everything else through the host's own name servers."""
    servers = " ".join(nameservers(_host_resolv_conf()))
    forward = [f"  forward . {servers}"] if servers else []
    lines = [
        ".:53 {",
        f"  bind {NODE_ADDRESS}",
        "  errors",
        f"  kubernetes {CLUSTER_DOMAIN} in-addr.arpa ip6.arpa {{",
        f"    kubeconfig {paths.configuration / 'coredns.kubeconfig'}",
        "    fallthrough in-addr.arpa ip6.arpa",
        # Seconds. A Service created after somebody asked for it must be found at once.
        "    ttl 0",
        "  }",
        *forward,
        "}",
    ]
    settings = _write(paths, "Corefile", "\n".join([*lines, ""]))
    return Daemon("coredns", [str(program), f"-conf={settings}"])


def nameservers(resolv_conf: str) -> list[str]:
    """Addresses of the `nameserver` lines of a resolv.conf."""
    words = [line.split() for line in resolv_conf.splitlines()]
    return [line[1] for line in words if len(line) > 1 and line[0] == "nameserver"]


def capacity_patch() -> dict[str, Any]:
    """The node status that advertises the development GPUs; the kubelet keeps resources it does not know."""
    amount = {GPU_RESOURCE: str(GPU_COUNT)}
    return {"status": {"capacity": amount, "allocatable": amount}}


def _daemon(node: Node, name: str, argv: list[str]) -> Daemon:
    return Daemon(node.numbered(name), argv, wrapper=network_wrapper(node.namespace))


def _host_resolv_conf() -> str:
    path = Path("/etc/resolv.conf")
    return path.read_text() if path.exists() else ""


def _nameserver_lines() -> str:
    """The host's name servers without its search domains, which would multiply every lookup of a pod."""
    return "".join(f"nameserver {address}\n" for address in nameservers(_host_resolv_conf()))


def _write(paths: ClusterPaths, name: str, content: str) -> Path:
    path = paths.configuration / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path
