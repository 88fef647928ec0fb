"""``python3 -m triton_converters.revision_check REQUEST``: whether a server may start on a revision.

It runs in a container of ours before a server's, and ends like a stage that failed if the server must not start.
"""

import os
import sys
from pathlib import Path

from triton_converters.claim_store import revision
from triton_converters.contract.envelope import EXIT_FINAL, EXIT_RETRY, Outcome
from triton_converters.contract.upkeep_requests import CheckRequest
from triton_converters.failures import failure_of


def main(arguments: list[str]) -> int:
    """Check, write a failure to the termination message, and return the exit code."""
    request = CheckRequest.from_json(arguments[0])
    try:
        revision.admit(request)
    except Exception as error:
        failure = failure_of(error)
        message = Outcome(request.stage, request.key, None, failure.reason, failure.message).to_json()
        Path(os.environ.get("TERMINATION_LOG", "/dev/termination-log")).write_text(message, encoding="utf-8")
        return EXIT_FINAL if failure.final else EXIT_RETRY
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
