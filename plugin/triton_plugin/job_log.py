"""Reads a Job's progress from its log. Pure."""

from triton_converters.contract.stages import STAGES
from triton_plugin.subject import printable

TOLD = tuple(name for name, stage in STAGES.items() if stage.log_lines)
"""The stages whose logs have lines to show."""
ANNOUNCED = "so this point takes"
"""What a line has that announces a point, and is no result."""
LONGEST = 300
"""How many characters of a line are shown."""


def latest(stage: str, log: str) -> str:
    """Return the last line that the stage itself wrote, fit for a terminal; empty if there is none yet.

    Users' words in the log are left out. A line that announces a point would hide the result before it, which is not
    looked at in between: both are returned.
    """
    lines = [line.strip() for line in log.splitlines() if line.strip().startswith(STAGES[stage].log_lines)]
    found = lines[-2:] if lines and ANNOUNCED in lines[-1] else lines[-1:]
    return "; then ".join(str(printable(line))[:LONGEST] for line in found)
