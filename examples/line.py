"""The outcome of an example on one line."""

from triton_operator.api.status import TritonDeploymentStatus

HEADINGS = ("EXAMPLE", "CANDIDATE", "INF/S", "P99", "ACCURACY", "CANDIDATES", "SECONDS")
WIDTHS = (16, 14, 9, 9, 34, 30)


def heading() -> str:
    """Return the line of headings."""
    return _join(HEADINGS)


def line(name: str, status: TritonDeploymentStatus, seconds: float) -> str:
    """Return name, active candidate, throughput, p99 latency, metrics with a threshold, states and duration."""
    serving = status.active
    metrics = ", ".join(f"{row.metric} {row.served} ({row.framework})" for row in status.accuracy if row.threshold)
    states = [candidate.state for candidate in status.candidates]
    counted = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
    return _join(
        (
            name,
            serving.candidate if serving else "none",
            serving.throughput if serving else "",
            serving.p99_latency or "" if serving else "",
            metrics or "numerical only",
            counted,
            f"{seconds:.0f}",
        )
    )


def _join(cells: tuple[str, ...]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=False)]
    return "  ".join([*padded, cells[-1]])
