"""Names of an ONNX graph's tensors that the quantizer does not make again. Pure.

The quantizer makes names of those that are there, and looks at no others: where a graph has ``x`` and ``x_scale``, what
was one tensor becomes the other.
"""

import re
from collections.abc import Mapping
from typing import Any

from triton_converters.graph.scopes import rename
from triton_converters.graph.walk import names

MADE = re.compile(r"_(scales?|zero_points?|quantized|(De)?[Qq]uant.*|\w*_(mul|scale|quantized|zero_point))$")
"""How names end that the quantizer makes of others."""


def apart(model: Any) -> dict[str, str]:
    """Rename all tensors in place if a name looks like one that the quantizer makes; return the new names by the old.

    Empty: nothing was renamed.
    """
    known = names(model.graph)
    if not any(MADE.search(each) for each in known):
        return {}
    prefix = "t"
    while any(each.startswith(prefix) for each in known):
        prefix += "t"
    changed = {name: f"{prefix}{number}" for number, name in enumerate(sorted(known))}
    rename(model.graph, changed)
    return changed


def restore(model: Any, changed: Mapping[str, str]) -> None:
    """Give inputs and outputs the names that they had."""
    ends = {value.name for values in (model.graph.input, model.graph.output) for value in values}
    rename(model.graph, {new: old for old, new in changed.items() if new in ends})
