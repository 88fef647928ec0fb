"""Whether a new source is slower than the previous one that served. Pure.

Only like is compared with like: measurements of the judged scenario at the same load, in the same environment and with
the same options. Online measurements come from the preview Service, offline ones from the profiles.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from triton_converters.contract.document import Document
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SCENARIOS, Environment, MeasureResult, ProfileResult, Row, SourceResult
from triton_operator.candidates.environments import differences
from triton_operator.candidates.ranking import best_row, improvement, percent_words
from triton_operator.context import Context
from triton_operator.jobs.source import data_digest, weights_digest

COMPARED_OPTIONS = {
    "-i": "protocol",
    "--shape": "the inputs' shape",
    "--shared-memory": "shared memory",
    "--measurement-mode": "measurement mode",
}
"""The options of perf_analyzer that change a figure at the same load, with their names for messages."""


@dataclass(frozen=True)
class Compared:
    """How a new source compares with the previous one that served."""

    reason: Reason
    """Measured; PerformanceRegressed: worse by more than performance.regression.maxPercent; NotCompared."""
    words: str


@dataclass(frozen=True)
class Sweep:
    """The judged scenario's measurements and the environment they were made in."""

    rows: Sequence[Row]
    environment: Environment


def compare(context: Context, source: SourceResult, profile: ProfileResult, measured: MeasureResult) -> Compared | None:
    """Compare the new source with the previous one; None if the spec does not ask for it.

    The load is the one at which the previous source did best by the current objectives and constraints.
    """
    bounds = context.spec.performance.regression
    if bounds is None:
        return None
    last = _last_other_source(context, source)
    if last is None:
        return Compared(Reason.MEASURED, "not compared: there is no record of another source that served")
    digest, before = last
    name = f"the previously served source sha256:{digest[:12]}"
    scenario = context.spec.selection.scenario
    after = _measurements(context, profile, measured)
    if before is None or after is None:
        message = f"not compared with {name}: its {scenario.lower()} measurements are not recorded"
        return Compared(Reason.NOT_COMPARED, message)
    by_load = {_load(row): row for row in after.rows}
    common = [row for row in before.rows if _load(row) in by_load]
    obstacle = next(_obstacles(before, after, scenario), "") or ("" if common else _load_mismatch(before, after))
    if obstacle:
        return Compared(Reason.NOT_COMPARED, f"not compared with {name}: {obstacle}")
    selection = context.spec.selection
    old = best_row(common, selection.objectives, selection.constraints.asked)
    new = best_row([by_load[_load(old.row)]], selection.objectives, selection.constraints.asked)
    change = improvement(new, old)
    beyond = (new.distance - old.distance) * 100
    direction = "worse" if change < 0 else "better"
    words = f"{percent_words(abs(change))} {direction} than {name}, {scenario.lower()} at {old.load}"
    if new.violation is not None and beyond > 0:
        words += f", which breaks a constraint: {selection.constraints.broken(new.violation)}"
    regressed = max(-change, beyond) > bounds.max_percent
    return Compared(Reason.PERFORMANCE_REGRESSED if regressed else Reason.MEASURED, words)


def _last_other_source(context: Context, source: SourceResult) -> tuple[str, Sweep | None] | None:
    """Digest and measurements of the last state that served another source, as far as they are recorded."""
    records = context.observed.records
    now = {source.digest, weights_digest(context), data_digest(context)} - {""}
    for state in context.observed.history.served:
        # Figures that stalled the object were measured again before it served.
        names = [name for name in state.records if name in records and name not in context.observed.failures]
        results = {name: records[name].outcome.result for name in names}
        published = {each.digest for each in results.values() if isinstance(each, SourceResult)}
        if published and published != now:
            measured = next((each for each in results.values() if isinstance(each, MeasureResult)), None)
            return min(published - now or published), _measurements(context, results.get(state.profile), measured)
    return None


def _measurements(context: Context, profile: Document | None, measured: MeasureResult | None) -> Sweep | None:
    """The judged scenario's measurements; None if they are not recorded."""
    scenario = context.spec.selection.scenario
    if scenario != "Online":
        return Sweep(profile.rows(scenario), profile.environment) if isinstance(profile, ProfileResult) else None
    return Sweep(measured.online, measured.environment) if measured is not None else None


def _obstacles(before: Sweep, after: Sweep, scenario: str) -> Iterator[str]:
    """The differences in environment and options that forbid a comparison, in words."""
    yield from differences(before.environment, after.environment)
    ways = [_options(each.environment.perf_analyzer, scenario) for each in (before, after)]
    for flag, words in COMPARED_OPTIONS.items():
        ours, theirs = (" ".join(each.get(flag, [])) or "none" for each in ways)
        if ours != theirs:
            yield f"{words} differs: {ours} and {theirs}"


def _options(commands: Sequence[str], scenario: str) -> dict[str, list[str]]:
    """The values of WAYS in the command line of one scenario. A profile has one command line for each scenario."""
    found: dict[str, list[str]] = {}
    words = next((split for each in commands if _reports_scenario(split := _command_words(each), scenario)), [])
    for flag, value in pairwise(words):
        if flag in COMPARED_OPTIONS:
            found.setdefault(flag, []).append(value)
    return found


def _command_words(command: str) -> list[str]:
    """Return the words of a command line; none if it is not one, as an earlier version's publisher let it be."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _reports_scenario(words: Sequence[str], scenario: str) -> bool:
    """Whether a command line writes a report of the scenario."""
    return bool(words) and words[-1].startswith(f"{SCENARIOS[scenario]}-")


def _load_mismatch(before: Sweep, after: Sweep) -> str:
    ours, theirs = (
        ", ".join(f"{row.batch_size}/{row.request_rate or row.concurrency}" for row in each.rows)
        for each in (before, after)
    )
    kind = "request rate" if any(row.request_rate for row in before.rows) else "concurrency"
    return f"no load was measured for both: batch size/{kind} {ours or 'none'} and {theirs or 'none'}"


def _load(row: Row) -> tuple[int, int, int]:
    return row.batch_size, row.concurrency, row.request_rate
