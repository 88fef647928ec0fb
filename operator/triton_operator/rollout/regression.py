"""Compare the performance of a new source with that of the previous one that served. Pure.

Only like is compared with like: measurements of the judged scenario at the same load, in the same environment and with
the same options. Online measurements come from the preview Service, offline ones from the profiles. So do online ones
of revisions that were chosen at loads so far apart that the preview Service had none for both.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from triton_converters.contract.document import Document
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import (
    SCENARIOS,
    Environment,
    MeasureResult,
    Mix,
    ProfileResult,
    Row,
    SourceResult,
)
from triton_operator.candidates.environments import differences
from triton_operator.candidates.ranking import best_row, improvement, percent_words
from triton_operator.context import Context
from triton_operator.jobs.source import data_digest, weights_digest
from triton_operator.rollout.preview import merged

COMPARED_OPTIONS = {
    "-i": "protocol",
    "--shape": "the inputs' shape",
    "--shared-memory": "shared memory",
}
"""The options of perf_analyzer that change a figure at the same load, with their names for messages."""


@dataclass(frozen=True)
class Compared:
    """The comparison of a new source with the previous one that served."""

    reason: Reason
    """Measured; PerformanceRegressed: worse by more than performance.regression.maxPercent; NotCompared."""
    message: str


@dataclass(frozen=True)
class MeasuredSweep:
    """The judged scenario's measurements and the environment they were made in."""

    rows: Sequence[Row]
    environment: Environment
    mix: Mix | None


Sweeps = Mapping[str, MeasuredSweep]
"""The judged scenario's measurements by where they were made."""
PREVIEW, PROFILE = "", " by the profiles"
"""Where, as a message says it after the load."""


def compare(context: Context, source: SourceResult, profile: ProfileResult, measured: MeasureResult) -> Compared | None:
    """Compare the new source with the previous one; None: the spec does not ask for it.

    The load is the one at which the previous source did best by the current objectives and constraints.
    """
    bounds = context.spec.performance.regression
    if bounds is None:
        return None
    last_source = _last_other_source(context, source)
    if last_source is None:
        return Compared(Reason.MEASURED, "not compared: there is no record of another source that served")
    digest, previous_sweeps = last_source
    name = f"the previously served source sha256:{digest[:12]}"
    scenario = context.spec.selection.scenario
    new_sweeps = _sweeps(context, profile, [measured])
    where = _comparable(previous_sweeps, new_sweeps, PREVIEW if scenario == "Online" else PROFILE)
    previous_sweep, new_sweep = previous_sweeps.get(where), new_sweeps.get(where)
    if previous_sweep is None or new_sweep is None:
        message = f"not compared with {name}: its {scenario.lower()} measurements are not recorded"
        return Compared(Reason.NOT_COMPARED, message)
    by_load = {_load(row): row for row in new_sweep.rows}
    common_rows = [row for row in previous_sweep.rows if _load(row) in by_load]
    obstacle = next(_obstacles(previous_sweep, new_sweep, scenario), "") or (
        "" if common_rows else _load_mismatch(previous_sweep, new_sweep)
    )
    if obstacle:
        return Compared(Reason.NOT_COMPARED, f"not compared with {name}: {obstacle}")
    selection = context.spec.selection
    previous_choice = best_row(common_rows, selection.objectives, selection.constraints.as_requests)
    new_choice = best_row(
        [by_load[_load(previous_choice.row)]], selection.objectives, selection.constraints.as_requests
    )
    change = improvement(new_choice, previous_choice)
    beyond = (new_choice.distance - previous_choice.distance) * 100
    direction = "worse" if change < 0 else "better"
    of_profiles = where if scenario == "Online" else ""
    message = f"{percent_words(abs(change))} {direction} than {name}, {scenario.lower()} at {previous_choice.load}"
    message += of_profiles
    if new_choice.violation is not None and beyond > 0:
        message += f", which breaks a constraint: {selection.constraints.broken(new_choice.violation)}"
    regressed = max(-change, beyond) > bounds.max_percent
    return Compared(Reason.PERFORMANCE_REGRESSED if regressed else Reason.MEASURED, message)


def _comparable(previous_sweeps: Sweeps, new_sweeps: Sweeps, usual: str) -> str:
    """Return where both were measured at one load: at the usual place, unless only the profiles have one."""
    if usual in previous_sweeps and usual in new_sweeps and not _common_loads(previous_sweeps, new_sweeps, usual):
        return PROFILE if _common_loads(previous_sweeps, new_sweeps, PROFILE) else usual
    return usual


