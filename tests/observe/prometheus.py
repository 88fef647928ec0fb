"""The real Prometheus, and how it scrapes what a PodMonitor selects."""

import json
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from hack.devcluster.binaries import program
from hack.imagebuild.pod import free_ports
from tests.apiserver.operator_process import eventually

JSON = dict[str, Any]


class Prometheus:
    """A server that scrapes every second, between entry and exit of the block."""

    def __init__(self, folder: Path, scrape_configs: list[JSON], rules: list[JSON]) -> None:
        self._folder = folder
        self._port = free_ports()[0]
        self._process: subprocess.Popen[bytes] | None = None
        every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": rules}))
        configuration = {"global": every, "rule_files": ["rules.yaml"], "scrape_configs": scrape_configs}
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))

    def __enter__(self) -> Self:
        argv = [
            str(program("prometheus")),
            "--config.file=prometheus.yaml",
            "--storage.tsdb.path=data",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(argv, cwd=self._folder, stdout=log, stderr=log)
        eventually(self._ready, within=60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(30)

    @property
    def url(self) -> str:
        """Return where it answers on this machine."""
        return f"http://127.0.0.1:{self._port}"

    def query(self, expression: str) -> list[JSON]:
        """The result of an instant query: a metric and a value each."""
        found: list[JSON] = self.get("query", query=expression)["result"]
        return found

    def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer of the API."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def _ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def pod_scrape(monitor: JSON, kubeconfig: Path) -> JSON:
    """The scrape configuration of a PodMonitor, as the Prometheus operator makes it."""
    spec = monitor["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]

    def source(label: str) -> str:
        return "__meta_kubernetes_pod_label_" + label.replace(".", "_").replace("/", "_").replace("-", "_")

    selected = [
        {"source_labels": [source(label)], "regex": value, "action": "keep"}
        for label, value in spec["selector"]["matchLabels"].items()
    ]
    port = {"source_labels": ["__meta_kubernetes_pod_container_port_name"], "regex": endpoint["port"], "action": "keep"}
    usual = [
        {"source_labels": [f"__meta_kubernetes_{meta}"], "target_label": label}
        for meta, label in (("namespace", "namespace"), ("pod_container_name", "container"), ("pod_name", "pod"))
    ]
    own = [
        {"source_labels": each["sourceLabels"], "target_label": each["targetLabel"]}
        for each in endpoint.get("relabelings", ())
    ]
    return {
        "job_name": monitor["metadata"]["name"],
        "honor_labels": endpoint.get("honorLabels", False),
        "kubernetes_sd_configs": [{"role": "pod", "kubeconfig_file": str(kubeconfig)}],
        "relabel_configs": [*selected, port, *usual, *own],
        "metric_relabel_configs": [
            {"source_labels": each["sourceLabels"], "regex": each["regex"], "action": each["action"]}
            for each in endpoint.get("metricRelabelings", ())
        ],
    }
