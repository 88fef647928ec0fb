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
LONGEST = 300
"""How many characters of a line are shown."""


def latest(stage: str, log: str) -> str:
    """Return the last such line, fit for a terminal; empty if there is none yet."""
    lines = (line.strip() for line in reversed(log.splitlines()))
    found = next((line for line in lines if line.startswith(LINES[stage])), "")
    return str(printable(found))[:LONGEST]
