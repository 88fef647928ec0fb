"""`python3 -m bench.ramp [keda | hpa]`: an object scales while a real load rises and falls.

`keda`: the real KEDA, by the measured saturation, as `serving.autoscaling` has it. `hpa`: a HorizontalPodAutoscaler
of a user's own, by the CPU, with the real metrics-server.

One server pod gets a quarter of a core, so that several fit on a small machine and one is saturated soon. The load
rises to twice what one replica was measured to do, stays, falls, and stays low until the replicas are gone.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy

from bench.alerting import fired, rules, scrapes
from bench.deep_network import WIDTH, over_features
from bench.machine import cpu_model
from bench.place import Place
from bench.ramp.load import Answered, Leg, Load, arrivals
from bench.ramp.plot import Sample, svg
from hack.deploy.command import ROOT, CommandError, TargetCluster
from hack.deploy.environment import set_up
from hack.deploy.install import install
from hack.devcluster.paths import ClusterError
from tests.integrations.keda import Keda
from tests.integrations.metrics_server import MetricsServer
from tests.observe.prometheus import Prometheus

NAMESPACE, NAME, CLAIM = "ramp", "pictures", "models"
RESULTS = ROOT / "bench/results"
BUDGET_MS = 600
HEADROOM_PERCENT = 60
MAX_REPLICAS = 5
LAYERS = 600
EVERY_SECONDS = 5.0
WINDOW_SECONDS = 20.0
"""The time that a sample's p99 and rate look back."""
LOW, HIGH = 0.25, 2.0
"""The lowest and the highest load, as parts of what one replica was measured to do."""
SECONDS = (60.0, 480.0, 60.0, 30.0, 450.0)
"""Low, rising, high, falling, low again: KEDA's pods go five minutes after the load."""
READY_SECONDS = 900

Body = dict[str, Any]

BY_SATURATION: Body = {"autoscaling": {"maxReplicas": MAX_REPLICAS, "headroomPercent": HEADROOM_PERCENT}}


def main() -> int:
    """Run the ramp, print what happened, and write the figures and the picture; return the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m bench.ramp", description=__doc__)
    parser.add_argument("autoscaler", nargs="?", choices=("keda", "hpa"), default="keda")
    autoscaler = parser.parse_args().autoscaler
    try:
        cluster = set_up()
        with tempfile.TemporaryDirectory() as folder:
            found = run(cluster, Path(folder), autoscaler)
    except (CommandError, ClusterError, AssertionError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    path = RESULTS / f"ramp-{autoscaler}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps({"cpu": cpu_model(), **found}, indent=1) + "\n", encoding="utf-8")
    picture = ROOT / f"docs/scaling-ramp-{autoscaler}.svg"
    picture.write_text(svg([Sample(**each) for each in found["samples"]], found["threshold"], BUDGET_MS))
    print(json.dumps({name: value for name, value in found.items() if name != "samples"}, indent=1))
    print(f"raw figures: {path.relative_to(ROOT)}; picture: {picture.relative_to(ROOT)}")
    return 0


def run(cluster: TargetCluster, folder: Path, autoscaler: str) -> Body:
    """Return the figures of one ramp. Raises CommandError or AssertionError."""
    place = Place.fresh(cluster, NAMESPACE)
    for each in ("prometheus", "autoscaler"):
        (folder / each).mkdir()
    with ExitStack() as stack:
        prometheus = stack.enter_context(Prometheus(folder / "prometheus", scrapes(cluster.kubeconfig), rules()))
        if autoscaler == "keda":
            stack.enter_context(Keda(cluster, folder / "autoscaler"))
            install(cluster.kubeconfig, {"autoscaling": {"prometheusAddress": prometheus.url}})
            stack.callback(install, cluster.kubeconfig)
            serve(place, folder, BY_SATURATION)
            place.wait(f"td/{NAME}", "condition=Autoscaling", 300)
        else:
            stack.enter_context(MetricsServer(cluster, folder / "autoscaler"))
            serve(place, folder, {})
            place.apply(by_cpu())
            place.wait(f"hpa/{NAME}", "condition=ScalingActive", 300)
        began = time.time()
        return {**measure(place), "alerts": fired(prometheus, began, time.time())}


def serve(place: Place, folder: Path, serving: Body) -> None:
    """Push the model, apply the object, and wait until it is ready."""
    model = folder / f"{NAME}.onnx"
    model.write_bytes(over_features(LAYERS))
    place.push(model, CLAIM, NAME)
    place.apply(deployment(serving))
    place.wait(f"td/{NAME}", "condition=Ready", READY_SECONDS)


def measure(place: Place) -> Body:
    """Send the load, and return what was seen."""
    saturation = place.get("td", NAME)["status"]["performance"]["saturation"]
    capacity = float(saturation["throughput"])
    low, high = LOW * capacity, HIGH * capacity
    levels = ((low, low), (low, high), (high, high), (high, low), (low, low))
    legs = [Leg(seconds, *level) for seconds, level in zip(SECONDS, levels, strict=True)]
    tensor = {"name": "x", "shape": [1, WIDTH], "datatype": "FP32", "data": [0.5] * WIDTH}
    load = Load(place.http_address(NAME), f"/v2/models/{NAME}/infer", [json.dumps({"inputs": [tensor]}).encode()])
    sender = threading.Thread(target=load.send, args=(arrivals(legs),))
    start, samples = time.monotonic(), []
    sender.start()
    while sender.is_alive():
        time.sleep(EVERY_SECONDS)
        samples.append(sample(place, load.answered, time.monotonic() - start))
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


def sample(place: Place, answered: list[Answered], now: float) -> Sample:
    """Return what is seen now."""
    replicas = place.get("td", NAME)["status"]["serving"]["replicas"]
    recent = [each for each in answered if each.at > now - WINDOW_SECONDS]
    latencies = [each.seconds * 1000 for each in recent if each.ok]
    p99 = float(numpy.percentile(latencies, 99)) if latencies else 0.0
    rate = len(recent) / min(now, WINDOW_SECONDS)
    return Sample(round(now, 1), round(rate, 2), replicas, round(p99, 1), sum(not each.ok for each in answered))


def by_cpu() -> Body:
    """A HorizontalPodAutoscaler as docs/scaling.md has it, with the headroom of the other run."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": NAME},
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "triton-operator.dev/v1alpha1",
                "kind": "TritonDeployment",
                "name": NAME,
            },
            "minReplicas": 1,
            "maxReplicas": MAX_REPLICAS,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 100 - HEADROOM_PERCENT},
                    },
                }
            ],
        },
    }


def deployment(serving: Body) -> Body:
    """The object: a quarter of a core for each replica, and what else ``serving`` says."""
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
                "objectives": [{"metric": "throughput"}],
                "constraints": {"p99Latency": f"{BUDGET_MS}ms"},
            },
            "serving": {
                "pod": {"resources": {"requests": quarter, "limits": quarter}},
                **serving,
            },
        },
    }


if __name__ == "__main__":
    sys.exit(main())
