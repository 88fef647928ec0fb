"""The server of a source that is followed, which may lie, and what of its versions may be taken."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.answers import Script, message
from tests.simulation.api_server import Body, require
from tests.simulation.cluster import Cluster
from triton_converters.contract.envelope import EXIT_FINAL, EXIT_RETRY, Outcome
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import FOLLOWING
from triton_converters.contract.results import SourceResult
from triton_operator import names

CUT = Script(exit_code=EXIT_FINAL, reason=Reason.CHECKPOINT_INVALID, message="model.pt ends too early")
CHANGED = Script(exit_code=EXIT_RETRY, reason=Reason.SOURCE_CHANGED, message="the source changed while it was read")
FARES: Mapping[str, Mapping[str, Script]] = {
    "good": {},
    "half": {"reference": CUT},
    "wrong": {"metrics": Script(accuracy=0.1)},
    "worse": {"metrics": Script(accuracy=0.96)},
    "slow": {"profile": Script(p99=50_000)},
}
"""How Jobs of some stages fare with a version, by the first part of its name."""
ANSWERS: Mapping[str, Script] = {
    "away": Script(exit_code=EXIT_RETRY, reason=Reason.SOURCE_UNREACHABLE, message="no answer"),
    "refuses": Script(exit_code=EXIT_RETRY, reason=Reason.SOURCE_ACCESS_DENIED, message="401"),
    "hangs": Script(hangs=True),
    "lies": Script(answer='{"stage": "look", "key": "0", "result": {"version": "", "exact": true, "label": "x"}}'),
    "babbles": Script(answer="<html>" * 800),
}
"""What it may answer besides a version."""


@dataclass
class Origin:
    """The server, and what it said."""

    cluster: Cluster
    says: list[str] = field(default_factory=lambda: ["good-0"])
    """Versions, and names of ANSWERS: each look gets the next one, and after the last one the first again."""
    told: dict[str, str] = field(default_factory=dict)
    """What each look was told, by the key of its Job."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions by what is made of them: digests of sources, keys of references and of revisions."""

    def script(self, stage: str, request: Any) -> Script | None:
        """How a Job fares; None: as it does with any source."""
        if stage == "look":
            said = self.told.setdefault(request.key, self._next())
            return ANSWERS.get(said) or Script(content=said, exact=_is_exact(request.source.uri))
        if stage == "source":
            return self._downloaded(request)
        if stage not in ("reference", "convert", "metrics", "profile"):
            return None
        version = self.versions.get(request.source if stage in ("reference", "convert") else request.reference)
        if version is None:
            return None
        self.versions[request.key] = version
        return FARES[version.partition("-")[0]].get(stage)

    def _next(self) -> str:
        return self.says[len(self.told) % len(self.says)]

    def _downloaded(self, request: Any) -> Script | None:
        # A claim has no versions.
        if not request.version or request.published or request.uri.startswith("pvc:"):
            return None
        if (script := ANSWERS.get(self._next())) is not None:
            return script
        if self._next() != request.version and not _is_exact(request.uri):
            return CHANGED
        result = Outcome.from_json(message("source", "", request, Script())).result
        assert isinstance(result, SourceResult)
        self.versions[result.digest] = request.version
        return None

    def check_results(self, data: Mapping[str, str]) -> None:
        """What is about to be recorded as taken was told by as many looks as it takes, and is wanted."""
        stored = self.cluster.objects.get(("ConfigMap", names.results("digits")), {}).get("data", {})
        known, before = (json.loads(each.get(FOLLOWING, "{}")) for each in (data, stored))
        version = _version(known.get("taken"))
        of_status = _version(self.cluster.status.get("source", {}).get("serving"))
        if known.get("is_asked") or version in ("", _version(before.get("taken")), of_status):
            return
        source, looks = self.cluster.spec["source"], list(self.told.values()).count(version)
        require(looks >= (1 if _is_exact(source["uri"]) else 2), f"{version} is taken, and {looks} looks found it")
        require(source.get("onChange") != "Notify", f"{version} is taken, and is only to be told of")

    def check_status(self, status: Body) -> None:
        """The newest version that is told is one that the server has told."""
        latest = _version(status.get("source", {}).get("latest"))
        require(latest in {"", *self.told.values()}, f"{latest} is the newest version, and no look found it")

    def check_active(self, server: str) -> None:
        """What becomes active is not half a push."""
        body = self.cluster.objects.get(("Deployment", server))
        version = self.versions.get(body["metadata"]["labels"][names.KEY_LABEL], "") if body is not None else ""
        require(not version.startswith("half"), f"{server} becomes active, and is {version}")


def _version(found: Mapping[str, str] | None) -> str:
    return found["version"] if found else ""


def _is_exact(uri: str) -> bool:
    return uri.startswith("oci:")
