"""The operator and a server, scraped by Prometheus as the chart's monitors say."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.apiserver.operator_process import eventually, rendered
from tests.e2e.state import State
from tests.observe.prometheus import Prometheus, pod_scrape

SAME = "on (namespace, object, model, revision)"


@pytest.fixture(scope="module")
def prometheus(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus on this machine, which reaches the pods of the development cluster."""
    if "KUBECONFIG" in os.environ:
        pytest.skip("KUBECONFIG is set: the pods of that cluster may not be reachable from here")
    bodies = rendered(
        "--set", "metrics.podMonitor.enabled=true,servers.podMonitor.enabled=true,metrics.prometheusRule.enabled=true"
    )
    scrapes = [pod_scrape(each, kubeconfig) for each in bodies if each["kind"] == "PodMonitor"]
    (rule,) = [each for each in bodies if each["kind"] == "PrometheusRule"]
    assert len(scrapes) == 2
    with Prometheus(tmp_path_factory.mktemp("prometheus"), scrapes, rule["spec"]["groups"]) as found:
        yield found


def test_what_was_measured_stands_next_to_what_the_server_does(prometheus: Prometheus, smallest_object: State) -> None:
    """The sweep through the preview Service has loaded the server, so it has counted inferences."""
    own = f'namespace="{smallest_object.namespace}", object="{smallest_object.name}"'
    measured = f"max by (namespace, object, model, revision) (triton_operator_measured_throughput{{{own}}})"
    counted = f"sum by (namespace, object, model, revision) (nv_inference_count{{{own}}})"
    (found,) = eventually(partial(prometheus.query, f"{counted} and {SAME} {measured}"))
    assert float(found["value"][1]) > 0
    assert found["metric"]["revision"] == smallest_object.status["serving"]["revision"]
    (throughput,) = prometheus.query(measured)
    assert float(throughput["value"][1]) == float(smallest_object.status["serving"]["throughput"])


def test_one_replica_leads_and_tells_of_the_object(prometheus: Prometheus, smallest_object: State) -> None:
    eventually(partial(prometheus.query, "sum(triton_operator_leads) == 1 and count(triton_operator_leads) == 2"))
    own = f'namespace="{smallest_object.namespace}", object="{smallest_object.name}"'
    (_,) = eventually(partial(prometheus.query, f"triton_operator_active_revision{{{own}}}"))
    assert prometheus.query('triton_operator_stage_outcomes_total{stage="profile", reason="Succeeded"} > 0')


def test_its_alerts_are_evaluated_and_the_operator_is_not_down(prometheus: Prometheus) -> None:
    eventually(partial(prometheus.query, "triton_operator_leads"))
    rules = [each for group in prometheus.get("rules")["groups"] for each in group["rules"]]
    assert {each["health"] for each in rules} <= {"ok", "unknown"}, rules
    names = {each["labels"]["alertname"] for each in prometheus.get("alerts")["alerts"]}
    assert "TritonOperatorPassesFail" not in names
