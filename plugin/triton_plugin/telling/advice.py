"""What to do about a reason: the text of docs/troubleshooting.md, copied by hack/docs/advice.py."""

import json
from functools import cache
from importlib.resources import files
from shlex import quote

NEW_VERSION, NEW_DIGEST = "set a new spec.source.version", "set spec.source.sha256 to the new digest"
"""How an object learns of changed files, without and with a digest in its spec."""
CHANGE, EXPLANATION = "{change}", "{explanation}"
"""What stands in the copy for one of these, and for the command that explains an object."""
EXPLAIN = "(kubectl triton explain NAME)"


@cache
def _advice_by_reason() -> dict[str, str]:
    text = files("triton_plugin.telling").joinpath("advice.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def advice(
    reason: str, name: str = "NAME", place: str = "", *, digest: str | None = None, is_explained: bool = False
) -> str:
    """Return what to do as plain text; empty if there is nothing to do or nothing is known.

    ``name``, ``place``: of the object and its options, for the commands in it. ``digest``: its spec.source.sha256.
    ``is_explained``: the explanation of the object is right below the text.
    """
    arguments = f"{quote(name)} {place}".rstrip()
    text = _advice_by_reason().get(reason, "").replace(EXPLANATION, "below" if is_explained else EXPLAIN)
    return text.replace(CHANGE, NEW_DIGEST if digest else NEW_VERSION).replace(" NAME", f" {arguments}")
