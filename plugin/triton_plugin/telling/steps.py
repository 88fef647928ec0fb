"""Where the time of a request to an ensemble goes, in words. Pure."""

from collections.abc import Sequence

from triton_operator.api.measured_status import StepStatus

REST = "the client, the network, and the server between the models"
MEANING = (
    "Mean times of a request in each model of the ensemble, at the load of the solution overview's figures. The shares"
    " are of the average latency. A model that a Python step asks by"
    " itself has no line: it is part of the step's compute time."
)


def lines(steps: Sequence[StepStatus]) -> list[str]:
    """Return a line for each model: its share of the average latency, in the queue and computing; then the rest."""
    models = [
        f"{each.model}: {each.share_percent} % of the average latency"
        f" (queue {each.queue_time}, compute {each.compute_time})"
        for each in steps
    ]
    return [*models, *(f"the rest: {share} % ({REST})" for share in rest(steps))]


def rest(steps: Sequence[StepStatus]) -> list[str]:
    """Return the share that no model has; empty: there is none, as if models run at once."""
    share = 100 - sum(float(each.share_percent or "nan") for each in steps)
    return [f"{share:.1f}"] if 0.05 <= share <= 100 else []
