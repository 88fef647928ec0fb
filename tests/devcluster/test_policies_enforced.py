"""NetworkPolicies on the real cluster: who reaches whom. Every target is a pod, or an address of the node."""

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from hack.devcluster.addresses import API_SERVICE_ADDRESS, BUSYBOX_IMAGE, NODE_ADDRESS, POD_RANGE, POLICY_TABLE
from hack.devcluster.cluster import DevCluster
from hack.devcluster.commands import run
from hack.devcluster.network import CNI_RESULTS
from hack.devcluster.paths import ClusterPaths
from tests.devcluster.kubectl import Kubectl
from triton_operator.resources.network_policy import DNS

pytestmark = pytest.mark.cluster
SHOP, GUESTS = "policy-shop", "policy-guests"
METADATA = "169.254.169.254"
"""Clouds answer credentials there; here one of our pods does."""
SERVED = (5353, 8080, 8081, 8090, 8091, 8092)
TRY = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
QUERY = bytes.fromhex("000101000001000000000000") + b"".join(
    bytes([len(label)]) + label for label in b"kubernetes.default.svc.cluster.local.".split(b".")) + bytes([0, 1, 0, 1])
def reached(target):
    protocol, address, port = target
    try:
        if protocol == "tcp":
            socket.create_connection((address, port), timeout=2).close()
        else:
            with socket.socket(type=socket.SOCK_DGRAM) as asking:
                asking.settimeout(2)
                asking.sendto(QUERY, (address, port))
                asking.recv(512)
    except OSError:
        return False
    return True
targets = json.load(sys.stdin)
with ThreadPoolExecutor(32) as pool:
    json.dump(list(pool.map(reached, targets)), sys.stdout)
"""
"""Runs in a pod's network namespace: which of the targets it connects to, or has a DNS answer from."""
Target = tuple[str, str, int]


class Case(NamedTuple):
    """One connection; the target is a pod, a Service, or an address."""

    why: str
    source: str
    target: str
    port: int
    passes: bool
    protocol: str = "tcp"


CASES = [
    Case("no policy, no limit", "client", "open", 8080, True),
    Case("a pod's labels", "client", "guarded", 8080, True),
    Case("other labels", "stranger", "guarded", 8080, False),
    Case("a podSelector alone means pods of its own namespace", "guest-client", "guarded", 8080, False),
    Case("both selectors, and a port's name", "guest-client", "guarded", 8081, True),
    Case("both selectors, but not its labels", "guest-stranger", "guarded", 8081, False),
    Case("both selectors, but not its namespace", "client", "guarded", 8081, False),
    Case("a namespaceSelector alone means all of its pods", "guest-stranger", "guarded", 8092, True),
    Case("another namespace", "client", "guarded", 8092, False),
    Case("the first port of a range", "stranger", "guarded", 8090, True),
    Case("the last port of a range", "stranger", "guarded", 8091, True),
    Case("a port after a range", "stranger", "guarded", 8092, False),
    Case("the exception of an ipBlock", "guest-client", "guarded", 8090, False),
    Case("a Service is judged by the pod that it leads to", "client", "guarded-service", 80, True),
    Case("a Service is no way around", "stranger", "guarded-service", 80, False),
    Case("policies on ingress leave egress alone, and replies pass", "guarded", "stranger", 8080, True),
    Case("egress to a port's name", "jailed", "open", 8080, True),
    Case("the same name has another number elsewhere", "jailed", "twin", 8081, True),
    Case("the number that the name has elsewhere", "jailed", "twin", 8080, False),
    Case("a port that no rule names", "jailed", "open", 8081, False),
    Case("a pod that no rule names", "jailed", "stranger", 8080, False),
    Case("egress through a Service", "jailed", "open-service", 80, True),
    Case("an ipBlock, of another policy", "jailed", "open", 8092, True),
    Case("its exception", "jailed", "twin", 8092, False),
    Case("policies on egress leave ingress alone, and replies pass", "client", "jailed", 8080, True),
    Case("DNS over UDP", "jailed", NODE_ADDRESS, 53, True, "udp"),
    Case("DNS over TCP", "jailed", NODE_ADDRESS, 53, True),
    Case("names from pods that listen on another port, as OpenShift's do", "measuring", "names-service", 53, True),
    Case("no name, on the same Service", "measuring", "open-service", 80, False),
    Case("the API server's Service, without a policy", "client", API_SERVICE_ADDRESS, 443, True),
    Case("the API server's Service", "jailed", API_SERVICE_ADDRESS, 443, False),
    Case("the API server on the node", "jailed", NODE_ADDRESS, 6443, False),
    Case("the cloud's metadata, without a policy", "client", METADATA, 8080, True),
    Case("the cloud's metadata", "jailed", METADATA, 8080, False),
    Case("no rule, no ingress", "client", "closed", 8080, False),
    Case("no rule, no egress", "closed", "open", 8080, False),
    Case("no rule, no DNS", "closed", NODE_ADDRESS, 53, False, "udp"),
    Case("a pod reaches itself", "closed", "closed", 8080, True),
    Case("a pod's loopback is its own", "closed", "127.0.0.1", 8080, True),
    Case("the node reaches its pods", "node", "closed", 8080, True),
]
PODS = {
    "open": (SHOP, {"server": "yes"}, 8080),
    "twin": (SHOP, {"server": "yes"}, 8081),
    "guarded": (SHOP, {"role": "guarded"}, 8081),
    "client": (SHOP, {"role": "client"}, None),
    "stranger": (SHOP, {"role": "stranger"}, None),
    "jailed": (SHOP, {"role": "jailed"}, None),
    "measuring": (SHOP, {"role": "measuring"}, None),
    "closed": (SHOP, {"role": "closed"}, None),
    "guest-client": (GUESTS, {"role": "client"}, None),
    "guest-stranger": (GUESTS, {"role": "stranger"}, None),
}


