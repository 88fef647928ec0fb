"""The pictures of the README show what was applied, and what was found out for it."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hack.docs.overview import OBJECT, RUN, pages
from triton_plugin.reading.subject import parse_saved
from triton_plugin.telling.report.document import report


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value that is no container, by where it is."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path, value
    else:
        for key, each in items:
            yield from leaves(each, (*path, key))


def applied() -> dict[str, Any]:
    """The object of the saved run."""
    documents = yaml.safe_load_all(RUN.read_text(encoding="utf-8"))
    items = [item for document in documents for item in document.get("items", [document])]
    return next(item for item in items if item["kind"] == "TritonDeployment")


def test_what_is_shown_is_a_part_of_what_was_applied() -> None:
    shown, whole = yaml.safe_load(OBJECT.read_text(encoding="utf-8")), dict(leaves(applied()))
    found = dict(leaves(shown))
    assert found
    assert {path: value for path, value in found.items() if whole.get(path) != value} == {}


@pytest.mark.parametrize("page", pages().items(), ids=lambda page: page[0].name)
def test_every_candidate_is_there_with_its_figures(page: tuple[Any, str]) -> None:
    found = report(parse_saved(yaml.safe_load_all(RUN.read_text(encoding="utf-8"))))
    assert len(found.candidates) > 1
    for candidate in found.candidates:
        assert candidate.status.name in page[1]
        assert f">{candidate.status.throughput}<" in page[1]
    assert found.serving is not None
    assert f"{found.serving.throughput}/s" in page[1]
