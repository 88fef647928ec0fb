"""`python3 -m bench.ramp`: the real KEDA scales an object by its measured saturation while a real load rises and falls.

One server pod gets a quarter of a core, so that several fit on a small machine and one is saturated soon. The load
rises to twice what one replica was measured to do, stays, falls, and stays low until the replicas are gone.
"""

import json
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy
from onnx import TensorProto, helper, numpy_helper

from bench.machine import cpu_model
from bench.ramp.load import Answered, Leg, Load, arrivals
from bench.ramp.plot import PICTURE, Sample, svg
from hack.deploy.command import ROOT, CommandError, TargetCluster
from hack.deploy.environment import set_up
from hack.deploy.install import install
from hack.devcluster.paths import ClusterError
from tests.apiserver.operator_process import rendered
from tests.integrations.keda import Keda
from tests.observe.prometheus import Prometheus, pod_scrape

NAMESPACE, NAME, CLAIM = "ramp", "pictures", "models"
RESULTS = ROOT / "bench/results"
BUDGET_MS = 600
HEADROOM_PERCENT = 50
MAX_REPLICAS = 4
WIDTH, LAYERS = 1024, 10
EVERY_SECONDS = 5.0
WINDOW_SECONDS = 20.0
"""The time that a sample's p99 and rate look back."""
LOW, HIGH = 0.25, 2.0
"""The lowest and the highest load, as parts of what one replica was measured to do."""
SECONDS = (60.0, 420.0, 120.0, 60.0, 480.0)
"""Low, rising, high, falling, low again: KEDA's pods go five minutes after the load."""
READY_SECONDS = 900

Body = dict[str, Any]


