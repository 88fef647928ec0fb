"""One object and its nights: the operator plans in a cluster in memory, and its Jobs compute metrics really."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy
import pytest

from tests.converters.mounted import mounted
from tests.converters.run_stage import run_comparison, run_metrics
from tests.simulation.answers import GOOD, Script
from tests.simulation.nights.models import METRICS, Array, Task, as_onnx
from tests.states.deployment import a_deployment
from triton_converters.claim_store.dump import Batch, write_batch
from triton_converters.claim_store.replay import write_result
from triton_converters.claim_store.revision import model_file
from triton_converters.claim_store.served_outputs import FOLDER, write_outputs
from triton_converters.contract import layout
from triton_converters.contract.accuracy import Accuracy, Threshold
from triton_converters.contract.comparison import compare
from triton_converters.contract.comparison_result import ComparisonResult, MarkMetrics
from triton_converters.contract.conversion_requests import Entrypoint
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.measurement_requests import ComparisonRequest, KeptOutputs, MetricsRequest
from triton_converters.contract.results import Environment, ProfileResult, ReferenceResult, Signature, Tensor
from triton_converters.stages import answers
from triton_converters.stages.comparison import produce
from triton_converters.user.metrics import DataSet
from triton_operator.api.accuracy import AccuracyRegression
from triton_operator.observed.snapshot import observe

BOUNDS = {"accuracy": {"min": 0.0}, "log_loss": {"max": 1000.0}}
ENVIRONMENT = Environment("2.51.0", "cpu", "", "", "a CPU, 2 cores", ("perf_analyzer -m digits",))
CANDIDATE = KeptOutputs("candidate", "onnx", "fp32")
REQUEST = ComparisonRequest("", "", "", "", 8, Entrypoint("metrics.py", {}), (CANDIDATE,), ())
MAX_PERCENT = AccuracyRegression().max_percent
ALLOWED = re.compile(r"and (\S+) is allowed")
TOLD = re.compile(r"(\w+) \S+ \(\S+ before; (?:[^;]+; )?a loss of (\S+) is noticed")


@dataclass
class Object:
    """A TritonDeployment that gets a model each night."""

    task: Task
    rows: Array
    """The pool's samples that its dataloader gives."""
    metrics: tuple[str, ...]
    """Those with a threshold."""
    weights: Array
    """Of the newest model."""
    nights: int = 0
    answered: dict[str, Script] = field(default_factory=dict)
    """What Jobs said, by their keys."""

    def __post_init__(self) -> None:
        thresholds = [{"metric": each} | BOUNDS[each] for each in self.metrics]
        asking = a_deployment().one_candidate().asking(accuracy={"thresholds": thresholds}, revisionHistoryLimit=1)
        self.cluster = asking.cluster()
        self.cluster.scripts = self
        self.cluster.settle()
        assert self.cluster.condition("Ready")["status"] == "True"

    def __call__(self, stage: str, candidate: str, request: Any) -> Script:
        """How a Job fares."""
        if stage not in ("metrics", "comparison"):
            return GOOD
        if request.key not in self.answered:
            if stage == "metrics":
                self._leave(request)
            result = run_metrics(request) if stage == "metrics" else run_comparison(request)
            self.answered[request.key] = Script(answer=Outcome(stage, request.key, result).to_json())
        return self.answered[request.key]

    def _leave(self, request: MetricsRequest) -> None:
        """Leave on the claim what the Jobs before leave there: of the source, the reference, the profile, the model."""
        source = layout.source_directory(request.source)
        if not source.exists():
            source.mkdir(parents=True)
            (source / "metrics.py").touch()
        given = self.task.answers(self.weights, self.rows)
        reference = layout.reference_directory(request.reference)
        if not reference.exists():
            labels = {"LABEL": self.task.labels[self.rows]}
            write_batch(reference, 0, Batch(self.rows, {"X": self.task.pool[self.rows]}, labels, {"P": given}))
            count, features = len(self.rows), self.task.pool.shape[1]
            inputs, outputs = (Tensor("X", "FP32", (features,)),), (Tensor("P", "FP32", given.shape[1:]),)
            result = ReferenceResult(Signature(inputs, outputs, request.max_batch_size), count, 1, 1.0)
            write_result(reference, "reference", request.reference, result)
        for each in request.candidates:
            directory = layout.measurement_directory(each.profile)
            write_outputs(directory / FOLDER, [{"P": row} for row in given])
            profile = ProfileResult(True, "Passed", "", 0.0, len(given), (), (), ENVIRONMENT)
            write_result(directory, "profile", each.profile, profile)
            file = model_file(each.revision, request.model_name, each.format)
            file.parent.mkdir(parents=True)
            file.write_bytes(as_onnx(self.weights))

    def night(self, weights: Array) -> "Night":
        """The next model comes."""
        self.weights, self.nights = weights, self.nights + 1
        self.cluster.edit(source={"uri": f"pvc://models/night-{self.nights}"})
        self.cluster.settle()
        verified = self.cluster.condition("Verified")
        refused = verified["reason"] == "WorseThanBefore"
        assert refused or self.cluster.condition("Ready")["status"] == "True"
        told: dict[str, float] = {}
        for metric, loss in TOLD.findall(verified["message"]):
            told[metric] = max(float(loss), told.get(metric, 0.0))
        allowed = [float(each) for each in ALLOWED.findall(verified["message"])]
        return Night(refused, told, max(allowed, default=0.0), verified["message"])

    @property
    def active(self) -> str:
        """Key of the revision that serves."""
        return str(self.cluster.status["serving"]["revision"])

    @property
    def anchor(self) -> str:
        """Key of the anchor."""
        found = observe("digits", self.cluster.objects.values()).history.anchor
        assert found is not None
        assert found.revision is not None
        return found.revision.key


