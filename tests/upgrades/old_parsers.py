"""``python3 -I old_parsers.py CONTRACT.zip``: parse requests by the contract of 2bb6dae5, which the archive holds.

Standard input is a JSON list of [stage, request]; standard output is one of [stage, error], of what was refused. No
module of this tree is imported: -I keeps PYTHONPATH out.
"""

import json
import sys
from typing import Any

archive = sys.argv[1]
sys.path.insert(0, archive)

from triton_converters.contract import conversion_requests, document, measurement_requests, upkeep_requests  # noqa: E402 - from the archive

PARSERS: dict[str, Any] = {
    "source": conversion_requests.SourceRequest,
    "packages": conversion_requests.PackagesRequest,
    "reference": conversion_requests.ReferenceRequest,
    "convert": conversion_requests.ConvertRequest,
    "profile": measurement_requests.ProfileRequest,
    "metrics": measurement_requests.MetricsRequest,
    "search": measurement_requests.SearchRequest,
    "measure": measurement_requests.MeasureRequest,
    "snapshot": upkeep_requests.SnapshotRequest,
    "clean": upkeep_requests.CleanRequest,
    "check": upkeep_requests.CheckRequest,
}
"""By the stage's name in a container's arguments; `check` is what the container before a server is asked."""


def refusal(stage: str, request: str) -> str:
    """Why the request is refused; empty: it is parsed."""
    if stage not in PARSERS:
        return "the stage is not known"
    try:
        PARSERS[stage].from_json(request)
    except document.DocumentError as error:
        return str(error)
    return ""


assert str(document.__file__).startswith(archive), document.__file__
found = [[stage, said] for stage, request in json.load(sys.stdin) if (said := refusal(stage, request))]
json.dump(found, sys.stdout)
