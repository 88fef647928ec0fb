"""Where the time of a request to an ensemble goes, in words. Pure."""

from collections.abc import Sequence

from triton_operator.api.measured_status import StepStatus

MEANING = (
    "Mean times of a request in each model of the ensemble, at the load of the solution overview's figures. The shares"
    " are of the average latency; the rest is the client's, the network's, and the server's between the models. A model"
    " that a Python step asks by itself has no line: it is part of the step's compute time."
)


def lines(steps: Sequence[StepStatus]) -> list[str]:
    """Return a line for each model: its share of the average latency, its time in the queue, and computing."""
    return [
        f"{each.model}: {each.share_percent} % of the average latency"
        f" (queue {each.queue_time}, compute {each.compute_time})"
        for each in steps
    ]
