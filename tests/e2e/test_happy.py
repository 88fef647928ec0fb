"""The main job: from a checkpoint to a verified, measured server on a GPU node."""

import json
import time

from tests.e2e.happy import Happy
from tests.e2e.kubectl import Kubectl, KubectlError, Object
from tests.printed_columns import cells, columns
from triton_operator.api.duration import seconds

REASONS = {
    "Ready": ("True", "Ready"),
    "UpToDate": ("True", "Ready"),
    "Reconciling": ("False", "Ready"),
    "Stalled": ("False", "NoStall"),
    "SourceResolved": ("True", "Resolved"),
    "Converted": ("True", "Converted"),
    "Verified": ("True", "Verified"),
    "Selected": ("True", "Selected"),
    "Available": ("True", "Available"),
    "PerformanceMeasured": ("True", "Measured"),
}
SERVING = ".status.serving."
LATENCIES = ("p50Latency", "p90Latency", "p95Latency", "p99Latency", "averageLatency")


def server_pod(happy: Happy) -> Object:
    """The one pod behind the Service."""
    kubectl = happy.applied.kubectl
    selector = kubectl.get("service", "happy")["spec"]["selector"]
    (pod,) = kubectl.items("pods", "--selector=" + ",".join(f"{key}={value}" for key, value in selector.items()))
    return pod


def test_every_condition_is_observed_for_this_generation(happy_object: Happy) -> None:
    state = happy_object.ready.state
    conditions = {each["type"]: (each["status"], each["reason"]) for each in state.status["conditions"]}
    assert conditions == REASONS, state.summary()
    assert {each["observedGeneration"] for each in state.status["conditions"]} == {state.generation}
    assert all(each["message"] for each in state.status["conditions"]), state.summary()


def test_every_field_of_the_status_is_filled(happy_object: Happy) -> None:
    status = happy_object.ready.state.status
    assert status["source"]["digest"].startswith("sha256:")
    assert status["source"]["version"] == "v1"
    assert status["signature"] == {
        "inputs": [{"name": "INPUT__0", "dataType": "FP32", "dims": [8]}],
        "outputs": [{"name": "OUTPUT__0", "dataType": "FP32", "dims": [4]}],
        "maxBatchSize": 8,
    }
    images = {"converter", "converterTensorflow", "commandsVersion", "server", "serverArguments", "specDigest"}
    assert set(status["images"]) == images
    serving = status["serving"]
    assert float(serving["throughput"]) > 0
    assert seconds(serving["p99Latency"]) > 0
    assert float(serving["accuracy"]) == 1
    (accuracy,) = status["accuracy"]
    assert accuracy["metric"] == "accuracy"
    assert accuracy["samples"] == 24
    assert float(accuracy["framework"]) == float(accuracy["served"]) == 1
    assert "0.9" in accuracy["threshold"]
    assert accuracy["passed"] is True
    host = f"happy.{happy_object.applied.kubectl.namespace}"
    assert status["endpoint"]["grpc"].startswith(host)
    assert status["endpoint"]["grpc"].endswith(":8001")
    assert status["endpoint"]["http"].startswith(f"http://{host}")
    assert status["endpoint"]["metrics"].endswith(":8002/metrics")
    environment = status["performance"]["environment"]
    assert environment["device"] == "cpu", "the development node has no GPU: the server must say so"
    assert environment["serverVersion"]
    assert environment["cpu"]
    assert environment["image"] == status["images"]["server"]
    assert environment["imageDigest"]
    assert all("perf_analyzer" in line for line in environment["perfAnalyzer"])
    assert status["performance"]["measuredAt"]
    assert len(json.dumps(status)) < 32 * 1024


