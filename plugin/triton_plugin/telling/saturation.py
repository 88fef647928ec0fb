"""The saturation of one replica, in words. Pure."""

from triton_operator.api.measured_status import SaturationStatus

LIMITS = {
    "Constraint": "a higher concurrency breaks a latency constraint",
    "Plateau": "a higher concurrency brings less than 5 % more",
    "RangeEnd": "the sweep ended before the server was saturated; to find the limit, set"
    " performance.online.concurrency without an end",
}


def sentence(saturation: SaturationStatus) -> str:
    """Return the throughput of one replica, what limits it, and which request rate it sustains, as sentences."""
    if saturation.concurrency is None:
        text = "One replica meets the latency constraints at no concurrency that was measured."
    else:
        least = "at least " if saturation.lower_bound else ""
        limit = LIMITS[saturation.ended]
        if saturation.lower_bound and saturation.ended != "RangeEnd":
            limit = "the client was the bottleneck; give it more CPU with conversion.pod.resources"
        text = (
            f"One replica does {least}{saturation.throughput} inferences/s at concurrency {saturation.concurrency},"
            f" with p99Latency {saturation.p99_latency}: {limit}."
        )
    if saturation.sustained_request_rate is not None:
        text += f" It sustains {saturation.sustained_request_rate} requests/s."
    return text