def pod(name: str, namespace: str, labels: dict[str, str], web: int | None, command: str) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": BUSYBOX_IMAGE, "command": ["sh", "-c", command]}
    if web:
        container["ports"] = [{"name": "web", "containerPort": web}]
    if name in PODS:
        container["readinessProbe"] = {"tcpSocket": {"port": SERVED[-1]}, "periodSeconds": 1}
    metadata = {"name": name, "namespace": namespace, "labels": {"app": name, **labels}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, "restartPolicy": "Never"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def service(app: str, name: str = "", port: int = 80, target: int = 8080) -> dict[str, Any]:
    spec = {"selector": {"app": app}, "ports": [{"port": port, "targetPort": target}]}
    metadata = {"name": f"{name or app}-service", "namespace": SHOP}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def policy(name: str, role: str, **spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": SHOP},
        "spec": {"podSelector": {"matchLabels": {"role": role}}, **spec},
    }


def policies() -> list[dict[str, Any]]:
    guests = {"namespaceSelector": {"matchLabels": {"team": "guests"}}}
    clients = {"podSelector": {"matchExpressions": [{"key": "role", "operator": "In", "values": ["client"]}]}}
    dns = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]
    servers = {"podSelector": {"matchExpressions": [{"key": "server", "operator": "Exists"}]}}
    return [
        policy("clients", "guarded", ingress=[{"from": [clients], "ports": [{"port": 8080}]}]),
        policy(
            "guests",
            "guarded",
            ingress=[
                {"from": [{**guests, **clients}], "ports": [{"port": "web"}]},
                {"from": [guests], "ports": [{"port": 8092}]},
            ],
        ),
        policy(
            "servers",
            "jailed",
            policyTypes=["Egress"],
            egress=[{"to": [servers], "ports": [{"port": "web"}]}, {"ports": dns}],
        ),
        # As the measure Job's policy has it.
        policy("measuring", "measuring", policyTypes=["Egress"], egress=[{"ports": DNS}]),
        policy("closed", "closed", policyTypes=["Ingress", "Egress"]),
    ]


def block_policies(address: dict[str, str]) -> list[dict[str, Any]]:
    """Those that name addresses, which pods have only when they run."""

    def without(name: str) -> dict[str, Any]:
        return {"ipBlock": {"cidr": POD_RANGE, "except": [f"{address[name]}/32"]}}

    ports = [{"port": 8090, "endPort": 8091}]
    return [
        policy("block-in", "guarded", ingress=[{"from": [without("guest-client")], "ports": ports}]),
        policy(
            "block-out", "jailed", policyTypes=["Egress"], egress=[{"to": [without("twin")], "ports": [{"port": 8092}]}]
        ),
    ]


def eventually(condition: Any, what: str, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.1)


class Shop:
    """The pods, what has which address, and connections from their network namespaces."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.kubectl = kubectl
        items = self._items("pods", SHOP) + self._items("pods", GUESTS)
        services = {each["metadata"]["name"]: each["spec"]["clusterIP"] for each in self._items("services", SHOP)}
        self.address = {each["metadata"]["name"]: each["status"]["podIP"] for each in items} | services
        results = [json.loads(path.read_text()) for path in CNI_RESULTS.iterdir()]
        self.sandbox = {
            dict(result["cniArgs"])["K8S_POD_NAME"]: result["result"]["interfaces"][-1]["sandbox"]
            for result in results
            if result["ifName"] == "eth0"
        }

    def _items(self, kind: str, namespace: str) -> list[Any]:
        found: list[Any] = json.loads(self.kubectl("get", kind, f"--namespace={namespace}", "--output=json"))["items"]
        return found

    def inside(self, name: str) -> list[str]:
        return [] if name == "node" else ["nsenter", f"--net={self.sandbox[name]}"]

    def reach(self, source: str, targets: list[Target]) -> list[bool]:
        """Whether each target answers, from one process in the source's network namespace."""
        asked = [(protocol, self.address.get(target, target), port) for protocol, target, port in targets]
        reached: list[bool] = json.loads(
            run([*self.inside(source), sys.executable, "-c", TRY], stdin=json.dumps(asked))
        )
        return reached

    def reaches(self, source: str, target: str, port: int) -> bool:
        return self.reach(source, [("tcp", target, port)])[0]


