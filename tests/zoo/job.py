"""One Job of a rehearsal, inside its image: `python3 -m tests.zoo.job STAGE REQUEST`, which prints its answer last."""

import sys
from collections.abc import Callable
from typing import Any

from tests.converters.run_stage import run_convert, run_packages, run_reference
from triton_converters.claim_store.root import mark
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.document import Document
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.stages import STAGES
from triton_converters.failures import failure_of


def run_source(request: SourceRequest) -> Document:
    """Run the source stage, whose modules need what a server's image lacks."""
    from triton_converters.stages import source

    return source.run(request)


PROGRAMS: dict[str, Callable[[Any], Document]] = {
    "source": run_source,
    "packages": run_packages,
    "reference": run_reference,
    "convert": run_convert,
}


def main(stage: str, text: str) -> None:
    """Run the stage, and print its outcome."""
    request: Any = STAGES[stage].request.from_json(text)
    if not layout.ROOT.exists():
        layout.ROOT.mkdir()
        mark(layout.ROOT)
    try:
        outcome = Outcome(stage, request.key, PROGRAMS[stage](request))
    except Exception as error:
        failure = failure_of(error)
        outcome = Outcome(stage, request.key, None, failure.reason, failure.message)
    print(outcome.to_json())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
