"""The real Traefik: a good revision takes each step of its canary, a slow one is undone at the first; no request fails.

Three models answer the same request differently, so each answer tells which revision gave it.
"""

import base64
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper
from tritonclient import grpc

from hack.deploy.install import install
from tests.apiserver.operator_process import eventually
from tests.e2e.applied import Applied
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.state import State
from tests.e2e.watching import Watch
from tests.integrations.traefik import NAME as GATEWAY
from tests.integrations.traefik import Traefik

NAME, MODEL, HOST = "routed", "scores", "scores.example"
SHARES, SECONDS, TOLERANCE = [20, 50], 60, 0.1
"""The tolerance: how far the share of answers may be above that of requests, because slow answers come late."""
WIDTH, PRODUCTS = 128, 5000
"""Of the slow model: products of a row and a matrix, of which it does so many, one after the other. With 2,000 a busy
machine once slowed the others so much that it was only three times as slow."""
CLIENTS, PAUSE_SECONDS, SECONDS_AFTER = 2, 0.1, 30.0
"""Clients of each protocol, their pause after an answer, and the time in which another try would be seen."""
SAMPLE = numpy.linspace(-1, 1, 8, dtype=numpy.float32).reshape(1, 8)


def model(seed: int, products: int = 0) -> bytes:
    """Return a graph: features (batch, 8) to scores (batch, 4). ``products``: more of them make it slower."""
    random = numpy.random.default_rng(seed)
    shapes = {"first": (8, WIDTH), "wide": (WIDTH, WIDTH), "last": (WIDTH, 4)}
    weights = {name: random.standard_normal(shape) / shape[0] ** 0.5 for name, shape in shapes.items()}
    nodes = [helper.make_node("MatMul", ["features", "first"], ["hidden0"])]
    for step in range(products):
        nodes.append(helper.make_node("MatMul", [f"hidden{step}", "wide"], [f"product{step}"]))
        nodes.append(helper.make_node("Tanh", [f"product{step}"], [f"hidden{step + 1}"]))
    nodes.append(helper.make_node("MatMul", [f"hidden{products}", "last"], ["scores"]))
    used = [name for name in weights if products or name != "wide"]
    graph = helper.make_graph(
        nodes,
        MODEL,
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(weights[name].astype(numpy.float32), name) for name in used],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(made.SerializeToString())


def files() -> Object:
    """Return the ConfigMap with the three models."""
    models = {"first.onnx": model(1), "good.onnx": model(2), "slow.onnx": model(3, PRODUCTS)}
    encoded = {name: base64.b64encode(content).decode() for name, content in models.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "binaryData": encoded}


