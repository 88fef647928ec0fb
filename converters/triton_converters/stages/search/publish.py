"""Add the new points to those of the search, and publish what this part answers."""

from pathlib import Path

from triton_converters.contract.measurement_requests import SearchRequest
from triton_converters.contract.results import SearchResult
from triton_converters.incoming import documents, measured
from triton_converters.incoming.plausible import check_environment
from triton_converters.search import journal, plausible
from triton_converters.search.space import Space

STAGE = "search"


def run(request: SearchRequest, incoming: Path) -> SearchResult:
    """Publish ``measurements/<key>/``; raises what ``measured.publish`` raises.

    A search that failed keeps what it measured before, and the next try goes on from there.
    """

    def judge(result: SearchResult, directory: Path) -> None:
        check_environment(result.environment, incoming / documents.RESULT)
        plausible.check(request, result, incoming / documents.RESULT)

    journal.add(request.search, Space.of(request), incoming)
    return measured.publish(STAGE, request.key, SearchResult, incoming, judge)
