"""A namespace with models on a claim, and what its TritonDeployments said since when."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hack.deploy.install import NAMESPACE, RELEASE
from tests.apiserver.operator_process import eventually
from tests.e2e.applied import Applied
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.manifests import overlaid, read
from tests.e2e.watching import Sighting, Watch
from tests.e2e.workbench import Workbench
from triton_operator import names

OWN_CLAIM = {
    "repository": {
        "claimName": None,
        "volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "256Mi"}}}},
    }
}
KINDS = "jobs,pods,deployments,replicasets,services,configmaps,networkpolicies,persistentvolumeclaims"
"""Of a TritonDeployment's children."""


@dataclass(frozen=True)
class Place:
    """The namespace, the pod that fills and looks at claims, and a watch over all TritonDeployments."""

    kubectl: Kubectl
    watch: Watch
    workbench: Workbench
    image: str
    """Of the converter: it holds perf_analyzer and tritonclient too."""
    kubelet: Path
    """The kubelet's root directory on the node."""

    def new(self, name: str, **changes: Any) -> Applied:
        """An object of this namespace on a claim of its own, not applied yet; ``changes`` are those of every spec."""
        base = read("classifier")
        return Applied(self.kubectl, self.watch, base | {"spec": overlaid(base["spec"], OWN_CLAIM | changes)}, name)

    def operator(self) -> Kubectl:
        """kubectl in the operator's namespace."""
        return self.kubectl.within(NAMESPACE)


def delayed(microseconds: int) -> Mapping[str, Any]:
    """Another revision of the same converted file: another queue delay."""
    return {"model": {"config": {"dynamicBatching": {"maxQueueDelay": f"{microseconds}us"}}}}


def told(applied: Applied, kind: str, reason: str, since: float, within: float) -> Sighting:
    """The first version that gave the reason for a condition that is not True; raises AssertionError after a while."""

    def first() -> Sighting | None:
        history = applied.watch.history(applied.kubectl.namespace, applied.name)
        return next((each for each in history if each.time >= since and each.state.says(kind, reason)), None)

    try:
        found = eventually(first, within)
    except AssertionError as error:
        raise AssertionError(f"{kind} never said {reason}\n{applied.report()}") from error
    assert found is not None
    return found


def server_pods(applied: Applied) -> list[Object]:
    """Pods of its servers that are not about to go."""
    found = [pod for pod in applied.children("pods") if names.SERVER_LABEL in pod["metadata"]["labels"]]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


@contextmanager
def operator_away(place: Place) -> Iterator[None]:
    """Within the block no operator runs in the cluster."""
    kubectl, name = place.operator(), f"deployment/{RELEASE}"
    replicas = kubectl.get(name)["spec"]["replicas"]
    kubectl.run("scale", name, "--replicas=0")
    eventually(lambda: not kubectl.items("pods", f"--selector=app.kubernetes.io/name={RELEASE}"), 60)
    try:
        yield
    finally:
        kubectl.run("scale", name, f"--replicas={replicas}")
        kubectl.run("rollout", "status", name, "--timeout=120s", timeout=130)


def left(kubectl: Kubectl, *deployments: str) -> list[str]:
    """Children of those TritonDeployments that still exist, as kind/name."""
    selector = f"triton-operator.dev/deployment in ({','.join(deployments)})"
    return kubectl.run("get", KINDS, f"--selector={selector}", "--output=name").split()


def evict(kubectl: Kubectl, pod: str) -> None:
    """Ask the API server to evict the pod, as `kubectl drain` does."""
    body = f'{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{pod}"}}}}'
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{pod}/eviction"
    kubectl.run("create", "--raw", path, "--filename=-", stdin=body)


_COLUMNS = "NAME:.metadata.name,UID:.metadata.uid"


class JobsSeen:
    """Every Job that there was in a namespace since the block was entered, by its name."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._process = kubectl.stream("get", "jobs", "--watch", "--no-headers", f"--output=custom-columns={_COLUMNS}")
        self.uids: dict[str, set[str]] = defaultdict(set)
        threading.Thread(target=self._follow, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def _follow(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            name, uid = line.split()
            self.uids[name].add(uid)


def all_at_once(*steps: Callable[[], Any]) -> list[Any]:
    """What the steps return, each in a thread of its own."""
    with ThreadPoolExecutor(len(steps)) as pool:
        return [future.result() for future in [pool.submit(step) for step in steps]]
