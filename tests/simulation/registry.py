"""The server of a source that is followed: what it offers from night to night, and how its models are."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from tests.simulation.answers import GOOD, INPUT, OUTPUT, Script, message
from tests.simulation.cluster import Cluster
from tests.states.deployment import a_deployment
from triton_converters.contract.comparison_result import ComparisonResult, MarkMetrics
from triton_converters.contract.envelope import EXIT_FINAL, EXIT_RETRY, Outcome
from triton_converters.contract.look import LookResult
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import CandidateMetrics, MetricsResult, ReferenceResult, Signature, SourceResult
from triton_operator.names import KEY_LABEL

MOST_STEPS = 600
"""Steps of the cluster within which the work of a night has to end."""
URIS = {
    "hf": "hf://acme/digits",
    "oci": "oci://registry.example/acme/digits:nightly",
    "https": "https://models.example/digits/model.onnx",
    "s3": "s3://models/digits",
    "mlflow": "mlflow://mlflow.example/digits",
    "azure": "azure://models/digits",
}
"""A source of each scheme that can be followed."""
EXACT = ("hf", "mlflow", "oci")
"""Those of them whose versions are whole as soon as they are there."""


@dataclass(frozen=True)
class Model:
    """The model of a version."""

    accuracy: float = 0.9
    p99: int = 5000
    """Microseconds."""
    is_finite: bool = True
    outputs: int = 10
    """Values of its output."""
    is_whole: bool = True
    """Whether all its files are there."""


@dataclass
class Registry:
    """How Jobs fare with the source as it is now; the scripts of a cluster."""

    exact: bool = True
    offers: str = "v1"
    """The version that it has now."""
    models: dict[str, Model] = field(default_factory=dict)
    """The models of versions; of any other one it is the usual one."""
    away: Script | None = None
    """How looks and downloads fail; None: they do not."""
    looked: set[str] = field(default_factory=set, repr=False)
    found: dict[str, str] = field(default_factory=dict, repr=False)
    """Versions by what is made of them: digests of sources, keys of references and of revisions."""

    def __call__(self, stage: str, candidate: str, request: Any) -> Script:
        """How a Job fares."""
        if stage == "look":
            self.looked.add(request.key)
            return self.away or answer(stage, request.key, LookResult(self.offers, self.exact, f"tag {self.offers}"))
        if stage == "source":
            return self._downloaded(request)
        if stage not in ("reference", "convert", "metrics", "comparison", "profile"):
            return GOOD
        version = self.found[request.source if stage in ("reference", "convert") else request.reference]
        model = self.models.get(version, Model())
        if stage == "reference":
            self.found[request.key] = version
            return self._reference(request, model)
        if stage == "convert":
            self.found[request.key] = version
        if stage == "metrics":
            table = tuple(CandidateMetrics(each.profile, (model.accuracy,)) for each in request.candidates)
            return answer(stage, request.key, MetricsResult(("accuracy",), (model.accuracy,), table))
        if stage == "comparison":
            return self._compared(request)
        return Script(p99=model.p99) if stage == "profile" else GOOD

    def _downloaded(self, request: Any) -> Script:
        if request.published:
            return GOOD
        if self.away is not None:
            return self.away
        if request.version not in ("", self.offers) and not self.exact:
            words = "the source changed while it was read"
            return Script(exit_code=EXIT_RETRY, reason=Reason.SOURCE_CHANGED, message=words)
        version = request.version or self.offers
        script = Script(content=version)
        result = Outcome.from_json(message("source", "", request, script)).result
        assert isinstance(result, SourceResult)
        self.found[result.digest] = version
        return script

    def _reference(self, request: Any, model: Model) -> Script:
        if not model.is_whole:
            return Script(exit_code=EXIT_FINAL, reason=Reason.CHECKPOINT_INVALID, message="model.pt ends too early")
        if not model.is_finite:
            return Script(exit_code=EXIT_FINAL, reason=Reason.REFERENCE_NOT_FINITE, message="OUTPUT__0 holds NaN")
        signature = Signature((INPUT,), (replace(OUTPUT, dims=(model.outputs,)),), request.model.max_batch_size)
        return answer("reference", request.key, ReferenceResult(signature, 64, 8, 1.0, (), False))

    def _compared(self, request: Any) -> Script:
        errors = ((0.002,),) * len(request.candidates)
        marks = tuple(
            MarkMetrics(each.revision, (self.models.get(self.found[each.reference], Model()).accuracy,), errors, (0.0,))
            for each in request.marks
        )
        profiles = tuple(each.profile for each in request.candidates)
        return answer("comparison", request.key, ComparisonResult(256, request.required, profiles, marks))

    def away_with(self, reason: Reason) -> None:
        """Let looks and downloads fail with a reason."""
        self.away = Script(exit_code=EXIT_RETRY, reason=reason, message=f"GET /v2: {reason}")

    def served(self, cluster: Cluster) -> str:
        """The version that answers requests; empty: none does."""
        server = cluster.objects.get(("Deployment", cluster.serving() or ""))
        return self.found[server["metadata"]["labels"][KEY_LABEL]] if server is not None else ""


def answer(stage: str, key: str, result: Any) -> Script:
    """The script of a Job with that answer."""
    return Script(answer=Outcome(stage, key, result).to_json())


def following(scheme: str = "hf", **source: Any) -> tuple[Cluster, Registry]:
    """A cluster whose object follows a source of a scheme, before its first pass, and the source's server."""
    version = {"version": "champion"} if scheme == "mlflow" else {}
    asked = {"uri": URIS[scheme], "interval": "1h", **version} | source
    accuracy = {"thresholds": [{"metric": "accuracy", "min": 0.5}]}
    cluster = a_deployment().one_candidate().asking(source=asked, accuracy=accuracy).cluster()
    registry = Registry(scheme in EXACT)
    cluster.scripts = registry
    return cluster, registry


def work_off(cluster: Cluster, seen: Callable[[Cluster], None] = lambda cluster: None) -> None:
    """Passes and steps until nothing changes, whatever is due later. ``seen``: looks at the cluster after each pass."""
    quiet, changes = 0, 1
    for _ in range(MOST_STEPS):
        writes = cluster.act_on(changes)
        seen(cluster)
        changes = cluster.step()
        quiet = quiet + 1 if writes + changes == 0 else 0
        if quiet == 2:
            return
    raise AssertionError(f"no end after {MOST_STEPS} steps: {cluster.story[-8:]}")


def until(cluster: Cluster, moment: datetime, seen: Callable[[Cluster], None] = lambda cluster: None) -> None:
    """Time passes up to a moment; what is due meanwhile is done."""
    work_off(cluster, seen)
    while cluster.due is not None and cluster.due <= moment:
        cluster.now = max(cluster.now, cluster.due)
        work_off(cluster, seen)
    cluster.now = max(cluster.now, moment)
