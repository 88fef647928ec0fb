"""Watches one object until it is ready, up to date and not soaked any more, or stalled, or waiting for its user."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from triton_operator.api.status import TritonDeploymentStatus
from triton_plugin.errors import SubjectError
from triton_plugin.exits import Exit
from triton_plugin.reading.cluster import MissingError
from triton_plugin.reading.job_log import JobLog
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling import tables
from triton_plugin.telling.explain import explain
from triton_plugin.telling.history import figures_before
from triton_plugin.telling.progress import Display, overdue
from triton_plugin.telling.remaining import words_left

POLL_SECONDS = 1.0
LOG_SECONDS = 3.0
"""Time between two reads of a Job's log: no point takes less."""
LOST_SECONDS = 60.0
"""How long the API server may be unreachable before that is an error."""


@dataclass(frozen=True)
class Reads:
    """What is asked of the cluster about one object."""

    body: Callable[[], dict[str, Any]]
    """Returns the object. Raises SubjectError."""
    log: Callable[[], JobLog]
    """Returns the log of the Job that measures, or that did so last."""
    results: Callable[[], dict[str, Any] | None]
    """Returns the ConfigMap with the results, which tells of the revisions before, or None. Raises SubjectError."""
    options: Sequence[str] = ()
    """The options of kubectl that name the cluster."""


def watch(
    reads: Reads,
    console: Console,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    timeout: float | None = None,
) -> Exit:
    """Show progress, then the outcome once the object is ready, stalled or waiting for its user. Return which it is.

    An object whose new revision is soaked, or that works on something newer than the active revision, is not done yet.

    ``timeout``: seconds after which it ends with TIMED_OUT; None: never.
    Raises MissingError, and any other SubjectError that is the first answer or lasts longer than LOST_SECONDS.
    """
    start = clock()
    answered_at = start
    logs, log_read_at = _Logs(), start - LOG_SECONDS
    body = reads.body()
    subject = parse(body, None, reads.options)
    with Display(console) as display:
        while True:
            is_ready = _is_ready(subject)
            is_waiting = subject.is_paused or subject.is_held
            is_late = timeout is not None and clock() - start >= timeout
            is_over = is_ready or subject.stop_condition is not None or is_waiting or is_late
            # At the end, the last measurement may be newer than the last look.
            is_due = logs.last != JobLog() if is_over else clock() - log_read_at >= LOG_SECONDS
            if is_due:
                verdict, log_read_at = logs.look(reads), clock()
                display.tell(log_read_at - start, verdict)
            status = _present(subject)
            rest = "" if is_over else words_left(subject.spec, status, [*logs.of_pods.values()])
            display.show(status, clock() - start, logs.last.words, rest)
            if is_over:
                break
            sleep(POLL_SECONDS)
            try:
                body = reads.body()
                subject = parse(body, None, reads.options)
                answered_at = clock()
            except MissingError:
                raise
            except SubjectError:
                if clock() - answered_at > LOST_SECONDS:
                    raise
    # Not everybody who may read the object may read its results.
    with suppress(SubjectError):
        subject = parse(body, reads.results(), reads.options)
    _print_outcome(console, subject, figures_before(subject) if is_ready else [])
    if is_ready:
        return Exit.OK
    if is_waiting or subject.waits_for_its_user:
        return Exit.WAITING
    if subject.stop_condition is not None:
        return Exit.STALLED
    console.print(f"\n{overdue(_present(subject))}", markup=False, soft_wrap=True)
    return Exit.TIMED_OUT


class _Logs:
    """What the logs of the Jobs said so far."""

    def __init__(self) -> None:
        self.last = JobLog()
        self.of_pods: dict[str, JobLog] = {}

    def look(self, reads: Reads) -> str:
        """Read the newest log; return the verdict of the gates if it is new, which the lines after it would hide."""
        self.last = reads.log()
        before = self.of_pods.get(self.last.pod, JobLog()).verdict
        if self.last.pod:
            self.of_pods[self.last.pod] = self.last
        return "" if before else self.last.verdict


def _is_ready(subject: Subject) -> bool:
    """Whether nothing more is to come."""
    is_on_trial = subject.is_soaked or subject.is_held
    return subject.holds("Ready") and not is_on_trial and subject.newer_condition is None


def _present(subject: Subject) -> TritonDeploymentStatus:
    """Return the status; an empty one if it tells of an earlier spec, whose failure may be mended by now."""
    is_present = subject.status.observed_generation == subject.generation
    return subject.status if is_present else TritonDeploymentStatus()


def _print_outcome(console: Console, subject: Subject, figures: list[str]) -> None:
    console.print()
    if subject.status.candidates:
        console.print(tables.candidates(subject.status.candidates, subject.status.signature))
    if subject.status.search:
        console.print(tables.searches(subject.status.search))
    console.print(explain(subject), markup=False, soft_wrap=True)
    if figures:
        console.print("\n" + "\n".join(figures), markup=False, soft_wrap=True)
