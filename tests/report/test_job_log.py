"""What a Job that runs has measured: from its pod's log, by the user's own rights."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from triton_operator import names
from triton_plugin.reading.cluster import Cluster
from triton_plugin.reading.job_log import job_log, latest_line

LINE = (
    "search 3 of at most 24: max batch 8; 2 instances: batch 1, concurrency 4: 812.3 inferences/s, p99 5031 us (4.1 s)"
)


def a_pod(name: str, stage: str, created: str) -> dict[str, Any]:
    labels = {names.TRITON_DEPLOYMENT_LABEL: "digits", names.STAGE_LABEL: stage, names.CANDIDATE_LABEL: "onnx-fp32"}
    metadata = {"name": name, "labels": labels, "annotations": {names.LOGGED_CONTAINER: "run"}}
    return {"metadata": metadata | {"creationTimestamp": f"2026-11-21T{created}Z"}}


@dataclass
class Api:
    """Answers for the two requests."""

    pods: list[dict[str, Any]] = field(default_factory=list)
    log: bytes = b""
    refuses: dict[str, int] = field(default_factory=dict)
    """Status by the end of a path."""
    asked: list[tuple[str, dict[str, list[str]]]] = field(default_factory=list)

    def answer(self, target: str) -> tuple[int, bytes]:
        path = urlsplit(target).path
        self.asked.append((path, parse_qs(urlsplit(target).query)))
        status = next((code for end, code in self.refuses.items() if path.endswith(end)), 200)
        if path.endswith("/log"):
            return status, self.log
        return status, json.dumps({"kind": "PodList", "apiVersion": "v1", "items": self.pods}).encode()


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    found = Api()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = found.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if "/log" in self.path else "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        config = {
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "vision"}}],
            "current-context": "x",
        }
        file = tmp_path / "kubeconfig"
        file.write_text(yaml.safe_dump(config))
        monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))
        yield found
        server.shutdown()
        thread.join()


def test_the_newest_running_jobs_last_point_is_told(api: Api) -> None:
    api.pods = [a_pod("old", "profile", "10:00:00"), a_pod("new", "search", "11:00:00")]
    api.log = f"trying max batch 8\n{LINE}\ntrying max batch 4\n".encode()
    assert Cluster(None, None).measuring("digits").words == f"onnx-fp32: {LINE}"
    (pods, selected), (log, wanted) = api.asked
    assert pods == "/api/v1/namespaces/vision/pods"
    assert selected["fieldSelector"] == ["status.phase!=Succeeded,status.phase!=Failed"]
    (selector,) = selected["labelSelector"]
    stages = "(source,packages,reference,profile,search,measure,publish)"
    assert selector == f"{names.TRITON_DEPLOYMENT_LABEL}=digits,{names.STAGE_LABEL} in {stages}"
    assert log == "/api/v1/namespaces/vision/pods/new/log"
    assert (wanted["container"], wanted["tailLines"]) == (["run"], ["100"])


def test_the_log_of_a_pod_that_an_older_operator_made_is_of_its_only_container(api: Api) -> None:
    api.pods = [a_pod("old", "search", "10:00:00")]
    del api.pods[0]["metadata"]["annotations"]
    Cluster(None, None).measuring("digits")
    assert api.asked[1][1]["container"] == ["search"]


def test_a_point_through_the_preview_service_is_told_from_the_same_candidates_own(api: Api) -> None:
    api.pods, api.log = [a_pod("new", "measure", "11:00:00")], b"online 1/4: batch 1\n"
    assert Cluster(None, None).measuring("digits").words == "onnx-fp32 through the preview Service: online 1/4: batch 1"


def test_a_jobs_last_point_is_told_even_after_its_pod_has_ended(api: Api) -> None:
    cluster = Cluster(None, None)
    api.pods, api.log = [a_pod("new", "profile", "11:00:00")], b"online 3/4: batch 1\n"
    assert cluster.measuring("digits").words == "onnx-fp32: online 3/4: batch 1"
    api.pods, api.log = [], b"online 3/4: batch 1\nonline 4/4: batch 1\n"
    assert cluster.measuring("digits").words == "onnx-fp32: online 4/4: batch 1"


def test_the_log_is_of_the_container_that_the_pod_says(api: Api) -> None:
    pod = a_pod("new", "packages", "11:00:00")
    pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "run"}
    api.pods, api.log = [pod], b"download timm.whl\n"
    assert Cluster(None, None).measuring("digits").words == "onnx-fp32: download timm.whl"
    assert api.asked[-1][1]["container"] == ["run"]


def test_a_reference_that_runs_tells_its_samples(api: Api) -> None:
    pod = a_pod("new", "reference", "11:00:00")
    del pod["metadata"]["labels"][names.CANDIDATE_LABEL]
    line = "reference: 96 samples answered in 41.2 s so far, and it ends at 256"
    api.pods, api.log = [pod], f"loading\n{line}\n".encode()
    assert Cluster(None, None).measuring("digits").words == f"digits: {line}"


def test_where_no_job_measures_no_log_is_asked_for(api: Api) -> None:
    assert Cluster(None, None).measuring("digits").words == ""
    assert len(api.asked) == 1


@pytest.mark.parametrize("end", ["/pods", "/log"])
def test_missing_rights_are_named(api: Api, end: str) -> None:
    api.pods, api.refuses = [a_pod("new", "search", "11:00:00")], {end: 403}
    said = Cluster(None, None).measuring("digits").words
    assert said.endswith("you need the rights to list pods and to get pods/log in namespace vision")


@pytest.mark.parametrize(("end", "status"), [("/log", 400), ("/log", 404), ("/pods", 500)])
def test_a_log_that_cannot_be_had_just_now_is_no_error(api: Api, end: str, status: int) -> None:
    api.pods, api.refuses = [a_pod("new", "search", "11:00:00")], {end: status}
    assert Cluster(None, None).measuring("digits").words == ""


def test_the_verdict_of_the_gates_is_told_whatever_comes_after_it() -> None:
    labels = {names.STAGE_LABEL: "profile", names.CANDIDATE_LABEL: "onnx-fp32"}
    text = "epoch 3\ngates: Passed: 64 \x1b[31msamples\n"
    before = job_log("digits", "pod", labels, text)
    after = job_log("digits", "pod", labels, f"{text}offline 1/2: batch 1\noffline 2/2: batch 8\ngates: Failed: mine\n")
    assert before.verdict == after.verdict == "onnx-fp32: gates: Passed: 64 \N{REPLACEMENT CHARACTER}[31msamples"
    assert (before.words, after.words) == ("", "onnx-fp32: offline 2/2: batch 8")
    assert job_log("digits", "pod", labels, "epoch 3\n").verdict == ""


def test_only_lines_about_points_and_downloads_are_told() -> None:
    assert latest_line("profile", 'epoch 3\nonline 1/4: batch 1\n{"stage": "profile"}\n') == "online 1/4: batch 1"
    assert latest_line("measure", "gates: no\nonline 1/4: batch 1\n") == "online 1/4: batch 1"
    assert latest_line("search", "online 1/1: batch 1\n") == ""
    result, next_point = (
        "online 1/4: 9.1 inferences/s",
        "online 2/4: a request takes about 0.2 s, so this point takes about 19 s",
    )
    assert latest_line("measure", f"{result}\n{next_point}\n") == f"{result}; then {next_point}"
    assert latest_line("measure", f"{next_point}\n") == next_point
    downloaded = "download model.onnx: 1.2 GiB of 4.0 GiB (30 %)"
    assert latest_line("source", f"acme/ocr: 1 of 1 files are to come\n{downloaded}\n") == downloaded
    assert latest_line("search", "search \x1b[31mred\n") == "search \N{REPLACEMENT CHARACTER}[31mred"
    assert len(latest_line("search", "search " + "a" * 1000)) == 300
