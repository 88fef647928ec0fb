"""Draws a ramp: load and replicas over time, and p99 latency below."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WIDTH, PANEL, MARGIN = 720, 150, 60
BLUE, GREEN, RED, GREY = "#1a5fb4", "#26a269", "#c01c28", "#77767b"


@dataclass(frozen=True)
class Sample:
    """What was seen at a time, in seconds since the start of the load."""

    at: float
    rate: float
    """Requests that arrived, a second."""
    replicas: int
    """Ready pods of the active revision."""
    p99: float
    """99th percentile of the latencies of the requests that arrived in the last seconds, in milliseconds."""
    failed: int
    """Requests that failed so far."""


@dataclass(frozen=True)
class Line:
    """A line of a panel, with its name."""

    name: str
    color: str
    points: Sequence[tuple[float, float]]
    is_level: bool = False
    """Whether it is a threshold, drawn dashed."""


def svg(samples: Sequence[Sample], threshold: float, budget: float) -> str:
    """Return the picture.

    ``threshold``: requests a second above which a replica gets help. ``budget``: of the p99 latency, in milliseconds.
    """
    end = samples[-1].at
    carried = [(each.at, threshold * each.replicas) for each in samples]
    panels = (
        ("requests/s", [
            Line("load", BLUE, [(each.at, each.rate) for each in samples]),
            Line(f"{threshold:.3g}/s for each ready replica", GREY, carried, is_level=True),
        ]),
        ("replicas", [Line("ready replicas", GREEN, [(each.at, each.replicas) for each in samples])]),
        ("p99, ms", [
            Line("p99 latency", RED, [(each.at, each.p99) for each in samples]),
            Line("the constraint", GREY, [(0, budget), (end, budget)], is_level=True),
        ]),
    )  # fmt: skip
    height = len(panels) * (PANEL + MARGIN) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for number, (unit, lines) in enumerate(panels):
        parts += _panel(unit, lines, end, number * (PANEL + MARGIN) + MARGIN)
    parts.append(f'<text x="{WIDTH / 2}" y="{height - 12}" text-anchor="middle">minutes</text></svg>')
    return "\n".join(parts) + "\n"


def _panel(unit: str, lines: Sequence[Line], end: float, top: float) -> Iterable[str]:
    highest = max(y for line in lines for _, y in line.points) * 1.1 or 1.0
    across, up, floor = (WIDTH - 2 * MARGIN) / end, PANEL / highest, top + PANEL
    yield f'<path d="M{MARGIN} {top}V{floor}H{WIDTH - MARGIN}" fill="none" stroke="black"/>'
    yield f'<text x="{MARGIN}" y="{top - 28}" text-anchor="middle">{unit}</text>'
    for share in (0, 0.5, 1):
        y = floor - PANEL * share
        yield f'<text x="{MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{share * highest:.3g}</text>'
    for minute in range(0, int(end // 60) + 1, 2):
        yield f'<text x="{MARGIN + across * minute * 60:.1f}" y="{floor + 16}" text-anchor="middle">{minute}</text>'
    for number, line in enumerate(lines):
        points = " ".join(f"{MARGIN + across * x:.1f},{floor - up * y:.1f}" for x, y in line.points)
        dash = ' stroke-dasharray="5 4"' if line.is_level else ""
        yield f'<polyline points="{points}" fill="none" stroke="{line.color}" stroke-width="1.5"{dash}/>'
        x = MARGIN + 60 + 260 * number
        yield f'<path d="M{x - 26} {top - 32}h20" stroke="{line.color}" stroke-width="2"{dash}/>'
        yield f'<text x="{x}" y="{top - 28}">{line.name}</text>'
