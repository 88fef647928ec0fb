"""Reads a Job's progress from its log. Pure."""

from triton_plugin.subject import printable

LINES = {
    "source": ("download ",),
    "packages": ("download ", "resolve "),
    "profile": ("gates: ", "offline ", "online ", "request rate "),
    "search": ("search ",),
    "measure": ("online ",),
}
"""How the lines begin that a Job writes for each gate, point or part of a download, by stage. Its log contains users'
words too."""
ANNOUNCED = "so this point takes"
"""What a line has that announces a point, and is no result."""
LONGEST = 300
"""How many characters of a line are shown."""


def latest(stage: str, log: str) -> str:
    """Return the last such line, fit for a terminal; empty if there is none yet.

    A line that announces a point would hide the result before it, which is not looked at in between: both are returned.
    """
    lines = [line.strip() for line in log.splitlines() if line.strip().startswith(LINES[stage])]
    found = lines[-2:] if lines and ANNOUNCED in lines[-1] else lines[-1:]
    return "; then ".join(str(printable(line))[:LONGEST] for line in found)
