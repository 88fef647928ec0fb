"""What is attested of a revision: the predicate, made of what its report is made of. Only of what passed is there one.

The operator and `kubectl triton check` make it by this function. It stays the same while the records do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from triton_converters.contract.accuracy import Verdict, judge
from triton_converters.contract.document import Document
from triton_converters.contract.measurement_requests import ServedModel
from triton_converters.contract.predicate import (
    LARGEST,
    AttestedFigures,
    AttestedGates,
    AttestedImage,
    AttestedMetric,
    AttestedRevision,
    Identity,
    Origin,
    Predicate,
)
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_converters.contract.results import ConvertResult, MetricsResult, ProfileResult, ReferenceResult
from triton_operator import names
from triton_operator.api.source import Source
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import CandidateStatus, Condition, TritonDeploymentStatus
from triton_operator.api.triton_deployment import CHANGES_NOTHING
from triton_operator.candidates.candidate import Candidate, candidates_of
from triton_operator.jobs.profile import tolerance
from triton_operator.jobs.source import recorded_files
from triton_operator.observed.record import Record

VARIABLES = "env"
"""The field of pods whose values are left out: some hold what is nobody else's business."""
SHA256_DIGITS = 64
"""Digits of a whole SHA-256."""
TUNED = ".tuned"
"""How the name of a candidate ends that a search found."""
AnswerT = TypeVar("AnswerT", bound=Document)


class NotPassedError(ValueError):
    """What is not attested; the message says why."""


@dataclass(frozen=True)
class Passed:
    """A revision that passed every gate, and that no trial may still undo; of no other can there be one."""

    namespace: str
    name: str
    uid: str
    generation: int
    spec: TritonDeploymentSpec
    """With what the operator filled in."""
    status: TritonDeploymentStatus = field(repr=False)
    records: Mapping[str, Record] = field(repr=False)
    reference: str
    """Key of the reference that the revision was verified with."""

    def __post_init__(self) -> None:
        """Raise NotPassedError for what did not pass."""
        for kind in ("Verified", "Selected"):
            found = self._condition(kind)
            holds = found is not None and (found.status, found.observed_generation) == ("True", self.generation)
            self._check(holds, f"the condition {kind} is not True for generation {self.generation}")
        trial = self._condition("Soaked")
        self._check(trial is None or trial.status == "True", "its trial has not passed")
        active = self.status.active
        self._check(active is None or active.revision == self.candidate.revision, "another revision serves")
        self._check(self.profile.passed and self.profile.reason == Reason.PASSED, "a gate refused it")
        self._check(self.verdict.reason is Reason.PASSED, "a threshold is missed")
        has_digests = self.conversion.content and self.answers.samples_digest
        self._check(bool(has_digests), "its files or samples have no recorded digest; update the images")

    def refusal(self, why: str) -> NotPassedError:
        """Return the error that says why it is not attested."""
        return NotPassedError(f"{self.namespace}/{self.name} is not attested: {why}")

    def _check(self, holds: bool, why: str) -> None:
        if not holds:
            raise self.refusal(why)

    def _condition(self, kind: str) -> Condition | None:
        return next((each for each in self.status.conditions if each.type == kind), None)

    @property
    def candidate(self) -> CandidateStatus:
        """The candidate that was selected. Raises NotPassedError if none was."""
        found = next((each for each in self.status.candidates if each.state == "Selected"), None)
        if found is None:
            raise self.refusal("no candidate is selected")
        return found

    @property
    def base(self) -> Candidate:
        """The candidate as the spec has it, without what a search found. Raises NotPassedError if it lacks it."""
        name = self.candidate.name.removesuffix(TUNED)
        found = next((each for each in candidates_of(self.spec) if each.name == name), None)
        if found is None:
            raise self.refusal(f"the spec has no candidate {name}")
        return found

    @property
    def profile(self) -> ProfileResult:
        """What the gates said of it, and its figures."""
        return self._result(ProfileResult, "profile", self.candidate.profile_key)

    @property
    def conversion(self) -> ConvertResult:
        """What was published of it."""
        return self._result(ConvertResult, "convert", self.candidate.revision)

    @property
    def answers(self) -> ReferenceResult:
        """The framework's answers."""
        return self._result(ReferenceResult, "reference", self.reference)

    @property
    def verdict(self) -> Verdict:
        """What the thresholds say of its metrics."""
        if self.spec.metrics is None:
            return Verdict(())
        metrics = self._result(MetricsResult, "metrics", self.candidate.metrics_key)
        thresholds = [each.as_request() for each in self.spec.accuracy.thresholds]
        return judge(metrics, self.candidate.profile_key, thresholds)

    def record(self, stage: str, key: str) -> Record:
        """Return a Job's record. Raises NotPassedError if it is gone."""
        record = self.records.get(record_name(stage, key))
        if record is None:
            raise self.refusal(f"the record {stage}.{key} is gone")
        return record

    def _result(self, kind: type[AnswerT], stage: str, key: str) -> AnswerT:
        result = self.record(stage, key).outcome.result
        if not isinstance(result, kind):
            raise self.refusal(f"the record {stage}.{key} is another")
        return result


