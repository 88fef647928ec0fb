"""What the text of an argument stands for, where it is more than a text or a number."""

import math
import re
from argparse import ArgumentTypeError
from pathlib import Path


def threshold(text: str) -> tuple[str, float]:
    """Return a metric's name and its least value, of METRIC=MIN; raises ArgumentTypeError for anything else."""
    metric, _, value = text.rpartition("=")
    try:
        least = float(value)
    except ValueError:
        least = math.nan
    if not metric or not math.isfinite(least):
        raise ArgumentTypeError(f"{text!r} is no threshold such as accuracy=0.9")
    return metric, least


def time(text: str) -> float:
    """Return a duration in seconds; raises ArgumentTypeError for what is none."""
    # The types of the API come with it.
    from triton_operator.api.duration import PATTERN, seconds

    if re.fullmatch(PATTERN, text) is None:
        raise ArgumentTypeError(f"{text!r} is not a number and a unit (us, ms, s, m or h), such as 90s or 30m")
    return seconds(text)


def named_path(text: str) -> tuple[str, Path]:
    """Return the parts of NAME=PATH, the path absolute; raises ArgumentTypeError for anything else."""
    name, _, path = text.partition("=")
    if not name or not path:
        raise ArgumentTypeError(f"{text!r} is not NAME=PATH")
    return name, Path(path).absolute()
