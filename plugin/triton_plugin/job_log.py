"""Reads a Job's progress from its log. Pure."""

from triton_converters.contract.stages import STAGES
from triton_plugin.subject import printable

LOGGED_STAGES = tuple(name for name, stage in STAGES.items() if stage.log_lines)
"""The stages whose logs have lines to show."""
ANNOUNCEMENT = "so this point takes"
"""The words of a line that announces a point and has no result yet."""
LONGEST_LINE = 300
"""The most characters of a line that are shown: three lines of a terminal."""


def latest_line(stage: str, log: str) -> str:
    """Return the last line that the stage itself wrote, fit for a terminal; empty if there is none yet.

    Users' words in the log are left out. A line that announces a point would hide the result before it, which is not
    looked at in between: both are returned.
    """
    lines = [line.strip() for line in log.splitlines() if line.strip().startswith(STAGES[stage].log_lines)]
    last_lines = lines[-2:] if lines and ANNOUNCEMENT in lines[-1] else lines[-1:]
    return "; then ".join(str(printable(line))[:LONGEST_LINE] for line in last_lines)
