"""Why there is no release."""


class ReleaseError(Exception):
    """What is wrong, with what, and what to do next; printed without a traceback."""
