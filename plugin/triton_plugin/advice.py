"""What to do about a reason: docs/troubleshooting.md's own words, copied by hack/docs/advice.py."""

import json
from functools import cache
from importlib.resources import files


@cache
def _all() -> dict[str, str]:
    text = files("triton_plugin").joinpath("advice.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def advice(reason: str) -> str:
    """Plain text; empty where there is nothing to do or nothing is known."""
    return _all().get(reason, "")