def test_candidates_are_ranked_and_one_is_selected(happy_object: Happy) -> None:
    state = happy_object.ready.state
    assert {name: each["state"] for name, each in state.candidates.items()} in (
        {"script-fp32": "Selected", "onnx-fp32": "Passed"},
        {"script-fp32": "Passed", "onnx-fp32": "Selected"},
    ), state.summary()
    for each in state.candidates.values():
        assert float(each["throughput"]) > 0
        assert seconds(each["p99Latency"]) > 0
        assert each["satisfiesConstraints"] is True
        assert 0 <= float(each["maxAbsoluteError"]) < 1e-4
        assert each["metrics"] == [{"metric": "accuracy", "value": each["metrics"][0]["value"]}]
        assert each["load"]
    chosen = next(each for each in state.candidates.values() if each["state"] == "Selected")
    (other,) = (each for each in state.candidates.values() if each["state"] == "Passed")
    assert (chosen["rank"], other["rank"]) == (1, 2)
    assert float(chosen["throughput"]) >= float(other["throughput"])
    assert other["reason"] == "NotBest"
    assert state.status["serving"]["candidate"] == chosen["name"]
    assert state.revision == chosen["revision"]


def test_as_many_rows_are_recorded_as_were_asked_for(happy_object: Happy) -> None:
    performance = happy_object.ready.state.status["performance"]
    assert [(row["batchSize"], row["concurrency"]) for row in performance["offline"]] == [(1, 1), (8, 1)]
    assert [(row["batchSize"], row["concurrency"]) for row in performance["online"]] == [(1, n) for n in (1, 2, 3, 4)]
    assert [(row["batchSize"], row["requestRate"]) for row in performance["requestRate"]] == [(1, 5)]
    for row in (*performance["offline"], *performance["online"], *performance["requestRate"]):
        assert float(row["throughput"]) > 0
        p50, p90, p95, p99, average = (seconds(row[latency]) for latency in LATENCIES)
        assert 0 < p50 <= p90 <= p95 <= p99, row
        assert average > 0, row
        assert seconds(row["computeInferTime"]) > 0


def test_what_one_replica_does_is_in_the_status(happy_object: Happy) -> None:
    performance = happy_object.ready.state.status["performance"]
    saturation = performance["saturation"]
    assert saturation["ended"] in ("Plateau", "RangeEnd")
    assert saturation["concurrency"] in (1, 2, 3, 4)
    assert float(saturation["throughput"]) > 0
    assert any(" --request-rate-range 5 " in line for line in performance["environment"]["perfAnalyzer"])


def test_columns_of_kubectl_get(happy_object: Happy) -> None:
    printed = cells(happy_object.applied.kubectl.run("get", "td"))
    serving = happy_object.ready.state.status["serving"]
    wanted = {
        name: str(serving[path.removeprefix(SERVING)]) for name, path in columns().items() if path.startswith(SERVING)
    }
    assert wanted.keys() >= {"SERVING", "PRECISION", "INF/S"}
    wanted |= {"NAME": "happy", "READY": "True", "UPTODATE": "True", "REASON": "Ready"}
    assert printed == {**wanted, "AGE": printed["AGE"]}


def test_the_revision_on_the_claim_is_complete_and_unique(happy_object: Happy) -> None:
    state = happy_object.ready.state
    bench = happy_object.workbench
    files = bench.files(f"/repository/.triton-operator/revisions/{state.revision}")
    chosen = state.candidates[state.status["serving"]["candidate"]]
    model = "model.onnx" if chosen["name"].startswith("onnx") else "model.pt"
    assert {"result.json", "models/classifier/config.pbtxt", f"models/classifier/1/{model}"} <= files.keys()
    assert any(path.startswith("models/classifier/warmup/") for path in files)
    digest = bench.run(
        "sha256sum", f"/repository/.triton-operator/revisions/{state.revision}/models/classifier/1/{model}"
    ).split()[0]
    assert bench.result("revisions", state.revision)["result"]["file_sha256"] == digest
    listed = bench.run("ls", "-A", "/repository/.triton-operator/revisions").split()
    assert sorted(listed) == sorted(each["revision"] for each in state.candidates.values()), "no half-written revision"


def test_answers_equal_the_framework(happy_object: Happy) -> None:
    compared = happy_object.workbench.compare("classifier", "classifier", "happy:8001", 8)
    assert compared["shapes"] == {"OUTPUT__0": [8, 4]}
    assert compared["worst"]["OUTPUT__0"] < 1e-4


