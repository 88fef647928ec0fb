"""What a Job's log says of how far it is. Pure."""

from triton_plugin.subject import printable

LINES = {
    "profile": ("gates: ", "offline ", "online "),
    "search": ("search ",),
    "measure": ("online ",),
}
"""By stage: how the lines begin that its Job writes for each gate or point. Its log holds users' words too."""
LONGEST = 300
"""Characters of a line that are shown."""


def latest(stage: str, log: str) -> str:
    """The last such line, fit for a terminal; empty where there is none yet."""
    lines = (line.strip() for line in reversed(log.splitlines()))
    found = next((line for line in lines if line.startswith(LINES[stage])), "")
    return str(printable(found))[:LONGEST]
