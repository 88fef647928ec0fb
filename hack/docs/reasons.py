"""Write docs/reasons.md from the reasons in the code: `python3 -m hack.docs.reasons`."""

from pathlib import Path

from triton_converters.contract.reasons import Reason

PAGE = Path(__file__).parents[2] / "docs/reasons.md"
HEAD = """\
# Reasons

Every reason that a condition, a candidate or an event can have. [Troubleshooting](troubleshooting.md) says what to do
about the reasons that stop you. This page is generated: `python3 -m hack.docs.reasons`.

| Reason | Meaning |
|---|---|
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"| `{reason}` | {reason.doc} |\n" for reason in Reason)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
