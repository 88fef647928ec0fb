"""Text that means something to a terminal, a page or a spreadsheet."""

from unicodedata import category

CONTROLS = {
    "ESC": "\x1b[2J",
    "NUL": "\x00",
    "CSI of one byte": "\x9b31m",
    "DEL": "\x7f",
    "right-to-left override": "\u202e",
    "isolate": "\u2066",
    "no width": "\u200b",
    "carriage return": "\r",
    "line separator": "\u2028",
    "half a surrogate pair": "\ud800",
}
"""What a terminal obeys, or shows as something else, by its name."""
HOSTILE = "".join(CONTROLS.values()).replace("\ud800", "")
"""All of them that UTF-8 can hold."""


def obeyed(text: str) -> set[str]:
    """The characters of a text that a terminal would obey, or that would hide something, by their Unicode category."""
    return {each for each in text if category(each) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and each not in "\n\t"}
