"""What the status tells of a source that is followed. Pure."""

from triton_operator.api.status import SourceStatus, VersionStatus
from triton_operator.observed.following import Following, FoundVersion


def followed_source(
    source: SourceStatus | None, known: Following, serving: VersionStatus | None
) -> SourceStatus | None:
    """Return the part about the source with what looks found of it; None: nothing of it is known.

    ``serving``: the version of the active revision, if it is known.
    """
    if known.latest is None and serving is None:
        return source
    return (source or SourceStatus()).model_copy(
        update={
            "serving": serving,
            "latest": version_status(known.latest),
            "last_checked_at": known.checked_at,
        }
    )


def version_status(version: FoundVersion | None) -> VersionStatus | None:
    """Return a version as the status tells it; None: there is none."""
    if version is None:
        return None
    return VersionStatus(version=version.version, label=version.label, found_at=version.found_at)