def base() -> Object:
    """The object, without its name and its file."""
    route = {"parentRefs": [{"name": GATEWAY}], "hostnames": [HOST], "canary": SHARES}
    soak = {"duration": f"{SECONDS}s", "minRequests": 100, "maxLatencyPercent": 300}
    one = [{"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}]
    spec = {
        "source": {"uri": f"configmap://{NAME}"},
        "models": [{"name": MODEL, "format": "onnx", "path": "first.onnx", "candidates": one}],
        "performance": {"online": {"concurrency": {"start": 1, "end": 2}}, "offline": {"batchSizes": [1]}},
        "serving": {"route": route, "soak": soak},
    }
    return {"apiVersion": "triton-operator.dev/v1alpha1", "kind": "TritonDeployment", "spec": spec}


@dataclass
class Load:
    """Clients that ask all the while through the Gateway, by both protocols."""

    port: int
    answers: list[tuple[float, str, str]] = field(default_factory=list)
    """Of each: when it came, by which protocol, and the scores as text."""
    failures: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        asks = [("http", self.http) for _ in range(CLIENTS)] + [("grpc", self.grpc()) for _ in range(CLIENTS)]
        self.threads += [threading.Thread(target=self._repeat, args=each, daemon=True) for each in asks]
        for each in self.threads:
            each.start()

    def stop(self) -> None:
        self.stopped.set()
        for each in self.threads:
            each.join(30)

    def http(self) -> list[float]:
        """Ask over HTTP, with a connection of its own."""
        tensor = {"name": "features", "shape": [1, 8], "datatype": "FP32", "data": SAMPLE.ravel().tolist()}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("POST", f"/v2/models/{MODEL}/infer", json.dumps({"inputs": [tensor]}), {"Host": HOST})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 200, f"{answer.status}: {text}"
        data: list[float] = json.loads(text)["outputs"][0]["data"]
        return data

    def grpc(self) -> Callable[[], list[float]]:
        """Return what asks over gRPC, with one connection for all requests."""
        host = [("grpc.default_authority", HOST)]
        client = grpc.InferenceServerClient(f"127.0.0.1:{self.port}", channel_args=host)
        tensor = grpc.InferInput("features", SAMPLE.shape, "FP32")
        tensor.set_data_from_numpy(SAMPLE)

        def ask() -> list[float]:
            found: list[float] = client.infer(MODEL, [tensor], client_timeout=30).as_numpy("scores").ravel().tolist()
            return found

        return ask

    def _repeat(self, protocol: str, ask: Callable[[], list[float]]) -> None:
        while not self.stopped.is_set():
            try:
                scores = ask()
                self.answers.append((time.time(), protocol, " ".join(f"{each + 0:.2f}" for each in scores)))
            except Exception as error:
                self.failures.append(f"{time.time():.1f} {protocol}: {type(error).__name__}: {error}")
            self.stopped.wait(PAUSE_SECONDS)


@dataclass(frozen=True)
class Canaries:
    """The object after each of its revisions, and what its clients saw."""

    first: State
    kept: State
    undone: State
    tried_again: State
    messages: tuple[str, ...]
    """What the condition Soaked said during the canaries."""
    load: Load
    answers: Mapping[str, str]
    """The answer of each model, by the stem of its file."""


@pytest.fixture(scope="module")
def kubectl(cluster: Kubectl) -> Iterator[Kubectl]:
    if "KUBECONFIG" in os.environ:
        pytest.skip("KUBECONFIG is set: this machine may not reach the pods of that cluster")
    found = cluster.within(f"canary-{secrets.token_hex(3)}")
    found.run("create", "namespace", found.namespace)
    yield found
    cluster.run("delete", "namespace", found.namespace, "--ignore-not-found", timeout=300)


@pytest.fixture(scope="module")
def traefik(
    kubectl: Kubectl, kubeconfig: Path, installed: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Traefik]:
    """Traefik, and an operator that makes routes: it looks for the Gateway API when it starts."""
    with Traefik(kubectl, tmp_path_factory.mktemp("traefik")) as found:
        install(kubeconfig, {"gatewayApi": {"enabled": True}})
        yield found
        kubectl.run("delete", "tritondeployments", "--all", "--wait=true", timeout=180)
        install(kubeconfig)


@pytest.fixture(scope="module")
def canaries(kubectl: Kubectl, traefik: Traefik) -> Iterator[Canaries]:
    # A client's apply would put all of it into an annotation, too.
    kubectl.run("apply", "--server-side", "--filename=-", stdin=json.dumps(files()))
    watch, load = Watch(kubectl), Load(traefik.port)
    applied = Applied(kubectl, watch, base(), NAME)
    try:
        generation = applied.apply()
        applied.wait_ready(generation)
        first = applied.wait("a route", lambda state: state.holds("Routed"), generation=generation).state
        # A Gateway accepts a route first, and learns of its endpoints later.
        answers = {"first": eventually(lambda: answer_of(load))}
        load.start()
        generation = applied.apply({"model": {"path": "good.onnx"}})
        kept = applied.wait(
            "a soak that passed",
            lambda state: state.condition("Soaked").get("reason") == "SoakPassed",
            generation=generation,
        ).state
        answers["good"] = answer_of(load)
        generation = applied.apply({"model": {"path": "slow.onnx"}})
        undone = applied.wait("an undo", lambda state: state.says("Ready", "SoakFailed"), generation=generation).state
        time.sleep(SECONDS_AFTER)
        load.stop()
        answers["slow"] = next(iter({each for _, _, each in load.answers} - set(answers.values())), "")
        seen = [each.state.condition("Soaked") for each in watch.history(kubectl.namespace, NAME)]
        messages = tuple(each["message"] for each in seen if each.get("reason") == "Canary")
        yield Canaries(first, kept, undone, applied.state, messages, load, answers)
    finally:
        load.stop()
        watch.stop()


def answer_of(load: Load) -> str:
    return " ".join(f"{each + 0:.2f}" for each in load.http())


def test_a_good_revision_takes_each_step_and_becomes_active(canaries: Canaries) -> None:
    assert canaries.kept.revision not in ("", canaries.first.revision)
    for number, share in enumerate(SHARES, 1):
        words = f"step {number} of {len(SHARES)}: Deployment ", f" gets {share} % of the requests to HTTPRoute {NAME}"
        assert [each for each in canaries.messages if all(word in each for word in words)], canaries.messages
    assert "20 %: passed, 50 %: passed" in canaries.kept.condition("Soaked")["message"], canaries.kept.summary()
    assert len(set(canaries.answers.values()) - {""}) == 3, "each revision answered"


def test_a_slow_revision_is_undone_at_the_first_step(canaries: Canaries) -> None:
    assert canaries.undone.says("Soaked", "SoakFailed"), canaries.undone.summary()
    message = canaries.undone.condition("Stalled")["message"]
    assert f"with {SHARES[0]} % of the requests to HTTPRoute {NAME}: " in message
    assert "maxLatencyPercent is 300" in message
    assert canaries.undone.revision == canaries.kept.revision
    assert canaries.tried_again.says("Soaked", "SoakFailed"), canaries.tried_again.summary()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_it_never_got_more_than_about_its_share(canaries: Canaries, protocol: str) -> None:
    answers = [(at, scores) for at, each, scores in canaries.load.answers if each == protocol]
    slow = [at for at, scores in answers if scores == canaries.answers["slow"]]
    assert slow, "it had some"
    meanwhile = [at for at, _ in answers if slow[0] <= at <= slow[-1]]
    assert len(slow) / len(meanwhile) < SHARES[0] / 100 + TOLERANCE
    assert slow[-1] - slow[0] < 3 * SECONDS, "and none after it was undone"


def test_no_request_failed(canaries: Canaries) -> None:
    assert canaries.load.failures == []
    assert len(canaries.load.answers) > 1000
