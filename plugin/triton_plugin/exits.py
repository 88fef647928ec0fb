"""The exit statuses of the commands, which scripts branch on."""

from enum import IntEnum
from typing import Self


class Exit(IntEnum):
    """What became of a command."""

    OK = 0, "what you asked for was done, or is so"
    FAILED = 1, "it was not done, or is not so; standard error says why"
    USAGE = 2, "the arguments are wrong"
    STALLED = 3, "the object failed; most failures last until something is changed, some are tried again by themselves"
    WAITING = 4, "the object waits for you: for an approval, or because it is suspended or its rollout is held"
    UNREACHABLE = 5, "the API server does not answer"
    TIMED_OUT = 6, "the time of --timeout is over"
    INTERRUPTED = 130, "Ctrl-C"
    TERMINATED = 143, "SIGTERM, as a CI system sends it to end a job"

    meaning: str

    def __new__(cls, status: int, meaning: str) -> Self:
        """Make a member from its status and what that means, for the page of the commands."""
        member = int.__new__(cls, status)
        member._value_ = status
        member.meaning = meaning
        return member
