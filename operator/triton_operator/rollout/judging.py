"""The verdict on a new revision, by comparison of its requests with those of the previous one. Pure."""

from triton_operator.api.serving import Soak
from triton_operator.rollout import wording
from triton_operator.rollout.traffic import Traffic, Verdict, total


def judge(bounds: Soak, active: dict[str, Traffic], previous: Traffic | None, when: str = "before") -> Verdict:
    """Return the verdict on the new revision: compare its pods with the whole of the previous revision.

    ``active``: the new revision's requests by pod. ``previous``: those of all pods of the previous revision; None: they
    are not known. ``when``: when the previous revision answered them, in words.

    Each figure is computed for all pods together, and for each pod that answered at least ``minRequests`` requests. The
    worst one counts.
    """
    all_pods, min_requests = total(active.values()), bounds.min_requests
    if all_pods.requests < min_requests:
        return wording.few_requests_verdict(all_pods, min_requests)
    judged_traffic = {f"pod {name}": each for name, each in active.items() if each.requests >= min_requests}
    judged_traffic["all pods together"] = all_pods
    pods, most_failing = max(judged_traffic.items(), key=lambda each: each[1].failed_percent)
    errors = wording.error_words(pods, most_failing, bounds.max_error_percent)
    if most_failing.failed_percent > bounds.max_error_percent:
        return wording.many_errors_verdict(errors, bounds.max_error_percent, previous)
    if previous is None or previous.succeeded < min_requests or previous.latency <= 0:
        return wording.latency_not_compared_verdict(errors, previous)
    pods, slowest = max(judged_traffic.items(), key=lambda each: each[1].latency)
    slower_percent = 100 * (slowest.latency / previous.latency - 1)
    latency = wording.latency_words(pods, slowest, previous, when)
    if slower_percent > bounds.max_latency_percent:
        return wording.much_slower_verdict(latency, slower_percent, bounds.max_latency_percent)
    return wording.did_well_verdict(errors, latency)
