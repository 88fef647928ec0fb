"""What became of models: a row of each, the table on a terminal, and the file that docs/zoo.md's table is made of."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.machine import cpu_model
from tests.zoo.models import MODELS, ZooModel
from tests.zoo.refusals import refusal
from triton_plugin.reading.subject import Subject

CLAIM = "models"
MESSAGE_CHARACTERS = 300
READY_SHARE = 0.9
EXPLAINED_SHARE = 0.95
"""Of the models, those that are ready or refused for a reason of the list."""


@dataclass(frozen=True)
class Outcome:
    """What became of a model."""

    model: ZooModel
    is_ready: bool
    reason: str
    """Why it is not ready, with the message; for a ready one, what is not proven."""
    passed: str
    """Candidates that passed, of all."""
    seconds: float
    batch: int | None = None
    """`maxBatchSize` of the object; None: it came not so far."""

    def line(self) -> str:
        """Return the row that is printed as soon as the model's end is known."""
        became = "Ready" if self.is_ready else self.reason
        return "  ".join(filter(None, [self.model.name, became, self.passed, f"{self.seconds:.0f} s"]))


def smallest(model: ZooModel, path: str, sha256: str) -> dict[str, Any]:
    """Return the smallest object that serves the model, which lies on the claim in a folder of its name."""
    source = {"uri": f"pvc://{CLAIM}/{model.name}", "sha256": sha256}
    spec: dict[str, Any] = {
        "source": {name: value for name, value in source.items() if value},
        "models": [{"name": model.name, "path": path}],
    }
    if model.code:
        code = {"format": model.format, "entrypoint": "model.py", "arguments": {"checkpoint": path}}
        spec |= {"models": [{"name": model.name, **code}], "dataloader": {"entrypoint": "dataloader.py"}}
    return {
        "apiVersion": "triton-operator.dev/v1alpha1",
        "kind": "TritonDeployment",
        "metadata": {"name": model.name},
        "spec": spec,
    }


def outcome_of(model: ZooModel, subject: Subject, seconds: float) -> Outcome:
    """Return what became of a model by its object."""
    states = [candidate.state for candidate in subject.status.candidates]
    passed = f"{sum(state in ('Passed', 'Selected') for state in states)} of {len(states)}" if states else ""
    is_ready = subject.holds("Ready")
    condition = subject.condition("Verified" if is_ready else "Ready")
    reason = f"{condition.reason}: {condition.message}" if condition else "no condition was written"
    if not is_ready:
        failed = (each for each in subject.status.candidates if each.state == "Failed")
        reason = "; ".join([reason, *(f"{each.name} {each.reason}: {each.message}" for each in failed)])
    signature = subject.status.signature
    batch = signature.max_batch_size if signature else None
    return Outcome(model, is_ready, reason[:MESSAGE_CHARACTERS], passed, seconds, batch)


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return how many models are ready, and how many others were refused for a reason of the list."""
    ready = sum(each.is_ready for each in outcomes)
    refused = sum(_is_explained(each) for each in outcomes) - ready
    share = f"{ready} of {len(outcomes)} ready ({100 * ready / max(len(outcomes), 1):.0f} %)"
    return f"{share}, {refused} refused for a reason of tests/zoo/refusals.py"


def are_enough(outcomes: Sequence[Outcome]) -> bool:
    """Whether there are models, at least READY_SHARE of them ready and EXPLAINED_SHARE ready or rightly refused."""
    ready, explained = sum(each.is_ready for each in outcomes), sum(_is_explained(each) for each in outcomes)
    return bool(outcomes) and ready >= READY_SHARE * len(outcomes) and explained >= EXPLAINED_SHARE * len(outcomes)


def _is_explained(outcome: Outcome) -> bool:
    return outcome.is_ready or bool(_refusal(outcome))


def _refusal(outcome: Outcome) -> str:
    return "" if outcome.is_ready else refusal(outcome.reason)


def worse(rows: Mapping[str, Any], outcomes: Sequence[Outcome]) -> list[str]:
    """Return the names of models that are not ready, but were so in these rows of an earlier run on a cluster."""
    were = {name for name, row in rows.items() if row["run"] == "cluster" and row["is_ready"]}
    return [each.model.name for each in outcomes if not each.is_ready and each.model.name in were]


def read(file: Path) -> dict[str, Any]:
    """Return the rows of a file by their models' names; none if the file is not there."""
    rows = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    return {row["model"]["name"]: row for row in rows}


def write(file: Path, outcomes: Sequence[Outcome], run: str) -> None:
    """Write the rows as JSON, in the order of MODELS; those of other models stay. ``run``: cluster or rehearsal."""
    rows = read(file)
    when = {"run": run, "date": datetime.now(UTC).date().isoformat(), "machine": cpu_model()}
    rows |= {
        each.model.name: when | asdict(each) | {"seconds": round(each.seconds), "refusal": _refusal(each)}
        for each in outcomes
    }
    ordered = [rows[model.name] for model in MODELS if model.name in rows]
    file.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
