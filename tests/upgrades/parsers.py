"""``python3 -I parsers.py CONTRACT.zip``: parse requests by the contract that the archive holds.

Standard input is a JSON list of [stage, request]; standard output is one of [stage, error], of what was refused. No
module of this tree is imported: -I keeps PYTHONPATH out.
"""

import json
import sys

archive = sys.argv[1]
sys.path.insert(0, archive)

from triton_converters.contract import document, stages, upkeep_requests  # noqa: E402 - from the archive

PARSERS = {name: each.request for name, each in stages.STAGES.items()} | {"check": upkeep_requests.CheckRequest}
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
