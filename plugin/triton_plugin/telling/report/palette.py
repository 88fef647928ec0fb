"""The colours of the plots. Plots are drawn with placeholders, which become CSS variables or the colours of a theme.

So one drawing follows the reader's light or dark theme inside the HTML report, and is a separate file elsewhere.
"""

import re

SERIES = (
    ("#1f6fb4", "#6db3f2"),
    ("#c4590b", "#f5a35c"),
    ("#2b8a3e", "#74d188"),
    ("#a3266f", "#f08bc3"),
    ("#6a4fb3", "#b39df3"),
    ("#00808a", "#58cdd6"),
    ("#8a6d00", "#e0c04a"),
    ("#5f6770", "#b4bcc4"),
)
"""Pairs for light and dark; neighbours differ in hue and in lightness."""
INK = ("#1b1f24", "#e6e8eb")
FAINT = ("#c9ced4", "#464c54")
PAPER = ("#ffffff", "#16191d")
ALERT = ("#b3261e", "#ff8a80")

_NAMED = {"ink": INK, "faint": FAINT, "paper": PAPER, "alert": ALERT} | {
    f"series-{number}": colours for number, colours in enumerate(SERIES)
}
_PLACEHOLDERS = {f"#0000{0xA0 + number:02x}": name for number, name in enumerate(_NAMED)}
_BY_NAME = {name: placeholder for placeholder, name in _PLACEHOLDERS.items()}
_ANY = re.compile("|".join(_PLACEHOLDERS))


def colour(name: str) -> str:
    """Return the placeholder to draw with: ``ink``, ``faint``, ``paper``, ``alert`` or ``series-N``."""
    return _BY_NAME[name]


def series(number: int) -> str:
    """Return the placeholder of the nth series; they repeat after the last."""
    return colour(f"series-{number % len(SERIES)}")


def as_variables(svg: str) -> str:
    """Return a drawing that uses the colours of its page."""
    return _ANY.sub(lambda found: f"var(--{_PLACEHOLDERS[found[0]]})", svg)


def as_light(svg: str) -> str:
    """Return a drawing in the colours of the light theme."""
    return _ANY.sub(lambda found: _NAMED[_PLACEHOLDERS[found[0]]][0], svg)


def variables(dark: bool) -> str:
    """Return the CSS declarations of one theme."""
    return " ".join(f"--{name}: {colours[dark]};" for name, colours in _NAMED.items())
