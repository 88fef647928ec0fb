"""Shows what a TritonDeployment is doing, from its conditions and candidates alone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from triton_converters.contract.reason_kinds import Kind
from triton_converters.contract.reasons import Reason, of_kinds
from triton_operator.api.status import ON_TRIAL, CandidateStatus, Condition, TritonDeploymentStatus

STAGES = ("SourceResolved", "Converted", "Verified", "Selected", "Available", "PerformanceMeasured")
"""Conditions in the order in which they become true."""
UNSERVED = (*STAGES[:4], "Published")
"""The stages of an object with `serving.mode: None`; the last one only if it has `publish`."""
SOAK = "Soaked"
"""A condition that comes after them, if the spec asks for it and another revision was active before."""
GOES_ON = of_kinds(Kind.GOES_ON)
"""Reasons of a stage that nothing is in the way of."""
UNSETTLED = ON_TRIAL | {Reason.SOAK_FAILED}
"""The reasons of Soaked while the object is not where the spec wants it."""
MARKS = {"True": ("✓", "green"), "False": ("✗", "red"), "Unknown": ("…", "yellow")}
HEARTBEAT_SECONDS = 60.0
"""Time without a change after which a line says that the work goes on."""
BUSY_STATES = ("Converting", "Profiling")
STATE_STYLES = {"Failed": "red", "Passed": "green", "Selected": "bold green"}


@dataclass(frozen=True)
class Picture:
    """The state of the object, in a form that changes only when the status does."""

    stage: str
    """The stage that the object waits for; Ready once all are done, and Reconciling while passes fail."""
    reason: str
    message: str
    candidates: tuple[tuple[str, str], ...]
    """Name and state of each candidate."""

    def line(self, last: "Picture | None" = None) -> str:
        """Return it on one line, without the candidates that are as they were in the last picture."""
        text = f"{self.stage}: {self.reason}"
        if self.message:
            text += f": {self.message}"
        last_candidates = last.candidates if last else ()
        states = ", ".join(f"{name} {state}" for name, state in self.candidates if (name, state) not in last_candidates)
        return f"{text} [{states}]" if states else text

    def work(self) -> str:
        """Return what goes on: the candidates that are worked on, or else the stage and its reason."""
        for busy in BUSY_STATES:
            if names := [name for name, state in self.candidates if state == busy]:
                return f"{busy.lower()} {', '.join(names)}"
        return f"at {self.stage}: {self.reason}"


def conditions_by_type(status: TritonDeploymentStatus) -> dict[str, Condition]:
    """Return the conditions by their type."""
    return {str(condition.type): condition for condition in status.conditions}


def stages(conditions: Mapping[str, Condition]) -> tuple[str, ...]:
    """Return the stages of an object with these conditions, by their type; where nothing serves, none is Available."""
    if not conditions or "Available" in conditions:
        return STAGES
    return tuple(each for each in UNSERVED if each in conditions)


def unfinished_stage(status: TritonDeploymentStatus) -> str:
    """Return the stage that the object waits for or failed at, as UpToDate says it; Ready: all stages are done.

    If UpToDate says nothing of a stage: the first that is not done.
    """
    conditions = conditions_by_type(status)
    unfinished = [name for name in stages(conditions) if name not in conditions or conditions[name].status != "True"]
    # Clients reach a first revision only once it is measured, so Available may wait for a later stage.
    said = conditions.get("UpToDate")
    named = (
        name
        for name in unfinished
        if said is not None
        and name in conditions
        and conditions[name].reason == said.reason
        # Of a source that is followed, the version comes before the words of the stage.
        and said.message.endswith(conditions[name].message)
    )
    return next(named, next(iter(unfinished), "Ready"))


def picture(status: TritonDeploymentStatus) -> Picture:
    """Return the state of the object."""
    conditions = conditions_by_type(status)
    stage = unfinished_stage(status)
    if stage == "Ready" and SOAK in conditions and conditions[SOAK].reason in UNSETTLED:
        stage = SOAK
    if status.failing is not None:
        stage = "Reconciling"
    condition = conditions.get(stage)
    return Picture(
        stage=stage,
        reason=condition.reason if condition else "not observed yet",
        message=condition.message if condition else "",
        candidates=tuple((candidate.name, candidate.state) for candidate in status.candidates),
    )


def overdue(status: TritonDeploymentStatus) -> str:
    """Return what ended a watch that its user bounded, and what went on at that moment."""
    return f"The time of --timeout is over; it was still {picture(status).work()}"


def is_ready(status: TritonDeploymentStatus, generation: int) -> bool:
    """Whether the Ready condition holds for this generation of the spec."""
    ready = conditions_by_type(status).get("Ready")
    return ready is not None and ready.status == "True" and ready.observed_generation == generation


def stalled_seconds(status: TritonDeploymentStatus, now: datetime) -> float:
    """Return for how long the object has been stalled; 0: it is not."""
    stalled = conditions_by_type(status).get("Stalled")
    if stalled is None or stalled.status != "True":
        return 0.0
    return (now - datetime.fromisoformat(stalled.last_transition_time)).total_seconds()


def panel(status: TritonDeploymentStatus, elapsed: float, measured: str = "", rest: str = "") -> RenderableType:
    """Return the live display: the time, stages and their reasons, then candidates and the last measurement."""
    table = Table(box=None, show_header=False, pad_edge=False)
    conditions = conditions_by_type(status)
    failing = ["Reconciling"] if status.failing is not None else []
    for name in (*stages(conditions), *([SOAK] if SOAK in conditions else []), "Ready", "UpToDate", *failing):
        condition = conditions.get(name)
        mark, style = MARKS["False" if name in failing else condition.status if condition else "Unknown"]
        texts = [condition.reason, condition.message] if condition else ["not observed yet", ""]
        table.add_row(Text(mark, style), name, Text(texts[0]), Text(texts[1], "dim"))
    last = [Text(f"   last: {measured}")] if measured else []
    time = f"{elapsed:.0f} s{f'; {rest}' if rest else ''}"
    return Group(Text(time, "bold"), table, _candidates(status.candidates), *last)


def _candidates(candidates: Iterable[CandidateStatus]) -> RenderableType:
    table = Table(box=None, show_header=False, pad_edge=False)
    for candidate in candidates:
        state = Text(candidate.state, STATE_STYLES.get(candidate.state, ""))
        table.add_row("  ", Text(candidate.name), state, Text(candidate.reason or ""), Text(candidate.message, "dim"))
    return table


class Display:
    """Shows progress: a live panel on a terminal, otherwise lines with the seconds since the start.

    There is a line for each change, and one a minute while nothing changes.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        # FORCE_COLOR makes any output a terminal for rich.
        self.live = (
            Live(console=console, refresh_per_second=4) if console.is_terminal and console.file.isatty() else None
        )
        self.last: Picture | None = None
        self.measured = ""
        self.changed = 0.0
        """When the last change was shown, in seconds since the start."""
        self.printed = 0.0

    def __enter__(self) -> Self:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.live:
            self.live.stop()

    def show(self, status: TritonDeploymentStatus, elapsed: float, measured: str = "", rest: str = "") -> None:
        """Show the status ``elapsed`` seconds after the start, and the last measurement of a running Job.

        ``rest``: how long the whole still takes, in words; empty: nobody knows.
        """
        if self.live:
            self.live.update(panel(status, elapsed, measured, rest))
            return
        current = picture(status)
        total = f" [{rest}]" if rest else ""
        lines = [f"  {measured}{total}"] if measured not in ("", self.measured) else []
        if current != self.last:
            # A measurement comes before the change that it led to.
            lines.insert(len(lines) if self.last else 0, current.line(self.last))
        for line in lines:
            self.changed = elapsed
            self._print(elapsed, line)
        self.last, self.measured = current, measured
        if elapsed - self.printed >= HEARTBEAT_SECONDS:
            self._print(elapsed, f"  still {current.work()}, {(elapsed - self.changed) // 60:.0f} min{total}")

    def tell(self, elapsed: float, words: str) -> None:
        """Print a line that stays, above the panel if there is one, unless it is empty."""
        if words:
            self.changed = elapsed
            self._print(elapsed, f"  {words}")

    def _print(self, elapsed: float, line: str) -> None:
        self.printed = elapsed
        self.console.print(f"{elapsed:5.0f} s  {line}", markup=False, highlight=False, soft_wrap=True)
