"""How long an object still takes to be ready, from its status and the logs of its Jobs. Pure."""

from collections.abc import Sequence
from math import ceil
from statistics import fmean

from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import TritonDeploymentStatus
from triton_plugin.reading.job_log import JobLog, Sweeps, sweeps
from triton_plugin.telling.progress import GOES_ON, STAGES, conditions_by_type, unfinished_stage

POD_SECONDS = 10.0
"""What a Job takes besides its points: its pod, a server that loads the model, and the gates."""
PREVIEW_POINTS = 3
"""How many points the preview has without `performance.online`: the chosen load, one below and one above."""
TO_PROFILE = ("Pending", "Converting", "Converted")
"""The states of candidates whose profile is to come."""
STEP_SECONDS = 5
MINUTE, HOUR = 60, 3600
SHORT = 2
"""Units below which a time is given in the next smaller unit: 90 s, not 2 min."""


def words_left(spec: TritonDeploymentSpec, status: TritonDeploymentStatus, logs: Sequence[JobLog]) -> str:
    """Return `about 45 s left`; empty if nothing goes on, or nothing tells how long it takes.

    ``logs``: those of the object's Jobs as far as they were seen, the present or last one at the end.
    """
    seconds = seconds_left(spec, status, logs)
    if seconds is None:
        return ""
    suffix = " before the soak" if spec.serving.soak is not None and status.active is not None else ""
    return f"about {_in_words(seconds)} left{suffix}"


def _in_words(seconds: float) -> str:
    # As something goes on, it is never nothing.
    rounded = max(1, ceil(seconds / STEP_SECONDS)) * STEP_SECONDS
    if rounded < SHORT * MINUTE:
        return f"{rounded} s"
    return f"{rounded / MINUTE:.0f} min" if rounded < SHORT * HOUR else f"{rounded / HOUR:.1f} h"


def seconds_left(spec: TritonDeploymentSpec, status: TritonDeploymentStatus, logs: Sequence[JobLog]) -> float | None:
    """Return the seconds of what is to be measured; None as `words_left` has an empty text. ``logs``: as there.

    Candidates that are not profiled yet count as those that are, or that are on their way.
    """
    stage = unfinished_stage(status)
    condition = conditions_by_type(status).get(stage)
    measured = [(log, found) for log in logs if (found := sweeps(log)) is not None]
    if stage not in STAGES or condition is None or condition.reason not in GOES_ON or not measured:
        return None
    current, last = logs[-1], measured[-1][1] if measured[-1][0] is logs[-1] else None
    if current.stage == "measure" and stage in STAGES[STAGES.index("Available") :]:
        return last.left if last is not None else None
    profiles = [found for log, found in measured if log.stage == "profile"]
    if not profiles:
        return None
    each = POD_SECONDS + fmean(profile.seconds for profile in profiles)
    points = [seconds for profile in profiles for seconds in profile.online or profile.took]
    point = fmean(points) if points else profiles[-1].left
    return (
        sum(each for candidate in status.candidates if candidate.state in TO_PROFILE)
        + _of_present_profile(status, current, last, each)
        + _of_search(spec, status, current, last, point)
        + POD_SECONDS
        + point * _preview_points(spec, profiles)
    )


def _of_present_profile(status: TritonDeploymentStatus, current: JobLog, last: Sweeps | None, each: float) -> float:
    """Return the seconds of the candidate that is profiled now. ``each``: what one takes."""
    running = [candidate.name for candidate in status.candidates if candidate.state == "Profiling"]
    if not running:
        return 0.0
    is_told = last is not None and current.stage == "profile" and current.candidate in running
    return last.left if last is not None and is_told else each


def _of_search(
    spec: TritonDeploymentSpec, status: TritonDeploymentStatus, current: JobLog, last: Sweeps | None, point: float
) -> float:
    """Return the most seconds that searches may still take. ``point``: what a point took in the profiles."""
    search = spec.selection.search
    if search.mode == "None" or unfinished_stage(status) not in STAGES[: STAGES.index("Selected") + 1]:
        return 0.0
    if current.stage == "search" and last is not None and last.took:
        return max(0, last.most - last.last) * fmean(last.took)
    return max(0, search.measurements - sum(each.measurements for each in status.search)) * point


def _preview_points(spec: TritonDeploymentSpec, profiles: Sequence[Sweeps]) -> int:
    if spec.performance.online is None and spec.serving.autoscaling is None:
        return PREVIEW_POINTS
    return max(PREVIEW_POINTS, *(len(profile.online) for profile in profiles))
