"""The chart's alerts in a Prometheus of this machine, and when they fired."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.apiserver.operator_process import rendered
from tests.observe.prometheus import Prometheus, pod_scrape

FOR = "10s"
"""How long each alert's condition has to hold in a run of minutes; the chart says 5 to 15 min."""
MONITORED = tuple(
    each
    for value in ("metrics.podMonitor.enabled", "servers.podMonitor.enabled", "metrics.prometheusRule.enabled")
    for each in ("--set", f"{value}=true")
)

Body = dict[str, Any]


def scrapes(kubeconfig: Path) -> list[Body]:
    """What the chart's PodMonitors have Prometheus scrape: the operator, and the servers."""
    return [pod_scrape(each, kubeconfig) for each in rendered(*MONITORED) if each["kind"] == "PodMonitor"]


def rules() -> list[Body]:
    """The chart's groups of alerts, each alert with FOR."""
    (body,) = (each for each in rendered(*MONITORED) if each["kind"] == "PrometheusRule")
    return [group | {"rules": [rule | {"for": FOR} for rule in group["rules"]]} for group in body["spec"]["groups"]]


def fired(prometheus: Prometheus, start: float, end: float) -> list[Body]:
    """When alerts fired between two times of the epoch: labels, and seconds since ``start``."""
    expression = 'ALERTS{alertstate="firing"}'
    answer = prometheus.get("query_range", query=expression, start=str(start), end=str(end), step="1")
    return [
        {
            "alert": series["metric"]["alertname"],
            "reason": series["metric"].get("reason", ""),
            "revision": series["metric"].get("revision", ""),
            "from": round(begin - start),
            "to": round(finish - start),
        }
        for series in answer["result"]
        for begin, finish in spans([float(at) for at, _ in series["values"]])
    ]


def spans(times: Iterable[float]) -> list[tuple[float, float]]:
    """Merge times that are at most two seconds apart."""
    found: list[tuple[float, float]] = []
    for at in times:
        if found and at - found[-1][1] <= 2:
            found[-1] = (found[-1][0], at)
        else:
            found.append((at, at))
    return found