@dataclass(frozen=True)
class Night:
    """What became of a model."""

    refused: bool
    told: dict[str, float]
    """The loss that the message of a model that serves says is noticed, by metric."""
    allowed: float
    """The largest loss that is not refused, where one was; 0: none was."""
    message: str

    @property
    def is_compared(self) -> bool:
        """Whether every earlier revision was comparable."""
        return (self.refused or bool(self.told)) and "not comparable" not in self.message


class Bare:
    """The same nights without a cluster and a claim, in a tenth of the time: the rules of Object, written again."""

    def __init__(self, task: Task, rows: Array, metrics: tuple[str, ...], weights: Array) -> None:
        self.task, self.rows, self.metrics = task, rows, metrics
        self.models, self.active, self.anchor, self.nights = {"0": weights}, "0", "0", 0

    def night(self, weights: Array) -> "Night":
        """The next model comes."""
        self.nights += 1
        marks = tuple(dict.fromkeys((self.active, self.anchor)))
        found = compare(self._result(weights, marks), CANDIDATE.profile, self._accuracy(weights), MAX_PERCENT)
        refused = any(each.worse for each in found)
        if not refused:
            self.active = str(self.nights)
            self.models[self.active] = weights
            self.anchor = self.active if found[-1].is_better else self.anchor
        differences = [difference for each in found for difference in each.differences]
        told = {each.metric: each.noticed for each in sorted(differences, key=lambda each: each.noticed)}
        return Night(refused, told, max(each.bound for each in differences), "")

    def _accuracy(self, weights: Array) -> list[Accuracy]:
        given, labels = self.task.answers(weights, self.rows), self.task.labels[self.rows]
        values = {name: METRICS[name](given, labels) for name in self.metrics}
        bounds = [Threshold(each, BOUNDS[each].get("min"), BOUNDS[each].get("max"), None) for each in self.metrics]
        return [Accuracy(each.metric, values[each.metric], values[each.metric], each) for each in bounds]

    def _result(self, weights: Array, marks: tuple[str, ...]) -> ComparisonResult:
        count, request = len(self.rows), replace(REQUEST, required=self.metrics)
        calculator = produce._Calculator(request, DataSet(self.rows, {}, {"LABEL": self.task.labels[self.rows]}, {}))
        sets = [produce._Answers(CANDIDATE, {"P": self.task.answers(weights, self.rows)})]
        for each in marks:
            mark = produce._Answers(CANDIDATE, {"P": self.task.answers(self.models[each], self.rows)})
            sets += [mark, produce._spoilt(mark, count)]
        table, _ = produce._resampled(calculator, sets, count, len(self.metrics))
        found = []
        for number, key in enumerate(marks):
            place = 1 + 2 * number
            values = tuple(calculator.values(sets[place], numpy.arange(count)))
            (errors,), noise = produce._errors(request, table, place), produce._noise(request, table, place)
            found.append(MarkMetrics(key, values, (tuple(errors.values()),), tuple(noise.values())))
        return ComparisonResult(count, self.metrics, (CANDIDATE.profile,), tuple(found))


def calculated(request: MetricsRequest, data: DataSet, precision: str, output_format: str) -> dict[str, float]:
    """The metrics, as the user's file would compute them: to import and call it takes longer than what it does."""
    return {name: METRICS[name](data.y_pred["P"], data.y_real["LABEL"]) for name in request.required}


@contextmanager
def a_claim() -> Iterator[None]:
    """A claim of its own."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        mounted(Path(folder), patch)
        patch.setattr(answers, "calculate", calculated)
        yield


def samples(chance: numpy.random.Generator, task: Task, count: int) -> Array:
    """Draw so many samples of the pool."""
    return chance.choice(len(task.pool), count, replace=False)