def predicate(passed: Passed) -> str:
    """Return the predicate in canonical JSON, of LARGEST bytes at most. Raises NotPassedError for a longer one."""
    whole = Predicate(
        identity=_identity(passed),
        revision=_revision(passed),
        images=_images(passed),
        gates=_gates(passed),
        metrics=tuple(
            AttestedMetric(each.metric, *each.figures, each.threshold_words) for each in passed.verdict.accuracy
        ),
        figures=_figures(passed),
        local=any(each.type == "Local" for each in passed.status.conditions),
    )
    for each in (whole, replace(whole, identity=replace(whole.identity, spec=None))):
        if len((text := each.to_json()).encode()) <= LARGEST:
            return text
    raise passed.refusal(f"its report has more than {LARGEST} bytes")


def _identity(passed: Passed) -> Identity:
    spec, status = passed.spec, passed.status
    read = status.source
    version = read.downloaded_version or read.version if read is not None else ""
    digest = read.digest.removeprefix("sha256:") if read is not None else ""
    said = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=CHANGES_NOTHING)
    shown = _without_values({field: value for field, value in said.items() if value != {}})
    dataset, published = spec.dataset, spec.published_dataset
    mounted = Origin(dataset.uri, dataset.version) if dataset is not None else None
    return Identity(
        namespace=passed.namespace,
        name=passed.name,
        source=Origin(spec.source.uri, version, digest),
        weights=_origin(passed, spec.weights) if spec.weights is not None else None,
        data=_origin(passed, published) if published is not None else mounted,
        spec_digest=names.digest(shown, SHA256_DIGITS),
        spec=shown,
    )


def _origin(passed: Passed, files: Source) -> Origin:
    found = recorded_files(passed.records, files, passed.uid)
    if found is None:
        raise passed.refusal(f"the record of {files.uri} is gone")
    return Origin(files.uri, found.resolved or files.version, found.digest)


def _without_values(value: Any) -> Any:
    """Return JSON without the values of environment variables."""
    if isinstance(value, list):
        return [_without_values(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: [{"name": one["name"]} for one in each] if name == VARIABLES else _without_values(each)
        for name, each in value.items()
    }


def _revision(passed: Passed) -> AttestedRevision:
    spec, candidate, conversion = passed.spec, passed.candidate, passed.conversion
    configs: list[Any] = [each.config.model_dump(mode="json", by_alias=True) for each in spec.models]
    configs.append(candidate.config.model_dump(mode="json", by_alias=True) if candidate.config else None)
    return AttestedRevision(
        key=candidate.revision,
        content=conversion.content,
        candidate=candidate.name,
        model=spec.served_name,
        models=tuple(ServedModel(each.model.name, each.format, each.precision) for each in passed.base.members),
        data_types=conversion.data_types,
        configuration=names.digest(configs, SHA256_DIGITS),
    )


def _images(passed: Passed) -> tuple[AttestedImage, ...]:
    pinned, spec = passed.status.images, passed.spec
    server, converter = (pinned.server, pinned.converter) if pinned is not None else ("", "")
    profiled = passed.record("profile", passed.candidate.profile_key)
    framework = passed.record("reference", passed.reference)
    named = {
        spec.serving.image or server: profiled.image_id,
        spec.conversion.image or converter: framework.image_id,
    }
    return tuple(AttestedImage(name, digest) for name, digest in named.items())


def _gates(passed: Passed) -> AttestedGates:
    candidate, profile, answers = passed.candidate, passed.profile, passed.answers
    size = candidate.config.max_batch_size if candidate.config is not None else passed.spec.max_batch_size
    return AttestedGates(
        signature=replace(answers.signature, max_batch_size=size),
        precision=passed.base.precision,
        tolerance=tolerance(passed.spec, passed.base.precision),
        max_absolute_error=profile.max_absolute_error,
        samples=profile.samples,
        reference=passed.reference,
        samples_digest=answers.samples_digest,
        message=profile.message,
    )


def _figures(passed: Passed) -> AttestedFigures:
    profile = passed.profile
    return AttestedFigures(
        measured_at=passed.record("profile", passed.candidate.profile_key).finished_at,
        environment=profile.environment,
        offline=profile.offline,
        online=profile.online,
        request_rate=profile.request_rate,
    )