def apply(kubectl: Kubectl, items: list[dict[str, Any]]) -> None:
    kubectl("apply", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


@pytest.fixture(scope="module")
def kubectl(paths: ClusterPaths, as_before: None) -> Kubectl:
    """kubectl of a cluster that is up."""
    DevCluster(paths).up()
    return Kubectl(paths.kubeconfig)


@pytest.fixture(scope="module")
def shop(kubectl: Kubectl) -> Iterator[Shop]:
    serve = " && ".join(f"httpd -p {port}" for port in SERVED)
    pods = [pod(name, *rest, f"{serve} && exec sleep 1000") for name, rest in PODS.items()]
    try:
        for namespace, team in ((SHOP, "shop"), (GUESTS, "guests")):
            kubectl("create", "namespace", namespace)
            kubectl("label", "namespace", namespace, f"team={team}")
            eventually(lambda at=namespace: account(kubectl, at), "the service account", 30)
        apply(kubectl, [*policies(), service("open"), service("guarded"), service("open", "names", 53, 5353), *pods])
        for namespace in (SHOP, GUESTS):
            kubectl("wait", "pods", "--all", f"--namespace={namespace}", "--for=condition=Ready", "--timeout=60s")
        shop = Shop(kubectl)
        blocks = block_policies(shop.address)
        apply(kubectl, blocks)
        eventually(lambda: f"ip daddr != {shop.address['twin']}" in table(), "the rules of the ipBlocks")
        serve_metadata(shop)
        yield shop
    finally:
        kubectl("delete", "namespace", SHOP, GUESTS, "--ignore-not-found", "--timeout=60s")


def account(kubectl: Kubectl, namespace: str) -> bool:
    return "default" in kubectl("get", "serviceaccounts", f"--namespace={namespace}")


def serve_metadata(shop: Shop) -> None:
    """Give the address to a pod; the route goes with the pod's link."""
    run([*shop.inside("open"), "ip", "address", "add", f"{METADATA}/32", "dev", "lo"])
    (link,) = json.loads(run(["ip", "-json", "route", "get", shop.address["open"]]))
    run(["ip", "route", "add", f"{METADATA}/32", "dev", link["dev"]])


def table() -> str:
    return run(["nft", "list", "table", "ip", POLICY_TABLE])


@pytest.fixture(scope="module")
def outcome(shop: Shop) -> dict[Case, bool]:
    """Every case, tried at once."""
    sources = sorted({case.source for case in CASES})

    def try_all(source: str) -> dict[Case, bool]:
        cases = [case for case in CASES if case.source == source]
        return dict(
            zip(cases, shop.reach(source, [(case.protocol, case.target, case.port) for case in cases]), strict=True)
        )

    with ThreadPoolExecutor(len(sources)) as pool:
        return {case: passed for found in pool.map(try_all, sources) for case, passed in found.items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.source} to {case.target}: {case.why}")
def test_connection(case: Case, outcome: dict[Case, bool]) -> None:
    assert outcome[case] is case.passes


def test_probes_reach_a_pod_that_nobody_may_reach(shop: Shop) -> None:
    """The pod is Ready, since the fixture waited for that; its policy was there before it."""
    conditions = json.loads(shop.kubectl("get", "pod", "closed", f"--namespace={SHOP}", "--output=json"))["status"]
    assert {"type": "Ready", "status": "True"}.items() <= next(
        each for each in conditions["conditions"] if each["type"] == "Ready"
    ).items()


def test_a_new_pod_is_judged_from_its_first_packet_and_waits_for_nothing(shop: Shop) -> None:
    """Its first act is a connection that its policy forbids; later tries would hide a late ruleset."""
    at = shop.address["open"]
    forbidden = f"nc -w 1 {at} 8081 </dev/null >/dev/null 2>&1 && echo forbidden"
    allowed = f"nc -w 1 {at} 8080 </dev/null >/dev/null 2>&1 && echo allowed"
    command = f"{forbidden}; {allowed}; true"
    early = [pod(f"early-{number}", SHOP, {"role": "jailed"}, None, command) for number in range(3)]
    prompt = pod("prompt", SHOP, {}, None, allowed)
    apply(shop.kubectl, [*early, prompt])
    for name in ("early-0", "early-1", "early-2", "prompt"):
        shop.kubectl(
            "wait", f"pod/{name}", f"--namespace={SHOP}", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s"
        )
        assert shop.kubectl("logs", name, f"--namespace={SHOP}").split() == ["allowed"]


def test_changes_of_labels_and_policies_take_effect(shop: Shop) -> None:
    """Last: it changes what the others stand on."""
    assert not shop.reaches("stranger", "guarded", 8080)
    shop.kubectl("label", "pod", "stranger", "role=client", "--overwrite", f"--namespace={SHOP}")
    eventually(lambda: shop.reaches("stranger", "guarded", 8080), "a connection that a label allows")
    assert not shop.reaches("jailed", "open", 8081)
    shop.kubectl("delete", "networkpolicy", "--all", f"--namespace={SHOP}")
    eventually(lambda: shop.reaches("jailed", "open", 8081), "a connection that no policy forbids any more")
