"""What the status tells of a source that is followed. Pure."""

from triton_operator.api.status import SourceStatus, VersionStatus
from triton_operator.observed.following import Following, FoundVersion


def followed_source(
    source: SourceStatus | None, known: Following, serving: VersionStatus | None, outdated_since: str = ""
) -> SourceStatus | None:
    """Return the part about the source with what looks found of it; None: nothing of it is known.

    ``serving``: the version of the active revision, if it is known. ``outdated_since``: what `outdated_since` returns.
    """
    if known.latest is None and serving is None:
        return source
    return (source or SourceStatus()).model_copy(
        update={
            "serving": serving,
            "latest": version_status(known.latest),
            "last_checked_at": known.checked_at,
            "outdated_since": outdated_since,
        }
    )


def outdated_since(last: SourceStatus | None, known: Following, serving: VersionStatus | None) -> str:
    """Return since when looks have found other versions than the one that serves; empty: they find that one.

    A source whose versions change faster than they serve, or than looks are sure of them, is outdated all the time.
    ``last``: what the last status tells.
    """
    if known.latest is None or (serving is not None and serving.version == known.latest.version):
        return ""
    is_same = last is not None and last.serving == serving
    return (last.outdated_since if last is not None and is_same else "") or known.latest.found_at


def version_status(version: FoundVersion | None) -> VersionStatus | None:
    """Return a version as the status tells it; None: there is none."""
    if version is None:
        return None
    return VersionStatus(version=version.version, label=version.label, found_at=version.found_at)
