"""What ends a command with words for its user."""


class CommandError(Exception):
    """The command could not do what was asked; the message says why and what to do."""


class SubjectError(CommandError):
    """There is nothing to report on."""


class UnreachableError(SubjectError):
    """The API server does not answer."""


class FolderError(CommandError):
    """A model folder, or what was said about it, does not make an object."""


class PushError(CommandError):
    """The push failed."""


class ReplayError(CommandError):
    """An image cannot be replayed on this machine."""


class CheckError(CommandError):
    """What was named cannot be checked on this machine."""
