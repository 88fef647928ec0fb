"""Tells which version of a followed source serves. Pure."""

from triton_operator.api.status import TritonDeploymentStatus


def versions(status: TritonDeploymentStatus) -> str:
    """Return which version of a followed source serves, and which one the last look found."""
    source = status.source
    if source is None or source.latest is None:
        return ""
    serving = source.serving.label if source.serving is not None else "one from before it was followed"
    looked = f"The source is followed: {serving} serves; the look at {source.last_checked_at} found"
    if source.serving is not None and source.serving.version == source.latest.version:
        return f"{looked} nothing newer."
    return f"{looked} {source.latest.label}, first found at {source.latest.found_at}."
