"""Every query of every dashboard, and every metric of every alert, on what the real Prometheus scraped.

The operator is a real process on a real API server, where Jobs end with the simulation's answers. The server is a real
tritonserver of the CPU image under load. Prometheus finds it by a pod of the API server with its port, through the
chart's PodMonitor.
"""

import json
import math
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.custom_resources import MINIMAL, changed, named
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.node import Node
from tests.apiserver.operator_process import CHART, Operator, eventually, rendered
from tests.apiserver.test_operator import condition
from tests.observe.prometheus import Prometheus, pod_scrape
from tests.observe.served import served
from tests.simulation.answers import Script
from tests.simulation.deployments import an_ensemble
from triton_converters.contract.reasons import Reason
from triton_operator.names import REQUEST_ANNOTATION

JSON = dict[str, Any]
NAMESPACE = "vision"
MODEL = "numbers"
OBJECT = changed(
    MINIMAL,
    {"spec.models.0.name": MODEL, "spec.selection": {"constraints": {"p99Latency": "1s", "averageLatency": "1s"}}},
)
FOLLOWED = changed(OBJECT, {"spec.source": {"uri": "hf://acme/digits", "interval": "5m", "onChange": "Notify"}})
FORBIDDEN = changed(named("forbidden", OBJECT), {"spec.source.uri": "pvc://secrets/digits"})
ENSEMBLE = changed(named("pipeline", OBJECT), {"spec": {**an_ensemble("onnx-fp32"), "suspend": True}})
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in (CHART / "files/dashboards").glob("*.json")}
QUERIES = [
    (name, panel["title"], target["expr"])
    for name, board in sorted(DASHBOARDS.items())
    for panel in board["panels"]
    for target in panel["targets"]
]
TROUBLES = {
    f"triton_operator_{each}"
    for each in ("failing", "look_failed", "no_server_ready", "not_up_to_date", "rollout_held")
}
"""Metrics without a series while nothing is wrong."""
VALUES = {"$__rate_interval": "15s", "$__range": "10m", "$namespace": NAMESPACE, "$object": "digits"}
"""What Grafana puts in."""


@pytest.fixture(scope="module")
def monitoring() -> list[JSON]:
    """What the chart renders for Prometheus and Grafana."""
    on = ("serviceMonitor", "prometheusRule", "dashboards")
    settings = ",".join(["servers.podMonitor.enabled=true", *(f"metrics.{each}.enabled=true" for each in on)])
    return rendered("--set", settings)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator's log."""
    return tmp_path_factory.mktemp("operator") / "log"


@pytest.fixture(scope="module")
def prometheus(
    apiserver: ApiServer,
    cluster_kubectl: Kubectl,
    operator_kubeconfig: Path,
    monitoring: list[JSON],
    log: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Prometheus]:
    """Prometheus, with an object that serves and has a newer version, one that is stalled, and one that waits."""
    cluster_kubectl("create", "namespace", NAMESPACE)
    kubectl = cluster_kubectl.within(NAMESPACE)
    (pods,) = [each for each in monitoring if each["kind"] == "PodMonitor"]
    (service,) = [each for each in monitoring if each["kind"] == "ServiceMonitor"]
    (rule,) = [each for each in monitoring if each["kind"] == "PrometheusRule"]
    with ExitStack() as stack:
        metrics = stack.enter_context(served(tmp_path_factory.mktemp("server"), MODEL))
        operator = stack.enter_context(Operator(operator_kubeconfig, log, ALLOWED_CLAIMS="models", LOG_FORMAT="json"))
        operator.wait_ready()
        target = {"targets": [f"127.0.0.1:{operator.port}"], "labels": {"namespace": "triton-operator", "pod": "a"}}
        of_operator = {
            "job_name": "operator",
            "honor_labels": service["spec"]["endpoints"][0]["honorLabels"],
            "static_configs": [target],
        }
        scrapes = [of_operator, pod_scrape(pods, apiserver.kubeconfig)]
        folder = tmp_path_factory.mktemp("prometheus")
        found = stack.enter_context(Prometheus(folder, scrapes, rule["spec"]["groups"]))
        # What is counted from now on is an increase.
        eventually(lambda: found.query("triton_operator_leads"))
        kubectl("create", "-f", "-", body=[FOLLOWED, FORBIDDEN, ENSEMBLE])
        with Node(kubectl) as node:
            eventually(lambda: condition(kubectl, "Ready").get("status") == "True", within=90)
            node.script = Script(content="newer")
            kubectl("annotate", "td", "digits", f"{REQUEST_ANNOTATION}=2026-11-30T02:00:00Z")
            eventually(lambda: condition(kubectl, "UpToDate").get("reason") == Reason.NEWER_VERSION)
        start_pod(kubectl, metrics)
        yield found
        kubectl("delete", "td", "--all")


def start_pod(kubectl: Kubectl, port: int) -> None:
    """A pod as the object's Deployment makes it, with the address and the port of the server that runs here."""
    (deployment,) = kubectl.items("deployments")
    template = deployment["spec"]["template"]
    (container,) = template["spec"]["containers"]
    ports = [{"name": each["name"], "containerPort": port} for each in container["ports"] if each["name"] == "metrics"]
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "server", "labels": template["metadata"]["labels"]},
        "spec": {"containers": [{"name": container["name"], "image": "server:test", "ports": ports}]},
    }
    kubectl("create", "-f", "-", body=body)
    status = {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
    kubectl("patch", "pod", "server", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))


