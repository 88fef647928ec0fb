"""Every format and precision, every kind of shape; then the converted files are tampered with."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.e2e.applied import Applied
from tests.e2e.kubectl import Object
from tests.e2e.state import State
from tests.e2e.suite import Suite

MUTANTS: Mapping[str, tuple[str, str]] = {
    "onnx-fp32": ("scale-onnx", ""),
    "trace-fp32": ("swap-torchscript", ""),
    "script-fp32": ("poison-torchscript", ""),
    "onnx-fp16": ("replace", "onnx-fp32"),
    "trace-fp16": ("replace", "trace-fp32"),
}
"""What tamper.py does to a candidate's file, by candidate; the untouched original of the other is what replaces it."""
REMEASURE = {"conversion": {"tolerances": [{"precision": "fp32", "absolute": 2e-4, "relative": 2e-4},
                                           {"precision": "fp16", "absolute": 2e-2, "relative": 2e-2}]}}  # fmt: skip
"""Other tolerances: every candidate is held against the reference again, none is converted again."""


@dataclass(frozen=True)
class Served:
    """A Ready object and how far its answers are from the framework's."""

    state: State
    compared: Object


@dataclass(frozen=True)
class Mutants:
    """The object before its files were tampered with, and after all were profiled again."""

    before: State
    after: State
    new_jobs: tuple[Object, ...]


@dataclass(frozen=True)
class Formats:
    """All formats of one model, then its mutants."""

    served: Served
    mutants: Mutants


def formats(suite: Suite) -> Formats:
    """Every candidate to Ready; then tamper with all files but one, and have them profiled again."""
    applied = suite.new("formats", "formats")
    state = applied.wait_ready(applied.apply()).state
    served = Served(state, suite.compare("formats", "recommender", "recommender", 8))
    return Formats(served, mutate(suite, applied, state, MUTANTS, {}))


def mutate(
    suite: Suite,
    applied: Applied,
    before: State,
    mutants: Mapping[str, tuple[str, str]],
    changes: Mapping[str, object],
) -> Mutants:
    """Tamper with the candidates' files on the claim and profile them anew; ``changes`` made the present spec.

    The records are forged too: otherwise the operator would notice and publish the revisions anew.
    """
    files = {name: model_file(suite, before, name) for name in before.candidates}
    suite.workbench.run("mkdir", "-p", f"/repository/originals-{applied.name}")
    originals = {name: f"/repository/originals-{applied.name}/{name}" for name in files}
    for name, file in files.items():
        suite.workbench.run("cp", file, originals[name])
    for name, (how, other) in mutants.items():
        suite.workbench.python("tamper.py", how, files[name], originals.get(other, ""))
    jobs = applied.jobs()
    forge(suite, applied, [before.candidates[name]["revision"] for name in mutants])
    generation = applied.apply({**changes, **REMEASURE})

    def judged(state: State) -> bool:
        return state.holds("Ready") or state.holds("Stalled")

    after = applied.wait("all candidates profiled anew", judged, generation=generation).state
    new = applied.jobs()
    return Mutants(before, after, tuple(new[uid] for uid in new.keys() - jobs.keys()))


DIGEST = """
import sys
from pathlib import Path
from triton_converters.claim_store.revision import content_digest
print(content_digest(Path("/repository/.triton-operator/revisions", sys.argv[1])))
"""


def forge(suite: Suite, applied: Applied, keys: Iterable[str]) -> None:
    """Record the revisions as if they had been published as they are now."""
    results = f"{applied.name}-results"
    entries = applied.kubectl.get("configmap", results)["data"]
    forged = {}
    for key in keys:
        record = json.loads(entries[f"convert.{key}"])
        record["result"]["content"] = suite.workbench.run("python3", "-c", DIGEST, key).strip()
        forged[f"convert.{key}"] = json.dumps(record)
    applied.kubectl.run("patch", "configmap", results, "--type=merge", f"--patch={json.dumps({'data': forged})}")


def model_file(suite: Suite, state: State, candidate: str) -> str:
    """Path of the candidate's model file in its revision, as the workbench sees it."""
    key = state.candidates[candidate]["revision"]
    found = suite.workbench.run(
        "find", f"/repository/.triton-operator/revisions/{key}/models", "-name", "model.*"
    ).split()
    assert len(found) == 1, f"revision {key} of {candidate} has the model files {found}"
    return found[0]


@dataclass(frozen=True)
class Shapes:
    """Other kinds of model, and what became of the TorchScript-exported one when a file was corrupted."""

    torchscript: Served
    ranking: Served
    sequence: Served
    corrupted: Mutants


def _model(name: str, kind: str, batch: int, *candidates: tuple[str, str]) -> Mapping[str, object]:
    named = [{"name": f"{format_}-{precision}", "format": format_, "precision": precision}
             for format_, precision in candidates]  # fmt: skip
    return {
        "dataloader": {"arguments": {"kind": kind}},
        "model": {
            "name": name,
            "entrypoint": f"{kind}.py",
            "arguments": {"checkpoint": f"{kind}.safetensors"},
            "config": {"maxBatchSize": batch},
            "onnx": {"exporter": "TorchScript", "opset": 17},
            "candidates": named,
        },
    }


def shapes(suite: Suite) -> Shapes:
    """A model without a batch dimension, one with sequences that worker processes load, and the other ONNX exporter."""
    both = (("onnx", "fp32"), ("onnx", "fp16"))
    lengths = {"performance": {"inputShapes": [{"input": "INPUT__0", "dims": [7, 6]}]}}
    changes = {
        "torchscript": _model("recommender", "recommender", 8, *both),
        "ranking": _model("ranking", "ranking", 0, ("onnx", "fp32"), ("ts-script", "fp32")),
        "sequence": {
            **_model("tagger", "sequence", 8, ("onnx", "fp32"), ("ts-trace", "fp32")),
            **lengths,
            "dataloader": {"arguments": {"kind": "sequence", "workers": "2"}},
        },
    }
    objects = {name: suite.new(name, "formats") for name in changes}
    generations = {name: applied.apply(changes[name]) for name, applied in objects.items()}
    states = {name: applied.wait_ready(generations[name]).state for name, applied in objects.items()}
    served = {
        "torchscript": suite.compare("torchscript", "recommender", "recommender", 8),
        "ranking": suite.compare("ranking", "ranking", "ranking", 0),
        "sequence": suite.compare("sequence", "sequence", "sequence", 8),
    }
    corrupt = {"onnx-fp32": ("corrupt", "")}
    return Shapes(
        corrupted=mutate(suite, objects["torchscript"], states["torchscript"], corrupt, changes["torchscript"]),
        **{name: Served(states[name], served[name]) for name in changes},
    )
