"""The golden files: where they are, and what they should be."""

from pathlib import Path

from tests import quick_yaml
from tests.golden.pages import Pages, case, report
from tests.states.moments import MOMENTS, REPORTS
from tests.states.passes import planned, reached, reported, status

CASES, OBJECTS = (Path(__file__).parent / name for name in ("cases", "objects"))
NAMES = (*MOMENTS, *REPORTS)
"""Of all cases."""


def text(name: str, known: Pages) -> str:
    """The text of a case, as it should be. ``known``: the pages that it is told by."""
    if name in REPORTS:
        return report(reported(name))
    before = reached(name)
    return case(planned(name), known, status(name), before.spec, before.of_kind("Job"))


def stored() -> Pages:
    """The pages as they are in the files."""
    return {path.stem: quick_yaml.load(path.read_text(encoding="utf-8")) for path in OBJECTS.glob("*.yaml")}
