"""The pictures of the README, drawn from a saved run: what one object says, and what the operator found out for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import yaml

from triton_operator.api.measured_status import AccuracyStatus
from triton_plugin.reading.subject import parse_saved
from triton_plugin.telling.report.document import CandidateReport, Report, report
from triton_plugin.telling.report.palette import ALERT, FAINT, INK, PAPER, SERIES

ROOT = Path(__file__).parents[2]
RUN = ROOT / "tests/report/recorded/digits.yaml"
"""What `kubectl get td/NAME configmap/NAME-results -o yaml` printed of a real run."""
OBJECT = ROOT / "hack/docs/overview-object.yaml"
"""The object of that run, as it was applied."""
THEMES = ("light", "dark")
STEPS = ("convert", "check answers", "judge accuracy", "measure", "choose", "serve")
CHARACTER = 0.602
"""Width of a character of the monospaced fonts, in font sizes."""
TEXT, SMALL, LINE = 13.0, 11.5, 21.0
"""Font sizes and the height of a line, in pixels."""
PAD = 16.0
"""Space within the border of a card, in pixels."""
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"


@dataclass(frozen=True)
class Theme:
    """The colours of a picture."""

    ink: str
    quiet: str
    faint: str
    paper: str
    alert: str
    accent: str


def pages() -> dict[Path, str]:
    """Return the pictures by their paths: wide and narrow, each light and dark."""
    found = report(parse_saved(yaml.safe_load_all(RUN.read_text(encoding="utf-8"))))
    lines = OBJECT.read_text(encoding="utf-8").splitlines()
    return {
        ROOT / f"docs/overview-{shape}-{name}.svg": draw(lines, found, Theme(*(pair[index] for pair in _PAIRS)))
        for index, name in enumerate(THEMES)
        for shape, draw in (("wide", _wide), ("narrow", _narrow))
    }


_PAIRS = (INK, SERIES[7], FAINT, PAPER, ALERT, SERIES[2])


def _wide(lines: Sequence[str], found: Report, theme: Theme) -> str:
    left, gap, width = 372.0, 44.0, 980.0
    right = width - left - gap
    height = 2 * PAD + LINE * (max(len(lines), len(found.candidates) + 3) + 1.5)
    parts = [
        *_steps(0, 0, width, theme),
        *_card(0, 44, left, height, "You apply one object, such as", theme),
        *_code(PAD, 44 + PAD + 2.3 * LINE, lines, theme),
        *_text(left + gap / 2, 44 + height / 2 + 8, "→", theme.quiet, 26, text_anchor="middle"),
        *_card(left + gap, 44, right, height, "The operator finds out", theme),
        *_table(left + gap + PAD, 44 + PAD + 2.3 * LINE, right - 2 * PAD, found, theme),
    ]
    return _svg(width, 44 + height, parts, found)


def _narrow(lines: Sequence[str], found: Report, theme: Theme) -> str:
    width = 400.0
    first = 2 * PAD + LINE * (len(lines) + 1.5)
    second = 2 * PAD + LINE * (len(found.candidates) + 4.5)
    below = first + 36
    parts = [
        *_card(0, 0, width, first, "You apply one object, such as", theme),
        *_code(PAD, PAD + 2.3 * LINE, lines, theme),
        *_text(width / 2, first + 26, "↓", theme.quiet, 24, text_anchor="middle"),
        *_card(0, below, width, second, "The operator finds out", theme),
        *_table(PAD, below + PAD + 2.3 * LINE, width - 2 * PAD, found, theme, wide=False),
    ]
    return _svg(width, below + second, parts, found)


def _steps(x: float, y: float, width: float, theme: Theme) -> Iterator[str]:
    """The stages, as a row of words with arrows between them."""
    each = width / len(STEPS)
    for number, step in enumerate(STEPS):
        middle = x + each * (number + 0.5)
        yield from _text(middle, y + 20, step, theme.ink, TEXT, text_anchor="middle", font_family=SANS)
        if number:
            yield from _text(x + each * number, y + 20, "→", theme.quiet, 16, text_anchor="middle")


def _card(x: float, y: float, width: float, height: float, title: str, theme: Theme) -> Iterator[str]:
    yield (
        f'<rect x="{x + 0.5:g}" y="{y + 0.5:g}" width="{width - 1:g}" height="{height - 1:g}" rx="8"'
        f' fill="{theme.paper}" stroke="{theme.faint}"/>'
    )
    yield from _text(x + PAD, y + PAD + 12, title, theme.ink, TEXT, font_family=SANS, font_weight="600")


def _code(x: float, y: float, lines: Sequence[str], theme: Theme) -> Iterator[str]:
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        place = x + indent * CHARACTER * SMALL
        yield from _text(place, y + LINE * number, line.strip(), theme.ink, SMALL)


def _table(x: float, y: float, width: float, found: Report, theme: Theme, *, wide: bool = True) -> Iterator[str]:
    """The candidates by rank, those that failed last, and below what serves."""
    metric = found.accuracy[0].metric if found.accuracy else ""
    columns = [("candidate", 0.0, "start"), ("inferences/s", 0.62 if wide else 0.58, "end")]
    columns += [("p99", 0.8 if wide else 0.78, "end"), (metric, 1.0, "end")]
    largest = max((float(each.status.throughput or 0) for each in found.candidates), default=0.0)
    for heading, share, anchor in columns:
        yield from _text(x + width * share, y, heading, theme.quiet, SMALL, text_anchor=anchor, font_family=SANS)
    for number, candidate in enumerate(sorted(found.candidates, key=_order), start=1):
        line = y + LINE * number
        cells, colour, weight = _cells(candidate, theme)
        if wide and largest and candidate.status.throughput:
            length = width * 0.2 * float(candidate.status.throughput) / largest
            yield (
                f'<rect x="{x + width * 0.27:.1f}" y="{line - 9:.1f}" width="{length:.1f}" height="10" rx="2"'
                f' fill="{colour}" fill-opacity="0.55"/>'
            )
        for (heading, share, anchor), text in zip(columns, [*cells, _accuracy(candidate.accuracy)], strict=False):
            del heading
            yield from _text(x + width * share, line, text, colour, SMALL, text_anchor=anchor, font_weight=weight)
    serving = found.serving
    if serving is not None:
        below = y + LINE * (len(found.candidates) + 1.6)
        text = f"{serving.candidate} serves: {serving.throughput}/s at p99 {serving.p99_latency}"
        yield from _text(x, below, text, theme.accent, SMALL, font_family=SANS, font_weight="600")
        yield from _text(x, below + LINE, _machine(found), theme.quiet, SMALL, font_family=SANS)


def _machine(found: Report) -> str:
    """How the active revision was measured, and on what the candidates were."""
    environments = (each.measured.environment for each in found.candidates if each.measured is not None)
    environment = next(each for each in environments if each is not None)
    cores = environment.cpu.rpartition(",")[2].strip()
    return f"through its Service; {environment.device}, {cores}, tritonserver {environment.server_version}"


def _order(candidate: CandidateReport) -> tuple[bool, int]:
    rank = candidate.status.rank
    return rank is None, rank or 0


def _cells(candidate: CandidateReport, theme: Theme) -> tuple[list[str], str, str]:
    """The first cells of a candidate, its colour and its weight."""
    status = candidate.status
    if status.state == "Failed":
        return [f"✗ {status.name}", str(status.reason)], theme.alert, "400"
    chosen = status.state == "Selected"
    cells = [f"{'✓' if chosen else ' '} {status.name}", str(status.throughput), str(status.p99_latency)]
    return cells, theme.accent if chosen else theme.ink, "700" if chosen else "400"


def _accuracy(rows: Sequence[AccuracyStatus]) -> str:
    return f"{float(rows[0].served):.4f}" if rows and rows[0].served else ""


def _text(x: float, y: float, text: str, colour: str, size: float, **style: str) -> Iterator[str]:
    """Yield a text. ``style``: attributes of SVG, with underscores for their hyphens."""
    given = {"font_family": MONO} | style
    attributes = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in given.items())
    yield (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size:g}" {attributes} xml:space="preserve">'
        f"{escape(text)}</text>"
    )


def _svg(width: float, height: float, parts: Sequence[str], found: Report) -> str:
    title = f"One object, and the candidates that the operator measured for {found.name}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
            f' viewBox="0 0 {width:g} {height:g}" role="img">',
            f"<title>{escape(title)}</title>",
            *parts,
            "</svg>\n",
        ]
    )