def filled_in(expression: str) -> str:
    for name, value in VALUES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression


@pytest.mark.parametrize(("board", "panel", "expression"), QUERIES, ids=[f"{each[0]}: {each[1]}" for each in QUERIES])
def test_every_query_of_every_dashboard_gives_data(
    prometheus: Prometheus, board: str, panel: str, expression: str
) -> None:
    def numbers() -> bool:
        result = prometheus.query(filled_in(expression))
        return bool(result) and not any(math.isnan(float(each["value"][1])) for each in result)

    eventually(numbers, within=60)


@pytest.mark.parametrize(("name"), DASHBOARDS)
def test_variables_offer_the_object(prometheus: Prometheus, name: str) -> None:
    variables = [each for each in DASHBOARDS[name]["templating"]["list"] if each["type"] == "query"]
    for each in variables:
        query = re.fullmatch(r"label_values\((.+), (\w+)\)", each["query"]["query"])
        assert query, each
        offered = {found["metric"][query[2]] for found in prometheus.query(filled_in(query[1]))}
        assert offered == {VALUES[f"${each['name']}"]}


def test_the_servers_series_have_the_labels_of_the_operators(prometheus: Prometheus) -> None:
    on = "on (namespace, object, model, revision)"

    def joined() -> list[JSON]:
        return prometheus.query(
            f"sum by (namespace, object, model, revision) (nv_inference_count) * {on} triton_operator_active_revision"
        )

    (found,) = eventually(joined)
    assert (found["metric"]["namespace"], found["metric"]["object"]) == (NAMESPACE, "digits")
    assert float(found["value"][1]) > 0


def test_a_server_cannot_speak_for_the_operator_or_another_object(
    apiserver: ApiServer, prometheus: Prometheus, monitoring: list[JSON], tmp_path: Path
) -> None:
    """Another program answers in the place of the pod's server."""
    (pods,) = [each for each in monitoring if each["kind"] == "PodMonitor"]
    scrape = pod_scrape(pods, apiserver.kubeconfig)
    hostile = (
        'triton_operator_stalled{namespace="other"} 1\n'
        "triton_operator_leads 1\n"
        'nv_inference_count{namespace="other",object="other",revision="other"} 1\n'
    )
    with answering(hostile) as port:
        scrape["relabel_configs"].append({"target_label": "__address__", "replacement": f"127.0.0.1:{port}"})
        with Prometheus(tmp_path, [scrape], []) as other:
            (found,) = eventually(partial(other.query, "nv_inference_count"))
            assert other.query('{__name__=~"triton_operator_.*"}') == []
    (true,) = prometheus.query("nv_inference_count")
    for label in ("namespace", "object", "revision"):
        assert found["metric"][label] == true["metric"][label]


@contextmanager
def answering(metrics: str) -> Iterator[int]:
    """A server that answers every request with these metrics; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(metrics.encode())

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_lines_of_the_operators_log_name_object_generation_and_stage(prometheus: Prometheus, log: Path) -> None:
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    own = [each for each in lines if each.get("object") == "digits"]
    assert {(each["namespace"], each["generation"]) for each in own} == {(NAMESPACE, 1)}
    ended = [(each["stage"], each["message"]) for each in own if " ended after " in each["message"]]
    assert [stage for stage, _ in ended if stage != "look"] == ["source", "reference", "convert", "profile", "measure"]
    assert all(message.endswith(": Succeeded") for _, message in ended)


def test_every_metric_of_every_alert_is_scraped(prometheus: Prometheus, monitoring: list[JSON]) -> None:
    (rule,) = [each for each in monitoring if each["kind"] == "PrometheusRule"]
    expressions = [each["expr"] for group in rule["spec"]["groups"] for each in group["rules"]]
    names = {name for each in expressions for name in re.findall(r"\b(?:nv|triton_operator)_\w+", each)}
    assert len(names) > 10
    for name in sorted(names - TROUBLES):
        eventually(partial(prometheus.query, name), within=30)
    for name in TROUBLES:
        assert name in names
        eventually(partial(prometheus.get, "metadata", metric=name), within=30)


def test_alerts_are_evaluated_without_an_error_and_the_stalled_object_is_one(prometheus: Prometheus) -> None:
    def stalled() -> list[JSON]:
        return [
            each
            for each in prometheus.get("alerts")["alerts"]
            if each["labels"]["alertname"] == "TritonDeploymentStalled"
        ]

    (alert,) = eventually(stalled)
    assert alert["labels"].items() >= {"namespace": NAMESPACE, "object": "forbidden", "reason": "NotAllowed"}.items()
    assert "kubectl triton explain forbidden -n vision" in alert["annotations"]["description"]
    rules = [each for group in prometheus.get("rules")["groups"] for each in group["rules"]]
    assert {each["health"] for each in rules} == {"ok"}, rules


def test_the_chart_ships_the_dashboards_as_they_are(monitoring: list[JSON]) -> None:
    shipped = [each for each in monitoring if each["kind"] == "ConfigMap"]
    assert all(each["metadata"]["labels"]["grafana_dashboard"] == "1" for each in shipped)
    boards = {name: json.loads(text) for each in shipped for name, text in each["data"].items()}
    assert boards == {f"triton-{name}.json": board for name, board in DASHBOARDS.items()}
    assert len({board["uid"] for board in boards.values()}) == len(boards)
