"""`python3 -m tests.following`: fifteen nights of two models that come from MLflow, on the cluster, and a table."""

import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hack.deploy.environment import set_up
from hack.deploy.install import install
from hack.devcluster.binaries import program
from hack.devcluster.kubeconfig import foreign_kubeconfig
from hack.devcluster.paths import cluster_paths
from tests.converters.https_server import make_authority
from tests.converters.mlflow_server import PASSWORD, USER, serving
from tests.e2e.kubectl import Kubectl
from tests.e2e.state import State
from tests.following.models import NETWORK, TREES, Trained, train
from tests.following.nights import NIGHTS, Night
from tests.following.probe import ASKED, Prober
from tests.following.registry import ALIAS, Registry

NAMESPACE = "following"
PATIENCE_SECONDS = 1800.0
"""For a night; a busy machine takes minutes."""
PROXY_SECONDS = 15.0
"""In which the node's proxy has to lead to the server of a Service's new selector."""
REQUEST = "triton-operator.dev/requestedAt"


@dataclass
class Model:
    """One object, and what may serve of it."""

    kubectl: Kubectl
    registry: Registry
    name: str
    file: str
    prober: Prober = field(init=False)
    serving: str = ""
    """Number of the version that has to serve."""
    former: str = ""
    """Number of the version that served before it."""
    requests: int = 0
    seconds: list[float] = field(default_factory=list)
    """From the look that found a version to its answer, good or bad."""

    @property
    def state(self) -> State:
        """As the API server has it."""
        return State(self.kubectl.get("tritondeployment", self.name))

    def look(self) -> None:
        """Ask for a look, and wait for its answer."""
        self.requests += 1
        asked = f"{time.time():.0f}-{self.requests}"
        self.kubectl.run("annotate", "tritondeployment", self.name, "--overwrite", f"{REQUEST}={asked}")
        self.wait("a look", lambda state: state.status.get("lastHandledRequestAt") == asked)

    def wait(self, what: str, until: Callable[[State], bool]) -> State:
        """The first state for which it holds."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while not until(state := self.state):
            assert time.monotonic() < ends, f"{self.name}: waited in vain for {what}\n{state.summary()}"
            time.sleep(1)
        return state

    def first(self) -> None:
        """Register the first version, apply the object, and begin to ask it."""
        trained = train(self.file, 0)
        self.serving = self.registry.register(self.name, trained.files)
        self.registry.point(self.name, self.serving)
        self.kubectl.apply(body(self.name, self.file, self.registry.server.host))
        self.wait("Ready", lambda state: state.holds("Ready"))
        address = self.kubectl.get("service", self.name)["spec"]["clusterIP"]
        self.prober = Prober(f"{address}:8001", self.name, [trained.answers(ASKED)])
        self.prober.reach()
        self.check("first")

    def check(self, night: str) -> None:
        """What answers is the newest version that has to serve, as soon as the node's proxy knows of it."""
        ends = time.monotonic() + PROXY_SECONDS
        while (place := self.prober.serves()) != len(self.prober.good) - 1:
            assert time.monotonic() < ends, f"{self.name}, {night}: version {place} of those that may serve answers"
            time.sleep(0.5)

    def registered(self, night: int, spoil: str, *, alias: bool = True) -> tuple[str, Trained]:
        """Train and register the version of a night."""
        trained = train(self.file, night, spoil)
        number = self.registry.register(self.name, trained.files)
        if alias:
            self.registry.point(self.name, number)
        return number, trained

    def serves(self, number: str, trained: Trained) -> None:
        """Wait until this version serves, and nothing newer is wanted."""
        self.prober.good.append(trained.answers(ASKED))
        start = time.monotonic()
        self.wait(f"version {number}", lambda state: _version(state, "serving") == number and state.holds("UpToDate"))
        self.seconds.append(time.monotonic() - start)
        self.former, self.serving = self.serving, number

    def refuses(self, number: str, reasons: frozenset[str]) -> str:
        """Wait until one of the reasons is told of this version."""
        start = time.monotonic()
        state = self.wait(
            f"a refusal of version {number}",
            lambda state: _version(state, "latest") == number and _reason(state) in reasons and state.holds("Ready"),
        )
        self.seconds.append(time.monotonic() - start)
        return _told(state)


def body(name: str, file: str, server: str) -> Mapping[str, Any]:
    """The object."""
    budget = {"constraints": {"p99Latency": "250ms"}} if file == NETWORK else {}
    return {
        "apiVersion": "triton-operator.dev/v1alpha1",
        "kind": "TritonDeployment",
        "metadata": {"name": name},
        "spec": {
            "source": {
                "uri": f"mlflow://{server}/{name}",
                "version": ALIAS,
                "interval": "1h",
                "secretRef": {"name": "mlflow"},
            },
            "dataloader": {"entrypoint": "dataloader.py"},
            "metrics": {"entrypoint": "metrics.py"},
            "models": [{"name": name, "path": file, "config": {"maxBatchSize": 64, "dynamicBatching": {}}}],
            "accuracy": {"thresholds": [{"metric": "accuracy", "min": 0.75}]},
            "selection": {"objectives": [{"metric": "throughput"}], **budget},
        },
    }


