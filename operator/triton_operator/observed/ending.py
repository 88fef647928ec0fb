"""Reads how and why the containers of a pod ended, from their exit codes and last messages. Pure."""

import signal
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from triton_converters.contract.document import DocumentError
from triton_converters.contract.envelope import read_again
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import printable
from triton_operator.observed.events import events_about
from triton_operator.observed.pod import CHECK, SERVE, SERVER, End, PodView
from triton_operator.observed.refusal import could_not_start, is_warning, refusal
from triton_operator.observed.sentences import is_of_incoming, lacks_directory
from triton_operator.observed.trouble import Trouble, start_trouble

OOM_KILLED = "OOMKilled"


def ending_trouble(pod: PodView, container: str, end: End, crashed: Reason, sentence: str = "") -> Trouble:
    """Return why a container ended, with its last message; the reason is ``crashed`` unless a better one is known.

    ``sentence``: what decides in the last message; it comes first, so that no limit cuts it.
    """
    where = f"pod {pod.name}, container {container}"
    if end.reason == OOM_KILLED:
        field = "spec.serving.pod.resources" if container == SERVER else "spec.conversion.pod.resources"
        limit = f" of {pod.memory_limits[container]}" if container in pod.memory_limits else ""
        return Trouble(Reason.OUT_OF_MEMORY, f"{where} was killed at its memory limit{limit}; raise it in {field}")
    if pod.is_evicted:
        return Trouble(Reason.EVICTED, eviction_text(pod))
    exit_text = f"{where} ended with {_exit_code(end)}"
    all_lines = (line.strip() for line in printable(end.message).splitlines())
    # A warning, such as that of a CPU without CUDA, is not why a server ended: it goes on after one.
    lines = [line for line in all_lines if line and not (container == SERVER and is_warning(line))]
    if sentence:
        others = " | ".join(line for line in lines[-2:] if sentence not in line)[-300:]
        return Trouble(crashed, f"{sentence}; {exit_text}{': ' if others else ''}{others}")
    last_words = " | ".join(lines[-8:])[-700:]
    return Trouble(
        crashed, f"{exit_text}: {last_words}" if last_words else f"{exit_text} and left no message; see its log"
    )


def _exit_code(end: End) -> str:
    """Return the exit code in words, with the signal that it stands for, if any."""
    names = {128 + each: each.name for each in signal.Signals}
    signal_name = f" ({names[end.exit_code]})" if end.exit_code in names else ""
    return f"exit code {end.exit_code}{signal_name}"


def eviction_text(pod: PodView) -> str:
    """Return why the kubelet ended an evicted pod, in its own words, and what bounds it."""
    message = printable(pod.message).strip().removesuffix(".")
    advice = " (spec.repository.volumeClaimTemplate bounds that volume)" if is_of_incoming(message) else ""
    return f"the kubelet ended pod {pod.name}: {message}{advice}"


def server_crash(pod: PodView) -> Trouble | None:
    """Return how tritonserver ended by itself, so that the kubelet had to start it again; None if it did not.

    Only the state before a restart counts, because a server also ends, with any exit code, when its pod ends.
    """
    for server in pod.servers:
        end = server.last_end
        if end is not None and server.restarts > 0:
            model_refusal = refusal(end.message)
            if model_refusal is None or end.reason == OOM_KILLED:
                return ending_trouble(pod, SERVER, end, Reason.SERVER_CRASHED)
            trouble = ending_trouble(pod, SERVER, end, model_refusal.reason, model_refusal.sentence)
            return replace(trouble, message=trouble.message + model_refusal.advice)
    return None


def server_could_not_start(pod: PodView) -> bool:
    """Whether tritonserver ended before it was ready, as its last words before a restart say."""
    return any(each.last_end is not None and could_not_start(each.last_end.message) for each in pod.servers)


def revision_trouble(pod: PodView, revision: str) -> Trouble | None:
    """Return why the container that looks at the revision lets no server start; None if it does, or has not ended."""
    for container in pod.all_containers:
        if container.name != CHECK:
            continue
        waiting = container.waiting
        if waiting is not None and lacks_directory(waiting.message):
            message = f"pod {pod.name}: revision {revision} is no longer on the repository claim ({waiting.message})"
            return Trouble(Reason.RESULT_MISSING, message)
        end = container.end or (container.last_end if waiting is not None else None)
        if end is not None and end.exit_code != 0:
            return _check_failure(end, revision) or ending_trouble(pod, CHECK, end, Reason.CRASHED)
    return None


def _check_failure(end: End, revision: str) -> Trouble | None:
    """Return what the container said about its own revision."""
    try:
        outcome = read_again(end.message)
    except DocumentError:
        return None
    if (outcome.stage, outcome.key) != (SERVE, revision) or outcome.reason is None:
        return None
    return Trouble(outcome.reason, outcome.message)


def last_message(pod: PodView, main: str, events: Iterable[Mapping[str, Any]]) -> str:
    """Return what a pod that has ended was waiting for, or else its last message; empty if neither is known.

    ``main``: see `PodView.containers_in_turn`.
    """
    if trouble := server_crash(pod) or start_trouble(pod, events):
        return trouble.message
    for container in reversed(pod.containers_in_turn(main)):
        end = container.end
        # The kubelet also writes an end, with words of its own, for a container that never started.
        if end is not None and end.message and end.reason != "ContainerStatusUnknown":
            return ending_trouble(pod, container.name, end, Reason.CRASHED).message
    # What the scheduler said is history: a node took the pod.
    pod_events = events_about(pod.uid, pod.created_at, events)
    later = (event for event in pod_events if event.get("reason") != "FailedScheduling")
    return next((f"pod {pod.name}: {event.get('message', '')}" for event in later), "")