def test_requests_together_run_as_one_batch(happy_object: Happy) -> None:
    counts = json.loads(happy_object.workbench.python("load.py", "classifier", "happy", "400", "32"))
    samples = counts["after"]["samples"] - counts["before"]["samples"]
    executions = counts["after"]["executions"] - counts["before"]["executions"]
    assert samples == 400
    assert 0 < executions < samples / 2, f"{executions:.0f} executions for {samples:.0f} samples"
    assert counts["shapes"] == [[1, 4]]


def test_the_server_pod_holds_a_gpu_and_nothing_it_does_not_need(happy_object: Happy) -> None:
    pod = server_pod(happy_object)
    spec, (server,) = pod["spec"], pod["spec"]["containers"]
    assert server["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert server["resources"]["limits"]["memory"] == "2Gi"
    security = {**spec["securityContext"], **server["securityContext"]}
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] == 1000
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert server["readinessProbe"]["httpGet"]["path"] == "/v2/models/classifier/ready"
    assert server["startupProbe"]
    assert server["livenessProbe"]["httpGet"]["path"] == "/v2/health/live"
    assert server["lifecycle"]["preStop"]
    mounts = {each["mountPath"]: each for each in server["volumeMounts"]}
    revision = happy_object.ready.state.revision
    assert mounts[f"/repository/.triton-operator/revisions/{revision}"]["readOnly"] is True
    assert [each["mountPath"] for each in server["volumeMounts"] if each["name"] == "repository"] == [
        f"/repository/.triton-operator/revisions/{revision}"
    ]
    assert "/dev/shm" in mounts
    command = [*server.get("command", []), *server.get("args", [])]
    assert f"--model-repository=/repository/.triton-operator/revisions/{revision}/models" in command
    assert "--model-control-mode=none" in command


def test_the_server_cannot_change_its_model(happy_object: Happy) -> None:
    pod = server_pod(happy_object)["metadata"]["name"]
    folder = f"/repository/.triton-operator/revisions/{happy_object.ready.state.revision}"
    said = refusal(happy_object.applied.kubectl, pod, "touch", f"{folder}/touched")
    assert "Read-only file system" in said
    assert refusal(happy_object.applied.kubectl, pod, "ls", folder) == ""


def refusal(kubectl: Kubectl, pod: str, *command: str) -> str:
    """What a command in the pod said when it failed; empty where it did not."""
    try:
        kubectl.execute(pod, *command)
    except KubectlError as error:
        return str(error)
    return ""


def test_the_operator_leaves_spec_and_metadata_alone(happy_object: Happy) -> None:
    found = happy_object.applied.kubectl.run("get", "td", "happy", "--output=json", "--show-managed-fields")
    metadata = json.loads(found)["metadata"]
    assert "finalizers" not in metadata
    assert set(metadata["annotations"]) == {"kubectl.kubernetes.io/last-applied-configuration"}
    managers = {each["manager"]: each for each in metadata["managedFields"]}
    own = managers.pop("triton-operator")
    assert own["subresource"] == "status"
    assert set(own["fieldsV1"]) == {"f:status"}
    assert all(name.startswith("kubectl") for name in managers), managers.keys()


def test_a_second_apply_says_unchanged(happy_object: Happy) -> None:
    assert happy_object.applied_again.split() == ["tritondeployment.triton-operator.dev/happy", "unchanged"]


def test_events_tell_the_transitions(happy_object: Happy) -> None:
    kubectl = happy_object.applied.kubectl
    listed = kubectl.items("events", "--field-selector=involvedObject.kind=TritonDeployment,involvedObject.name=happy")
    told = {each["reason"]: each for each in listed}
    assert {"Resolved", "Converted", "Verified", "Selected", "Available", "Ready"} <= told.keys()
    assert all(each["message"] for each in listed)
    assert {each["type"] for each in listed} == {"Normal"}
    assert all(each.get("count", 1) == 1 for each in listed), "an event tells a transition once"
    assert happy_object.ready.time <= time.time()
