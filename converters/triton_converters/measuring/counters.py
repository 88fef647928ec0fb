"""The requests that a server has answered, by its metrics."""

import math
import re

from triton_converters.contract.results import Counters

LARGEST = 2**53
"""The largest count that is believed: Triton counts in floating point, which is exact up to here."""
CANCELED = "CANCELED"
"""The reason of a failure that is the client's: it did not wait for the answer."""
TWICE = (None, "OTHER")
"""The reasons under which Triton counts a failed request to an ensemble twice (seen with server 2.51)."""
_SAMPLE = re.compile(
    r"^nv_inference_request_(success|failure|duration_us)\{([^}\n]{1,1000})\} (\S{1,40})\r?$", re.MULTILINE
)
_LABEL = re.compile(r'([a-z_]{1,40})="([^"]*)"')


def counters(metrics: str, pod: str, model: str) -> Counters:
    """Return the counters of a model, over all of its versions and GPUs, from Triton's metrics.

    A server with several models serves an ensemble, which is the model asked for. Of its failed requests Triton counts
    each twice under the ensemble's name; what the steps count is not read. The author of a model decides what its
    server says. Raises ValueError if that has no such counters, or impossible
    ones.
    """
    found: dict[str, float] = {}
    models = set()
    twice = 0.0
    for kind, text, figure in _SAMPLE.findall(metrics):
        labels = dict(_LABEL.findall(text))
        models.add(labels.get("model"))
        if labels.get("model") == model and labels.get("reason") != CANCELED:
            found[kind] = found.get(kind, 0.0) + _count(figure)
            twice += _count(figure) if kind == "failure" and labels.get("reason") in TWICE else 0.0
    if "success" not in found or "duration_us" not in found:
        raise ValueError(f"they have no counters of model {model}")
    if max(found.values()) > LARGEST:
        raise ValueError(f"a counter of model {model} is larger than {LARGEST}")
    counted_again = int(twice) // 2 if len(models) > 1 else 0
    failed = int(found.get("failure", 0.0)) - counted_again
    return Counters(pod, int(found["success"]), failed, int(found["duration_us"]))


def _count(figure: str) -> float:
    count = float(figure)
    if not (math.isfinite(count) and count >= 0):
        raise ValueError(f"a counter is {count}")
    return count
