"""Whether a new revision does as well as the previous one, by what both answered. Pure."""

from triton_operator.api.serving import Soak
from triton_operator.rollout import wording
from triton_operator.rollout.traffic import Traffic, Verdict, total


def judge(bounds: Soak, active: dict[str, Traffic], previous: Traffic | None, at: str = "before") -> Verdict:
    """Compare the new revision's pods with the previous revision, as a whole; None: its requests are not known.

    ``at``: when the previous revision answered its requests, in words.

    Every figure is one of at least ``minRequests`` requests: of all pods together, and of each pod that has so
    many. The worst one counts.
    """
    whole, least = total(active.values()), bounds.min_requests
    if whole.requests < least:
        return wording.few_requests(whole, least)
    judged = {f"pod {name}": each for name, each in active.items() if each.requests >= least}
    judged["all pods together"] = whole
    where, worst = max(judged.items(), key=lambda each: each[1].failed_percent)
    errors = wording.errors(where, worst)
    if worst.failed_percent > bounds.max_error_percent:
        return wording.many_errors(errors, bounds.max_error_percent, previous)
    if previous is None or previous.succeeded < least or previous.latency <= 0:
        return wording.latency_not_compared(errors, previous)
    where, slowest = max(judged.items(), key=lambda each: each[1].latency)
    slower = 100 * (slowest.latency / previous.latency - 1)
    latency = wording.latency(where, slowest, previous, at)
    if slower > bounds.max_latency_percent:
        return wording.much_slower(latency, slower, bounds.max_latency_percent)
    return wording.did_well(errors, latency)
