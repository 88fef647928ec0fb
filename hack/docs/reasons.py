"""docs/reasons.md, from the reasons in the code."""

from pathlib import Path

from triton_converters.contract.reasons import Reason

PAGE = Path(__file__).parents[2] / "docs/reasons.md"
HEAD = """\
# Reasons

Every reason that a condition, a candidate or an event can have. [Troubleshooting](troubleshooting.md) says what to do
about the reasons that stop you. This page is generated: `make generate`.

| Reason | Meaning |
|---|---|
"""


def pages() -> dict[Path, str]:
    """Return the page by its path."""
    return {PAGE: HEAD + "".join(f"| `{reason}` | {reason.doc} |\n" for reason in Reason)}
