"""Ten models in one bucket or repository, and an object for each, which follows it: one model changes."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest

from tests.simulation.answers import Script, message
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_spec, candidate
from tests.simulation.registry import answer, until, work_off
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.look import LookResult
from triton_converters.fetch.remote import taken

MODELS = [f"model-{number}" for number in range(10)]
URIS = {"bucket": "s3://models", "repository": "hf://acme/models"}
CANDIDATES = [candidate("onnx-fp32")]
LOOK = timedelta(hours=1.15)
"""Longer than the interval with its spread."""


@dataclass
class Store:
    """A bucket, whose version is a hash of what is taken of it, or a repository, whose version is a commit."""

    has_commits: bool
    files: dict[str, str]
    """Contents by path."""

    def __call__(self, stage: str, candidate: str, request: Any) -> Script:
        """How a Job fares."""
        if stage == "look":
            version = self._digest() if self.has_commits else self._digest(request.source)
            return answer(stage, request.key, LookResult(version, self.has_commits, version[:12]))
        if stage == "source":
            outcome = Outcome.from_json(message(stage, candidate, request, Script()))
            result: Any = outcome.result
            return answer(stage, request.key, replace(result, digest=request.published or self._digest(request)))
        return Script()

    def _digest(self, request: Any = None) -> str:
        """A hash of the files that a request takes; None: of all."""
        names = self.files if request is None else taken(self.files, request)
        return sha256(repr([(each, self.files[each]) for each in sorted(names)]).encode()).hexdigest()


def by_path(name: str) -> dict[str, Any]:
    """The spec of an object for one model's file, without code."""
    spec = a_spec(models=[{"name": name, "path": f"{name}/model.onnx", "candidates": CANDIDATES}])
    return {each: spec[each] for each in ("source", "models", "selection")}


def by_include(name: str) -> dict[str, Any]:
    """The spec of an object for one folder with code."""
    model = {"name": name, "format": "pyt", "entrypoint": f"{name}/model.py", "candidates": CANDIDATES}
    code = {each: {"entrypoint": f"{name}/{each}.py"} for each in ("dataloader", "metrics")}
    return a_spec(models=[model], **code) | {"source": {"include": [f"{name}/*"]}}


@pytest.mark.parametrize(("kind", "changing"), [("bucket", MODELS[:2]), ("repository", MODELS[1:2])])
def test_jobs_run_only_for_the_object_whose_model_has_changed(kind: str, changing: list[str]) -> None:
    names = ("model.onnx", "model.py", "dataloader.py", "metrics.py")
    store = Store(kind == "repository", {f"{model}/{name}": "1" for model in MODELS for name in names})
    clusters = {}
    for number, model in enumerate(MODELS):
        spec = by_include(model) if number % 2 else by_path(model)
        spec["source"] = spec["source"] | {"uri": URIS[kind], "interval": "1h"}
        clusters[model] = Cluster(spec, scripts=store)
        work_off(clusters[model])
    for changed in changing:
        before = {model: served(cluster) for model, cluster in clusters.items()}
        store.files[f"{changed}/model.onnx"] += "2"
        ran = {model: jobs(cluster, store) for model, cluster in clusters.items()}
        assert ran.pop(changed) >= Counter(["source", "reference", "profile", "measure", "promotion"])
        # A commit is one of all models: each object has its files compared with those that it has, by one Job.
        others = Counter({"source": 1} if store.has_commits else {})
        assert ran == dict.fromkeys(ran, others)
        after = {model: served(cluster) for model, cluster in clusters.items()}
        assert [model for model in MODELS if before[model] != after[model]] == [changed]


def served(cluster: Cluster) -> str | None:
    """The server that answers, of an object that has all that it wants."""
    newest = cluster.condition("UpToDate")
    assert (newest["status"], newest["reason"]) == ("True", "Ready"), newest["message"]
    source = cluster.status["source"]
    assert source["serving"]["version"] == source["latest"]["version"]
    return cluster.serving()


def jobs(cluster: Cluster, store: Store) -> Counter[str]:
    """What was started until looks were sure of what there is, but for these; each kind once."""
    since = len(cluster.story)
    until(cluster, cluster.now + LOOK * (1 if store.has_commits else 2))
    return Counter({each.split()[0] for each in cluster.story[since:]} - {"look"})
