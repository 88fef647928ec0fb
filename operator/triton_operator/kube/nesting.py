"""JSON of objects that are nested deeper than Python's reader goes: what lies too deep is left out. Pure.

The API server takes 10,000 levels, in a field without a schema or in `metadata.managedFields`. Python's reader stops
sooner, and one object of one tenant must not end a list or a watch of all.
"""

import json
import re
from typing import Any

LEVELS = 100
"""The levels that are kept, of a list or a watch event too. No object that the operator understands has half of them:
a pod's affinity has 15 within a template, and a spec may have 32."""
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def loads(text: bytes) -> Any:
    """Return the decoded JSON, with null for each value that is too deep, if any is. Raises ValueError for no JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        return json.loads(shallow(text))


def dumps(value: Any) -> str:
    """Return compact JSON, with null for each value that is too deep, if any is."""
    try:
        return json.dumps(value, separators=(",", ":"))
    except RecursionError:
        return json.dumps(_shallow(value, LEVELS), separators=(",", ":"))


def shallow(text: bytes) -> bytes:
    """Return the JSON text with null for each value that is too deep; as it is if none is."""
    kept, begin, level = [], 0, 0
    for token in _TOKEN.finditer(text):
        mark = text[token.start() : token.start() + 1]
        if mark in b"[{":
            level += 1
            if level == LEVELS + 1:
                kept += [text[begin : token.start()], b"null"]
        elif mark in b"]}":
            if level == LEVELS + 1:
                begin = token.end()
            level -= 1
    return b"".join([*kept, text[begin:]])


def _shallow(value: Any, levels: int) -> Any:
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return None
    if isinstance(value, dict):
        return {name: _shallow(each, levels - 1) for name, each in value.items()}
    return [_shallow(each, levels - 1) for each in value]
