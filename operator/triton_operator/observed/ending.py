"""How the containers of a pod ended, and why, in their own last words. Pure."""

import signal
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from triton_converters.contract.document import DocumentError
from triton_converters.contract.envelope import read_again
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import printable
from triton_operator.observed.events import about
from triton_operator.observed.pod import CHECK, SERVE, SERVER, End, PodView
from triton_operator.observed.refusal import could_not_start, is_warning, refusal
from triton_operator.observed.sentences import is_of_incoming, lacks_directory
from triton_operator.observed.trouble import Trouble, waits

OOM_KILLED = "OOMKilled"


def ending(pod: PodView, container: str, end: End, crashed: Reason, sentence: str = "") -> Trouble:
    """Return why a container ended, with its last message; the reason is ``crashed`` unless a better one is known.

    ``sentence``: what decides in the last message; it comes first, so that no limit cuts it.
    """
    where = f"pod {pod.name}, container {container}"
    if end.reason == OOM_KILLED:
        field = "spec.serving.pod.resources" if container == SERVER else "spec.conversion.pod.resources"
        limit = f" of {pod.memory_limits[container]}" if container in pod.memory_limits else ""
        return Trouble(Reason.OUT_OF_MEMORY, f"{where} was killed at its memory limit{limit}; raise it in {field}")
    if pod.is_evicted:
        return Trouble(Reason.EVICTED, eviction_words(pod))
    code = f"{where} ended with {_exit_code(end)}"
    said = (line.strip() for line in printable(end.message).splitlines())
    # Whatever a server only warns of, such as a CPU without CUDA, it goes on; it is not why it ended.
    lines = [line for line in said if line and not (container == SERVER and is_warning(line))]
    if sentence:
        others = " | ".join(line for line in lines[-2:] if sentence not in line)[-300:]
        return Trouble(crashed, f"{sentence}; {code}{': ' if others else ''}{others}")
    words = " | ".join(lines[-8:])[-700:]
    return Trouble(crashed, f"{code}: {words}" if words else f"{code} and left no message; see its log")


def _exit_code(end: End) -> str:
    """Return the exit code in words, with the signal that it stands for, if any."""
    names = {128 + each: each.name for each in signal.Signals}
    found = f" ({names[end.exit_code]})" if end.exit_code in names else ""
    return f"exit code {end.exit_code}{found}"


def eviction_words(pod: PodView) -> str:
    """Return why the kubelet ended an evicted pod, in its own words, and what bounds it."""
    words = printable(pod.message).strip().removesuffix(".")
    advice = " (spec.repository.volumeClaimTemplate bounds that volume)" if is_of_incoming(words) else ""
    return f"the kubelet ended pod {pod.name}: {words}{advice}"


def server_crash(pod: PodView) -> Trouble | None:
    """Return how tritonserver ended by itself, so that the kubelet had to start it again; None if it did not.

    Only the state before a restart counts, because a server also ends, with any exit code, when its pod ends.
    """
    for server in pod.servers:
        end = server.last_end
        if end is not None and server.restarts > 0:
            found = refusal(end.message)
            if found is None or end.reason == OOM_KILLED:
                return ending(pod, SERVER, end, Reason.SERVER_CRASHED)
            trouble = ending(pod, SERVER, end, found.reason, found.sentence)
            return replace(trouble, message=trouble.message + found.advice)
    return None


def ended_as_it_started(pod: PodView) -> bool:
    """Whether tritonserver ended before it was ready, as its last words before a restart say."""
    return any(each.last_end is not None and could_not_start(each.last_end.message) for each in pod.servers)


def revision_trouble(pod: PodView, revision: str) -> Trouble | None:
    """Return why the container that looks at the revision lets no server start; None if it does, or has not ended."""
    for container in pod.every:
        if container.name != CHECK:
            continue
        waiting = container.waiting
        if waiting is not None and lacks_directory(waiting.message):
            words = f"pod {pod.name}: revision {revision} is no longer on the repository claim ({waiting.message})"
            return Trouble(Reason.RESULT_MISSING, words)
        end = container.end or (container.last_end if waiting is not None else None)
        if end is not None and end.exit_code != 0:
            return _checked(end, revision) or ending(pod, CHECK, end, Reason.CRASHED)
    return None


def _checked(end: End, revision: str) -> Trouble | None:
    """Return what the container said about its own revision."""
    try:
        outcome = read_again(end.message)
    except DocumentError:
        return None
    if (outcome.stage, outcome.key) != (SERVE, revision) or outcome.reason is None:
        return None
    return Trouble(outcome.reason, outcome.message)


def last_seen(pod: PodView, main: str, events: Iterable[Mapping[str, Any]]) -> str:
    """Return what a pod that has ended waited for, or else said last; empty if nothing is known.

    ``main``: see `PodView.in_turn`.
    """
    if trouble := server_crash(pod) or waits(pod, events):
        return trouble.message
    for container in reversed(pod.in_turn(main)):
        end = container.end
        # The kubelet also writes an end, with words of its own, for a container that never started.
        if end is not None and end.message and end.reason != "ContainerStatusUnknown":
            return ending(pod, container.name, end, Reason.CRASHED).message
    # What the scheduler said is history: a node took the pod.
    told = (event for event in about(pod.uid, pod.created_at, events) if event.get("reason") != "FailedScheduling")
    return next((f"pod {pod.name}: {event.get('message', '')}" for event in told), "")
