"""Add the new points to those of the search, and publish what this part answers."""

from pathlib import Path

from triton_converters.contract import layout
from triton_converters.contract.measurement_requests import SearchRequest
from triton_converters.contract.results import SearchResult
from triton_converters.incoming import measured
from triton_converters.search import journal

STAGE = "search"


def run(request: SearchRequest, incoming: Path) -> SearchResult:
    """Publish ``measurements/<key>/``; raises what ``measured.publish`` raises.

    A search that failed keeps what it measured before, and the next try goes on from there.
    """
    journal.add(layout.search_directory(request.search), incoming)
    return measured.publish(STAGE, request.key, SearchResult, incoming)