def _common_loads(previous_sweeps: Sweeps, new_sweeps: Sweeps, where: str) -> set[tuple[int, int, int]]:
    previous_loads, new_loads = (
        {_load(row) for row in each[where].rows} if where in each else set() for each in (previous_sweeps, new_sweeps)
    )
    return previous_loads & new_loads


def _last_other_source(context: Context, source: SourceResult) -> tuple[str, Sweeps] | None:
    """Return the digest and the measurements of the last other source that served; None: no record has one."""
    records = context.observed.records
    current_digests = {source.digest, weights_digest(context), data_digest(context)} - {""}
    for state in context.observed.history.served:
        # Figures that stalled the object were measured again before it served.
        record_names = [name for name in state.records if name in records and name not in context.observed.failures]
        results = {name: records[name].result for name in record_names}
        digests = {each.digest for each in results.values() if isinstance(each, SourceResult)}
        if digests and digests != current_digests:
            measure_results = [each for each in results.values() if isinstance(each, MeasureResult)]
            sweeps = _sweeps(context, results.get(state.profile), measure_results)
            return min(digests - current_digests or digests), sweeps
    return None


def _sweeps(context: Context, profile: Document | None, measure_results: Sequence[MeasureResult]) -> Sweeps:
    """Return the judged scenario's measurements, as far as they are recorded."""
    scenario, found = context.spec.selection.scenario, dict[str, MeasuredSweep]()
    if isinstance(profile, ProfileResult):
        found[PROFILE] = MeasuredSweep(profile.rows(scenario), profile.environment, profile.mix)
    if scenario == "Online" and measure_results:
        measured = merged(measure_results)
        found[PREVIEW] = MeasuredSweep(measured.online, measured.environment, measured.mix)
    return found


def _obstacles(previous_sweep: MeasuredSweep, new_sweep: MeasuredSweep, scenario: str) -> Iterator[str]:
    """Yield the differences in environment and options that forbid a comparison, in words."""
    yield from differences(previous_sweep.environment, new_sweep.environment)
    options = [_options(each.environment.perf_analyzer, scenario) for each in (previous_sweep, new_sweep)]
    for flag, option_name in COMPARED_OPTIONS.items():
        previous_values, new_values = (" ".join(each.get(flag, [])) or "none" for each in options)
        if previous_values != new_values:
            yield f"{option_name} differs: {previous_values} and {new_values}"
    if previous_sweep.mix != new_sweep.mix:
        yield f"the samples' shapes differ: {_mix_words(previous_sweep.mix)} and {_mix_words(new_sweep.mix)}"


def _mix_words(mix: Mix | None) -> str:
    if mix is None:
        return "one shape"
    lengths = (f", {each.input} {each.minimum} to {each.maximum} (median {each.median})" for each in mix.lengths[:1])
    return f"{mix.shapes} shapes{''.join(lengths)}"


def _options(commands: Sequence[str], scenario: str) -> dict[str, list[str]]:
    """Return the values of `COMPARED_OPTIONS` in the command line of one scenario; a profile has one for each."""
    values: dict[str, list[str]] = {}
    command_words = next((split for each in commands if _reports_scenario(split := _command_words(each), scenario)), [])
    for flag, value in pairwise(command_words):
        if flag in COMPARED_OPTIONS:
            values.setdefault(flag, []).append(value)
    return values


def _command_words(command: str) -> list[str]:
    """Return the words of a command line; none if it is no valid one: anybody may edit a record."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _reports_scenario(command_words: Sequence[str], scenario: str) -> bool:
    """Whether a command line writes a report of the scenario."""
    return bool(command_words) and command_words[-1].startswith(f"{SCENARIOS[scenario]}-")


def _load_mismatch(previous_sweep: MeasuredSweep, new_sweep: MeasuredSweep) -> str:
    previous_loads, new_loads = (
        ", ".join(f"{row.batch_size}/{row.request_rate or row.concurrency}" for row in each.rows)
        for each in (previous_sweep, new_sweep)
    )
    kind = "request rate" if any(row.request_rate for row in previous_sweep.rows) else "concurrency"
    return f"no load was measured for both: batch size/{kind} {previous_loads or 'none'} and {new_loads or 'none'}"


def _load(row: Row) -> tuple[int, int, int]:
    return row.batch_size, row.concurrency, row.request_rate
