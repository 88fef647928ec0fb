"""Draws the cost of a pass against the number of objects: docs/reconcile-cost.svg."""

from collections.abc import Mapping, Sequence
from math import log10

from hack.deploy.command import ROOT

PICTURE = ROOT / "docs/reconcile-cost.svg"
WIDTH, HEIGHT, MARGIN = 640, 320, 56
Point = tuple[float, float]
"""A number of objects, and milliseconds."""
SERIES = {
    "cpuMillisecondsOfAPass": ("CPU time of a pass over a Ready object with 29 children", "#1a5fb4"),
}


def svg(series: Mapping[str, Sequence[Point]]) -> str:
    """Return lines over a logarithmic axis of objects; ``series`` by its key in SERIES."""
    points = [point for line in series.values() for point in line]
    low, high = log10(min(x for x, _ in points)), log10(max(x for x, _ in points))
    top = max(y for _, y in points) * 1.25
    across, up = (WIDTH - 2 * MARGIN) / ((high - low) or 1), (HEIGHT - 2 * MARGIN) / top

    def place(point: Point) -> Point:
        return round(MARGIN + across * (log10(point[0]) - low), 1), round(HEIGHT - MARGIN - up * point[1], 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{MARGIN} {MARGIN}V{HEIGHT - MARGIN}H{WIDTH - MARGIN}" fill="none" stroke="black"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">TritonDeployments</text>',
        f'<text x="{MARGIN}" y="{MARGIN - 34}" text-anchor="middle">ms</text>',
    ]
    for objects in sorted({x for x, _ in points}):
        x, y = place((objects, 0))
        parts.append(f'<text x="{x}" y="{y + 18}" text-anchor="middle">{objects:,.0f}</text>')
    for share in (0, 0.5, 1):
        x, y = place((10**low, share * top))
        parts.append(f'<text x="{x - 8}" y="{y + 4}" text-anchor="end">{share * top:.1f}</text>')
    for number, (key, line) in enumerate(series.items()):
        name, colour = SERIES[key]
        places = [place(point) for point in line]
        path = "L".join(f"{x} {y}" for x, y in places)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>' for x, y in places]
        parts.append(f'<text x="{MARGIN + 24}" y="{MARGIN - 34 + 18 * number}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])


def draw(series: Mapping[str, Sequence[Point]]) -> None:
    """Write the picture."""
    PICTURE.write_text(svg(series), encoding="utf-8")
