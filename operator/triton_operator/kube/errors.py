"""How a request to an API server fails.

ClusterError                  a request failed
├── RefusedError              it fails again until somebody changes something
│   ├── InvalidError          400, 413, 415, 422: the object is not valid
│   ├── ForbiddenError        403: a quota, an admission policy, a missing rule
│   └── ForeignError          the object is somebody else's, so it was not written (runtime/writing.py)
├── NotFoundError             404, and 403 for new objects in a namespace that is being deleted
├── ConflictError             409: what was observed is not the latest
├── GoneError                 410: the version of a watch is too old
├── NotYetError               another object has the name, and is about to be deleted (runtime/writing.py)
├── ServerError               any other answer, such as 500: the API server, or a webhook that it asked, failed at it
├── UnwrittenStatusError      the status was not written (runtime/reporting.py)
│   └── StatusRefusedError    it was refused, so it is a RefusedError too
└── DisconnectedError         the next request would fare no better
    ├── NotLeaderError        this replica may not write (lease.py), so nothing was sent
    └── UnavailableError      no answer; or 401 and 429, which are about the operator and not about an object
"""


class ClusterError(Exception):
    """A request to the API server failed."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds to wait before the next try, by the API server's Retry-After; 0: it did not say."""


class RefusedError(ClusterError):
    """The API server refuses the request until somebody changes something."""


class InvalidError(RefusedError):
    """The object is not valid."""


class ForbiddenError(RefusedError):
    """A quota, an admission policy or a missing rule forbids the request."""


class NotFoundError(ClusterError):
    """The object or kind does not exist, or its namespace is being deleted."""


class ConflictError(ClusterError):
    """What was observed is not the latest."""


class GoneError(ClusterError):
    """The API server no longer has the changes after a version, or the pages of a list."""


class ServerError(ClusterError):
    """The API server answered that it, or a webhook that it asked, failed; another object may fare better."""


class DisconnectedError(ClusterError):
    """No request gets through, so another one would fare no better."""


class NotLeaderError(DisconnectedError):
    """Another replica works; nothing was sent to the API server."""


class UnavailableError(DisconnectedError):
    """The API server did not answer, or its answer is about the operator instead of the object."""