def main() -> int:
    """Run the ramp, print what happened, and write the figures and the picture; return the exit status."""
    try:
        cluster = set_up()
        with tempfile.TemporaryDirectory() as folder:
            found = run(cluster, Path(folder))
    except (CommandError, ClusterError, AssertionError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    path = RESULTS / f"ramp-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps({"cpu": cpu_model(), **found}, indent=1) + "\n", encoding="utf-8")
    PICTURE.write_text(svg([Sample(**each) for each in found["samples"]], found["threshold"], BUDGET_MS))
    print(json.dumps({name: value for name, value in found.items() if name != "samples"}, indent=1))
    print(f"raw figures: {path.relative_to(ROOT)}; picture: {PICTURE.relative_to(ROOT)}")
    return 0


def run(cluster: TargetCluster, folder: Path) -> Body:
    """Return the figures of one ramp. Raises CommandError or AssertionError."""
    cluster.run("kubectl", "delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=180s")
    cluster.run("kubectl", "create", "namespace", NAMESPACE)
    monitors = [each for each in rendered("--set", "servers.podMonitor.enabled=true") if each["kind"] == "PodMonitor"]
    scrapes = [pod_scrape(each, cluster.kubeconfig) for each in monitors]
    for each in ("prometheus", "keda"):
        (folder / each).mkdir()
    with Prometheus(folder / "prometheus", scrapes, []) as prometheus, Keda(cluster, folder / "keda"):
        install(cluster.kubeconfig, {"autoscaling": {"prometheusAddress": prometheus.url}})
        try:
            return measure(cluster, folder)
        finally:
            install(cluster.kubeconfig)


def measure(cluster: TargetCluster, folder: Path) -> Body:
    """Serve the model, send the load, and return what was seen."""
    where = ("--namespace", NAMESPACE)
    model = folder / f"{NAME}.onnx"
    model.write_bytes(graph())
    plugin = ("python3", "-m", "triton_plugin", "push", str(model), f"pvc://{CLAIM}/{NAME}", "--size", "1Gi")
    cluster.run(*plugin, *where)
    cluster.run("kubectl", "apply", *where, "--filename", "-", stdin=json.dumps(deployment()))
    ready = ("--for=condition=Ready", f"td/{NAME}", f"--timeout={READY_SECONDS}s")
    cluster.run("kubectl", "wait", *where, *ready, timeout=READY_SECONDS + 60)
    scaling = ("--for=condition=Autoscaling", f"td/{NAME}", "--timeout=300s")
    cluster.run("kubectl", "wait", *where, *scaling, timeout=360)
    status = cluster.get("td", NAME, *where)["status"]
    saturation = status["performance"]["saturation"]
    capacity = float(saturation["throughput"])
    low, high = LOW * capacity, HIGH * capacity
    levels = ((low, low), (low, high), (high, high), (high, low), (low, low))
    legs = [Leg(seconds, *level) for seconds, level in zip(SECONDS, levels, strict=True)]
    address = cluster.get("service", NAME, *where)["spec"]["clusterIP"]
    tensor = {"name": "x", "shape": [1, WIDTH], "datatype": "FP32", "data": [0.5] * WIDTH}
    load = Load(f"{address}:8000", f"/v2/models/{NAME}/infer", json.dumps({"inputs": [tensor]}).encode())
    sender = threading.Thread(target=load.send, args=(arrivals(legs),))
    start, samples = time.monotonic(), []
    sender.start()
    while sender.is_alive():
        time.sleep(EVERY_SECONDS)
        samples.append(sample(cluster, load.answered, time.monotonic() - start))
        print(samples[-1], flush=True)
    sender.join()
    # What the replicas do after the load is the autoscaler's.
    answered = load.answered
    return {
        "capacity": capacity,
        "saturation": saturation,
        "threshold": capacity * (100 - HEADROOM_PERCENT) / 100,
        "budgetMilliseconds": BUDGET_MS,
        "requests": len(answered),
        "failed": sum(not each.ok for each in answered),
        "late": sum(each.seconds * 1000 > BUDGET_MS for each in answered),
        "replicas": sorted({each.replicas for each in samples}),
        "samples": [asdict(each) for each in samples],
    }


def sample(cluster: TargetCluster, answered: list[Answered], now: float) -> Sample:
    """Return what is seen now."""
    replicas = cluster.get("td", NAME, "--namespace", NAMESPACE)["status"]["serving"]["replicas"]
    recent = [each for each in answered if each.at > now - WINDOW_SECONDS]
    latencies = [each.seconds * 1000 for each in recent if each.ok]
    p99 = float(numpy.percentile(latencies, 99)) if latencies else 0.0
    rate = len(recent) / min(now, WINDOW_SECONDS)
    return Sample(round(now, 1), round(rate, 2), replicas, round(p99, 1), sum(not each.ok for each in answered))


def deployment() -> Body:
    """The object: a quarter of a core for each replica, and KEDA."""
    quarter = {"cpu": "250m"}
    return {
        "apiVersion": "triton-operator.dev/v1alpha1",
        "kind": "TritonDeployment",
        "metadata": {"name": NAME},
        "spec": {
            "source": {"uri": f"pvc://{CLAIM}/{NAME}"},
            "models": [
                {
                    "name": NAME,
                    "path": f"{NAME}.onnx",
                    "candidates": [{"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}],
                }
            ],
            "performance": {"offline": {"batchSizes": [1]}},
            "selection": {
                "scenario": "Online",
                "objectives": [{"metric": "Throughput"}],
                "constraints": {"p99Latency": f"{BUDGET_MS}ms"},
            },
            "serving": {
                "pod": {"resources": {"requests": quarter, "limits": quarter}},
                "autoscaling": {"maxReplicas": MAX_REPLICAS, "headroomPercent": HEADROOM_PERCENT},
            },
        },
    }


def graph() -> bytes:
    """A deep network that multiplies by the same matrix again and again: milliseconds of one core, and a small file."""
    weights = numpy.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(numpy.float32) / numpy.sqrt(WIDTH)
    nodes, last = [], "x"
    for layer in range(LAYERS):
        end = "y" if layer == LAYERS - 1 else f"h{layer}"
        nodes += [
            helper.make_node("MatMul", [last, "weights"], [f"m{layer}"]),
            helper.make_node("Tanh", [f"m{layer}"], [end]),
        ]
        last = end
    x, y = (helper.make_tensor_value_info(each, TensorProto.FLOAT, ["batch", WIDTH]) for each in "xy")
    made = helper.make_graph(nodes, "deep", [x], [y], [numpy_helper.from_array(weights, "weights")])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


if __name__ == "__main__":
    sys.exit(main())
