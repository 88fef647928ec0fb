"""TritonDeployments with results: recorded from real clusters, and one that is made for its edges."""

import copy
from pathlib import Path
from typing import Any

from tests.states import passes
from triton_plugin.reading.subject import Subject, parse

FOLDER = Path(__file__).parent / "recorded"
EXAMPLES = Path(__file__).parents[2] / "docs/examples/recorded"
RECORDED = sorted([*FOLDER.glob("*.yaml"), *EXAMPLES.glob("*.yaml")])
"""What `kubectl get td/NAME configmap/NAME-results -o yaml` printed after a real run, one file an example."""
HOSTILE = "</script><script>document.title='taken'</script>|`${7*7}`[b]{{7*7}}&amp;\x1b[31m\"'"
"""Words of a user's program that mean something to HTML, Markdown, templates and terminals."""


def golden(case: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """An object of tests/golden and its results."""
    cluster = passes.reached(case)
    none: dict[str, Any] = {"kind": "ConfigMap", "metadata": {"name": "digits-results"}, "data": {}}
    results = cluster.objects.get(("ConfigMap", "digits-results"), none)
    return copy.deepcopy((cluster.body(), results))


def expected(case: str) -> dict[str, Any]:
    """The status that the pass of a case of tests/golden writes."""
    return passes.status(case)


def ready() -> Subject:
    """Four candidates, all passed, one serves."""
    return parse(*golden("ready"))


def searched() -> Subject:
    """Two candidates, two searches; one of these failed, what the other found serves."""
    return parse(*golden("search-failed"))


def saturated() -> Subject:
    """One candidate, measured until its server was saturated, and at two request rates."""
    return parse(*golden("saturated"))


def hostile() -> Subject:
    """A candidate failed, and all its words are an attacker's."""
    body, results = copy.deepcopy(golden("ready"))
    failed = body["status"]["candidates"][0]
    failed |= {"state": "Failed", "reason": "OutputsDiffer", "message": HOSTILE, "profile": "", "throughput": ""}
    del failed["rank"]
    body["status"]["candidates"][1]["name"] = "$x$ </text>" + HOSTILE
    body["status"]["performance"]["environment"]["cpu"] = HOSTILE
    body["status"]["performance"]["environment"]["perfAnalyzer"] = [HOSTILE]
    body["status"]["conditions"][0]["message"] = HOSTILE
    body["status"]["accuracy"][0]["metric"] = HOSTILE
    body["status"]["search"] = [{"candidate": failed["name"], "measurements": 3, "ended": "Failed", "message": HOSTILE}]
    return parse(body, results)
