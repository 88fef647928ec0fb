"""Progress of one object until there is nothing more to wait for."""

from collections.abc import Callable
from typing import Any

from rich.console import Console

from triton_plugin import tables
from triton_plugin.explain import explain
from triton_plugin.progress import Display
from triton_plugin.subject import SubjectError, parse

POLL_SECONDS = 1.0
LOG_SECONDS = 3.0
"""How often a Job's log is read: no point takes less."""
LOST_SECONDS = 60.0
"""How long the API server may be out of reach before that is an error."""
READY, STALLED = 0, 1


def watch(
    read: Callable[[], dict[str, Any]],
    log: Callable[[], str],
    console: Console,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> int:
    """Show progress until the object is ready, stalled or waits for its user, then the outcome; the exit status.

    ``read`` gives the object; where it raises SubjectError for longer than LOST_SECONDS, or at once, that is raised.
    ``log`` gives what a Job that runs measured last, in words, or nothing.
    """
    start = clock()
    seen = start
    measured, looked = "", start - LOG_SECONDS
    subject = parse(read(), None)
    with Display(console) as display:
        while True:
            over = subject.holds("Ready") or subject.holds("Stalled") or subject.is_paused
            if not over and clock() - looked >= LOG_SECONDS:
                measured, looked = log(), clock()
            display.show(subject.status, clock() - start, "" if over else measured)
            if over:
                break
            sleep(POLL_SECONDS)
            try:
                subject = parse(read(), None)
                seen = clock()
            except SubjectError:
                if clock() - seen > LOST_SECONDS:
                    raise
    console.print()
    if subject.status.candidates:
        console.print(tables.candidates(subject.status.candidates))
    if subject.status.search:
        console.print(tables.searches(subject.status.search))
    console.print(explain(subject), markup=False, soft_wrap=True)
    return READY if subject.holds("Ready") else STALLED
