"""Reads a Job's progress from its log. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from triton_converters.contract.stages import STAGES
from triton_operator import names
from triton_plugin.reading.subject import printable

LOGGED_STAGES = tuple(name for name, stage in STAGES.items() if stage.log_lines)
"""The stages whose logs have lines to show."""
ANNOUNCEMENT = "so this point takes"
"""The words of a line that announces a point and has no result yet."""
LONGEST_LINE = 300
"""The most characters of a line that are shown: three lines of a terminal."""
SHORT_SECONDS = 5.0
"""What is left where a log does not say, because it is less than 10 s."""
GATES = "gates: "
"""How the line with the verdict of the gates begins."""
SWEEP_ENDS = ("points are not measured", "it is left out, as")
"""The words of a line by which a sweep ends before its last point."""

_POINT = re.compile(r"(offline|online|request rate|search) (\d{1,4})(?:/| of at most )(\d{1,4}): ")
_TOOK = re.compile(r"\((?:took )?(\d{1,6}(?:\.\d)?) s\)")
_TIME = r"(\d{1,6}(?:\.\d)?) (s|min|h)\b"
_REST = re.compile(rf"; (?:the rest takes at most|\d{{1,4}} more, about) {_TIME}")
_THIS = re.compile(rf"{ANNOUNCEMENT} about {_TIME}")
_WITH_THIS = re.compile(rf"; with the \d{{1,4}} .{{1,60}}? about {_TIME}")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class JobLog:
    """The last lines of the log of a Job that measures or downloads."""

    pod: str = ""
    """Empty: there is no such Job, or its log cannot be read."""
    stage: str = ""
    candidate: str = ""
    text: str = ""
    words: str = ""
    """Whose progress it is, and its last line, or why there is none. Empty: there is nothing to say."""
    verdict: str = ""
    """Whose verdict it is, and what the gates say. Empty: there is none yet."""


@dataclass(frozen=True)
class Sweeps:
    """What the log of a Job says of its points."""

    took: tuple[float, ...]
    """The seconds of each point that has ended."""
    online: tuple[float, ...]
    """The seconds of each online point that has ended."""
    left: float
    """The seconds of those that come, 0.0 if none does."""
    last: int
    """The number of the last point that has ended, in its sweep."""
    most: int
    """The points of this sweep, or the most that there may be."""

    @property
    def seconds(self) -> float:
        """What all points of the Job take."""
        return sum(self.took) + self.left


def job_log(owner: str, pod: str, labels: Mapping[str, str], text: str) -> JobLog:
    """Return what the log of a pod of an object's Job says."""
    stage, candidate = labels[names.STAGE_LABEL], labels.get(names.CANDIDATE_LABEL, owner)
    line = latest_line(stage, text)
    suffix = " through the preview Service" if stage == "measure" else ""
    words = f"{candidate}{suffix}: {line}" if line else ""
    gates = next((each for each in _own_lines(stage, text) if each.startswith(GATES)), "")
    return JobLog(pod, stage, candidate, text, words, f"{candidate}: {_shown(gates)}" if gates else "")


def latest_line(stage: str, log: str) -> str:
    """Return the last line that the stage itself wrote, fit for a terminal; empty if there is none yet.

    Users' words in the log are left out, and the verdict of the gates, which is shown by itself. A line that announces
    a point would hide the result before it, which is not looked at in between: both are returned.
    """
    lines = [each for each in _own_lines(stage, log) if not each.startswith(GATES)]
    last_lines = lines[-2:] if lines and ANNOUNCEMENT in lines[-1] else lines[-1:]
    return "; then ".join(map(_shown, last_lines))


def _shown(line: str) -> str:
    """Return a line of a log as a terminal may show it."""
    return str(printable(line))[:LONGEST_LINE]


def sweeps(log: JobLog) -> Sweeps | None:
    """Return what a log says of points; None if it says nothing of one yet.

    Of a sweep that ends where the throughput no longer rises, what is left is the most that there may be.
    """
    lines = [line for line in _own_lines(log.stage, log.text) if _POINT.match(line)]
    if not lines:
        return None
    took: list[tuple[str, float]] = []
    last = most = 0
    for line in lines:
        place, time = _POINT.match(line), _TOOK.search(line)
        if place and time:
            took.append((place[1], float(time[1])))
            last, most = int(place[2]), int(place[3])
    is_over = any(words in log.text.rsplit(lines[-1], 1)[-1] or words in lines[-1] for words in SWEEP_ENDS)
    left = 0.0 if is_over else _left(log.stage, lines[-1])
    online = tuple(seconds for scenario, seconds in took if scenario == "online")
    return Sweeps(tuple(seconds for _, seconds in took), online, left, last, most)


def _left(stage: str, line: str) -> float:
    """Return the seconds of the points after a line or, if it announces one, of this one and those after it."""
    if ANNOUNCEMENT in line:
        return _seconds(_WITH_THIS.search(line)) or _seconds(_THIS.search(line)) or SHORT_SECONDS
    place = _POINT.match(line)
    is_last = stage == "measure" and place is not None and place[2] == place[3]
    return 0.0 if is_last else _seconds(_REST.search(line)) or SHORT_SECONDS


def _seconds(found: re.Match[str] | None) -> float:
    return float(found[1]) * _SECONDS[found[2]] if found else 0.0


def _own_lines(stage: str, log: str) -> Iterator[str]:
    lines = (line.strip() for line in log.splitlines())
    return (line for line in lines if line.startswith(STAGES[stage].log_lines))