def live(model: Model, index: int, night: Night) -> str:
    """One model's night, as far as it is its own; return what was told."""
    spoil = night.spoil[model.file == NETWORK]
    if night.happens == "registered":
        number, trained = model.registered(index, spoil)
        model.look()
        if night.reasons:
            return model.refuses(number, night.reasons)
        model.serves(number, trained)
        return f"version {number} serves"
    if night.happens == "pending":
        number, _ = model.registered(index, "", alias=False)
        model.registry.mark(model.name, number, "PENDING_REGISTRATION")
        model.registry.point(model.name, number)
        model.look()
        state = model.wait("a look that fails", lambda state: _reason(state) in night.reasons)
        return _told(state)
    for number in (model.former, model.serving, model.former, model.serving):
        model.registry.point(model.name, number)
        model.look()
    state = model.wait("rest", lambda state: state.holds("UpToDate"))
    return _told(state)


def trouble(models: list[Model], night: Night, registry: Registry) -> str:
    """A night in which the registry is away, or refuses the account, for both models."""
    server = registry.server
    if night.happens == "away":
        os.killpg(server.process, signal.SIGSTOP)
    else:
        _secret(models[0].kubectl, "another")
    try:
        each_of(models, lambda model: model.look())
        each_of(models, lambda model: model.wait("a look that fails", lambda state: _reason(state) in night.reasons))
        return _told(models[0].state)
    finally:
        if night.happens == "away":
            os.killpg(server.process, signal.SIGCONT)
        else:
            _secret(models[0].kubectl, PASSWORD)


def each_of(models: list[Model], do: Callable[[Model], object]) -> list[object]:
    """Do it for all models side by side."""
    with ThreadPoolExecutor(len(models)) as threads:
        return list(threads.map(do, models))


def _version(state: State, of: str) -> str:
    return str((state.status.get("source", {}).get(of) or {}).get("version", "")).partition("@")[0]


def _reason(state: State) -> str:
    condition = state.condition("UpToDate")
    return "" if condition.get("status") == "True" else str(condition.get("reason", ""))


def _told(state: State) -> str:
    condition = state.condition("UpToDate")
    return f"{condition['status']} {condition['reason']}: {condition['message'][:160]}"


def _secret(kubectl: Kubectl, password: str) -> None:
    content = {"username": USER, "password": password}
    kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mlflow"}, "stringData": content})


def run(kubectl: Kubectl, registry: Registry) -> int:
    """All nights; return the exit status."""
    models = [Model(kubectl, registry, name, file) for name, file in (("trees", TREES), ("network", NETWORK))]
    _secret(kubectl, PASSWORD)
    start = time.monotonic()
    each_of(models, lambda model: model.first())
    print(f"both models are Ready after {time.monotonic() - start:.0f} s", flush=True)
    with ExitStack() as stack:
        for model in models:
            stack.callback(model.prober.start())
        for index, night in enumerate(NIGHTS, 1):
            begun = time.monotonic()
            if night.happens in ("away", "expired"):
                told: list[object] = [trouble(models, night, registry)]
            else:
                told = each_of(models, lambda model: live(model, index, night))  # noqa: B023
            for model in models:
                model.check(night.name)
            print(f"{index:2}  {night.name}, {time.monotonic() - begun:.0f} s", *told, sep="\n      ", flush=True)
    for model in models:
        middle, most = statistics.median(model.seconds), max(model.seconds)
        print(
            f"{model.name}: {len(model.seconds)} versions, {middle:.0f} s from the look to the answer at the median, "
            f"{most:.0f} at most; {model.prober.answered} requests answered, {len(model.prober.failed)} failed, "
            f"{model.prober.wrong} answered by a version that may not serve"
        )
        print(*model.prober.failed[:5], sep="\n")
    return int(any(model.prober.failed or model.prober.wrong for model in models))


def main() -> int:
    """Serve MLflow beside the cluster, and live through the nights."""
    assert foreign_kubeconfig(cluster_paths()) is None, "MLflow runs on the node's address: unset KUBECONFIG"
    cluster = set_up()
    kubectl = Kubectl(str(program("kubectl")), cluster.kubeconfig, NAMESPACE)
    addresses = kubectl.items("nodes")[0]["status"]["addresses"]
    address = next(str(each["address"]) for each in addresses if each["type"] == "InternalIP")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        authority, certificate = make_authority(Path(folder), f"IP:{address}")
        artifacts = ("--artifacts-destination", f"{folder}/artifacts")
        server = stack.enter_context(serving(Path(folder), certificate, authority, *artifacts, address=address))
        peer = {"to": [{"ipBlock": {"cidr": f"{address}/32"}}]}
        egress = {"networkPolicy": {"sources": {"egress": [peer]}}}
        install(cluster.kubeconfig, {"sources": {"caBundle": authority.read_text()}, **egress})
        stack.callback(install, cluster.kubeconfig)
        kubectl.run("create", "namespace", NAMESPACE)
        stack.callback(kubectl.run, "delete", "namespace", NAMESPACE, timeout=300)
        return run(kubectl, Registry(server))


if __name__ == "__main__":
    sys.exit(main())
