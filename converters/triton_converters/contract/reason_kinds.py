"""What a reason says of the work, and which containers may find it. Standard library only."""

from enum import Enum, Flag, auto


class Containers(Flag):
    """The containers of Jobs that may find a failure.

    All are lists of what is allowed, so that a new reason is the operator's alone until its row names them.
    """

    NONE = 0
    """The operator alone finds it, such as a pod that no node takes."""
    PIP = auto()
    """A container ``run`` with pip: no other one asks an index."""
    USER_CODE = auto()
    """A container ``run`` with the user's code."""
    CLIENT = auto()
    """A container ``run`` with a client of its server: no other one asks a server."""
    RUN = PIP | USER_CODE | CLIENT
    """Every container ``run``, whatever it does."""
    OURS = auto()
    """No container ``run``: it is of the source, of the claim or of the server's release."""


class Kind(Enum):
    """What has to happen until the work goes on. A kind, called, returns the row of a reason.

    All but the first four and `DONE` stop somebody, or are to be known, so docs/troubleshooting.md has to say what to
    do about them.
    """

    GOES_ON = auto()
    """The work goes on."""
    WAITS = auto()
    """The work goes on once something else has ended that is not wrong."""
    TRIAL = auto()
    """Clients' requests judge a new revision."""
    PAUSED = auto()
    """The object waits for its user, without anything being wrong."""
    DONE = auto()
    """The work is done, or nothing of it is left to do."""
    NOTICE = auto()
    """Nothing fails, but somebody may want to act."""
    PASS = auto()
    """The operator's passes over the object fail, and are made again until one succeeds."""
    ANSWERS = auto()
    """A failure that passes by itself, of a server that is asked: of the source, of images or of the model."""
    ROOM = auto()
    """A failure that passes by itself, of disks or nodes."""
    RIGHTS = auto()
    """A failure of credentials or certificates, which passes once somebody corrects what the operator may not read."""
    FILES = auto()
    """A failure that lasts until files of the source change, at which the operator does not look by itself."""
    SPEC = auto()
    """A failure that lasts until a field of the spec changes, which is a new try."""
    OUTSIDE = auto()
    """A failure that lasts until something outside changes, such as a policy, which the operator sees."""
    RETRY = auto()
    """A failure that lasts until something outside changes, such as an index, and somebody asks for another try."""
    EITHER = auto()
    """A failure that lasts until files of the source change, or what a retry is for."""

    def __call__(self, doc: str, found_by: Containers = Containers.NONE) -> tuple[auto, str, "Kind", Containers]:
        """Return the row of a reason, whose value comes from its name."""
        return auto(), doc, self, found_by
