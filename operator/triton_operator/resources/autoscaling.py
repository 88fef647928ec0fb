"""KEDA's ScaledObject, which scales a TritonDeployment by the load on its active revision. Pure.

The measured figures are constants of the queries and not series of the operator, so scaling goes on while no operator
runs. Each query gives a percentage, because KEDA cuts the target of a trigger to a whole number when it falls back.
"""

import json
from dataclasses import dataclass
from typing import Any

from triton_operator import names
from triton_operator.api.serving import Autoscaling
from triton_operator.context import Context

WINDOW_SECONDS = 120
"""The window of the rates. It holds two samples if Prometheus scrapes each minute, its default."""
PAUSED_ANNOTATION = "autoscaling.keda.sh/paused"
FAILURES_BEFORE_FALLBACK = 3
"""Until then the HorizontalPodAutoscaler has no value, and leaves the replicas alone as well."""


@dataclass(frozen=True)
class Saturated:
    """The load at which one replica of a revision is saturated."""

    revision: str
    concurrency: int
    """Requests in flight."""
    throughput: str
    """Inferences (samples) per second, a decimal string."""


def scaled_object(context: Context, autoscaling: Autoscaling, at: Saturated, *, paused: bool) -> dict[str, Any]:
    """The ScaledObject, whose name is the TritonDeployment's. ``paused``: the replicas stay as they are."""
    series = (
        f'{{namespace="{context.namespace}",object="{context.name}",'
        f"model={_quoted(context.served_name)},revision={_quoted(at.revision)}}}[{WINDOW_SECONDS}s]"
    )
    # By Little's law the time that all requests spend in the servers, per second, is the number of those in flight.
    # nv_inference_pending_request_count leaves out those that a backend executes, and an ensemble has none.
    in_flight = f"sum(rate(nv_inference_request_duration_us{series})) / 1e6"
    samples = f"sum(rate(nv_inference_count{series}))"
    metadata = context.metadata(context.name, "autoscaling")
    if paused:
        metadata["annotations"] = {**metadata.get("annotations", {}), PAUSED_ANNOTATION: "true"}
    return {
        "apiVersion": names.KEDA_API_VERSION,
        "kind": names.SCALED_OBJECT,
        "metadata": metadata,
        "spec": {
            "scaleTargetRef": {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": context.name},
            "minReplicaCount": autoscaling.min_replicas,
            "maxReplicaCount": autoscaling.max_replicas,
            "fallback": {
                "failureThreshold": FAILURES_BEFORE_FALLBACK,
                "behavior": "currentReplicas",
                # The field is required; the behavior has no use for it.
                "replicas": autoscaling.min_replicas,
            },
            "triggers": [
                _trigger(context, autoscaling, "requests-in-flight", f"100 * {in_flight} / {at.concurrency}"),
                _trigger(context, autoscaling, "samples-per-second", f"100 * {samples} / {at.throughput}"),
            ],
        },
    }


def _quoted(value: str) -> str:
    """A label's value as PromQL has it, so that no value ends the query. JSON escapes the same characters."""
    return json.dumps(value, ensure_ascii=False)


def _trigger(context: Context, autoscaling: Autoscaling, name: str, query: str) -> dict[str, Any]:
    """A trigger by a percentage of one replica's saturation. Of several, the one that asks for most replicas counts."""
    return {
        "type": "prometheus",
        "name": name,
        "metricType": "AverageValue",
        "metadata": {
            "serverAddress": context.settings.prometheus_address,
            "query": query,
            "threshold": str(100 - autoscaling.headroom_percent),
            "ignoreNullValues": "false",
        },
    }
