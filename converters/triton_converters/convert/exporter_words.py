"""What an exporter's error says, and which line of the user's code it is about."""

import re
from pathlib import Path

from triton_converters.load.framework import Framework
from triton_converters.user.user_code import location

MEANING_CHARACTERS = 500
"""Longest text kept of an exporter's error, which may quote the whole graph."""


def told(error: BaseException, model: Framework) -> str:
    """Return the text of the root error, and where: exporters wrap it in advice, and TorchScript puts it last."""
    root = _root(error)
    lines = [line.strip() for line in str(root).splitlines() if line.strip(" ^~-=")]
    causes = [line for line in lines[1:] if re.match(r"\w+(Error|Exception): ", line)]
    text = causes[-1] if causes else " ".join([type(root).__name__ + ":", *lines])
    meaning = f"{text[:MEANING_CHARACTERS]} ..." if len(text) > MEANING_CHARACTERS else text
    return f"{meaning} (at {_place(error, model)})"


def _place(error: BaseException, model: Framework) -> str:
    """Return file and line of the user's code: where the exporter's text points, or the innermost frame."""
    for file, line in re.findall(r'File "([^"]+)", line (\d+)', str(_root(error))):
        if Path(file).is_relative_to(model.source):
            return f"{Path(file).relative_to(model.source)}:{line}"
    return location(error, model.source, model.path)


def _root(error: BaseException) -> BaseException:
    seen = {id(error)}
    while error.__cause__ is not None and id(error.__cause__) not in seen:
        error = error.__cause__
        seen.add(id(error))
    return error
