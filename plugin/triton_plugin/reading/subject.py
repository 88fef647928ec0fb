"""The subject of every command: a TritonDeployment and its Jobs' results. Pure."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from triton_converters.contract import text
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_converters.contract.results import (
    ConvertResult,
    MetricsResult,
    ProfileResult,
    Row,
    SearchPoint,
    SearchResult,
)
from triton_operator import names
from triton_operator.api.measured_status import RowStatus, row_status
from triton_operator.api.search_status import SearchStatus
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import OF_ACTIVE, PAUSED, CandidateStatus, Condition, TritonDeploymentStatus
from triton_operator.observed.failures import Failure
from triton_operator.observed.history import History
from triton_operator.observed.record import Record
from triton_operator.observed.snapshot import observe
from triton_plugin.errors import SubjectError

AGAIN = "the same kubectl triton check again"
"""What stands for a retry where there is no cluster: `check` tries again whatever failed."""
RETRY = re.compile(r"kubectl triton retry [\w-]+(\.[\w-]+)*( --namespace [\w-]+)?")


@dataclass(frozen=True)
class Subject:
    """One object with its results."""

    namespace: str
    name: str
    generation: int
    spec: TritonDeploymentSpec
    """The spec with what the operator filled in."""
    status: TritonDeploymentStatus
    records: Mapping[str, Record] = field(repr=False)
    """The records by ``<stage>.<key>``; empty if the results were not given."""
    failures: Mapping[str, Failure] = field(default_factory=dict, repr=False)
    """The failures that a retry repeats, by the name of the Job that failed or of the record whose figures did."""
    history: History = field(default_factory=History, repr=False)
    """The states that served."""
    damaged: frozenset[str] = frozenset()
    """Keys of the revisions whose files on the claim are damaged."""
    version: str = ""
    """The resourceVersion that was read."""
    uid: str = ""
    """The uid of the object; empty for a file that lacks it."""
    options: tuple[str, ...] = ()
    """The options of kubectl that name its cluster; empty for the one of a saved file, which nobody knows."""
    server: str = ""
    """Name of the active revision's Deployment; empty if the results were not given, or do not tell."""

    @property
    def place(self) -> str:
        """The options of a command about it: its namespace and cluster."""
        return shlex.join(["--namespace", self.namespace, *self.options])

    def command(self, *words: str) -> str:
        """Return the plugin's command about it, for a shell."""
        return f"kubectl triton {shlex.join(words)} {self.place}"

    @property
    def is_local(self) -> bool:
        """Whether the object was checked on one machine, so that no command about a cluster concerns it."""
        return self.condition("Local") is not None

    @property
    def served_name(self) -> str:
        """The name under which clients ask for the model now; of an object without an active revision, the spec's."""
        active = self.status.active
        return (active.model if active is not None else None) or self.spec.served_name

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of that type, if it was observed."""
        return next((each for each in self.status.conditions if each.type == kind), None)

    def present_condition(self, kind: str) -> Condition | None:
        """Return the condition of that type, if it was observed for the present generation."""
        condition = self.condition(kind)
        return condition if condition is not None and condition.observed_generation == self.generation else None

    def holds(self, kind: str) -> bool:
        """Whether a condition is True for the present generation."""
        condition = self.present_condition(kind)
        return condition is not None and condition.status == "True"

    @property
    def is_soaked(self) -> bool:
        """Whether the active revision may still be undone by its soak."""
        condition = self.present_condition("Soaked")
        return condition is not None and condition.reason == Reason.SOAKING

    @property
    def newer_condition(self) -> Condition | None:
        """What is said of something newer while the object is ready without it; None: there is nothing newer."""
        condition = self.condition("UpToDate")
        if condition is None or condition.status != "False" or condition.reason in OF_ACTIVE:
            return None
        return condition if self.holds("Ready") else None

    @property
    def stop_condition(self) -> Condition | None:
        """Why nothing more is tried, of the object or of what is newer than its active revision; None: work goes on."""
        if self.holds("Stalled"):
            return self.condition("Stalled")
        reconciling = self.condition("Reconciling")
        newer = self.newer_condition
        if newer is None or reconciling is None or newer.reason == Reason.VERSION_UNSETTLED:
            return None
        return newer if reconciling.reason in (newer.reason, Reason.READY) else None

    @property
    def rollback_condition(self) -> Condition | None:
        """What is said of the revision that spec.rollout.revision holds; None: there is none."""
        condition = self.present_condition("Selected")
        return condition if condition is not None and condition.reason == Reason.ROLLED_BACK else None

    @property
    def is_held(self) -> bool:
        """Whether a soak or a canary has no verdict for so long that a person should know."""
        condition = self.present_condition("Soaked")
        return condition is not None and condition.reason == Reason.ROLLOUT_HELD

    @property
    def is_paused(self) -> bool:
        """Whether the object waits for its user although nothing is wrong."""
        condition = self.present_condition("Reconciling")
        if condition is None or condition.status != "False":
            return False
        return not self.holds("Ready") and not self.holds("Stalled")

    @property
    def waits_for_its_user(self) -> bool:
        """Whether what is newer than the active revision waits for its user although nothing is wrong."""
        return self.stop_condition is not None and self.stop_condition.reason in {*PAUSED, Reason.NEWER_VERSION}

    def profile(self, candidate: CandidateStatus) -> ProfileResult | None:
        """Return a candidate's gates and sweeps; None before it was profiled, or if the record is gone."""
        record = self.records.get(record_name("profile", candidate.profile_key))
        result = record.outcome.result if record else None
        return result if isinstance(result, ProfileResult) else None

    def metrics(self, candidate: CandidateStatus) -> MetricsResult | None:
        """Return the result that holds a candidate's metrics; None before there is one, or if the record is gone."""
        record = self.records.get(record_name("metrics", candidate.metrics_key))
        result = record.outcome.result if record else None
        return result if isinstance(result, MetricsResult) else None

    def conversion(self, candidate: CandidateStatus) -> ConvertResult | None:
        """Return the result of a candidate's conversion; None before it was converted, or if the record is gone."""
        record = self.records.get(record_name("convert", candidate.revision))
        result = record.outcome.result if record else None
        return result if isinstance(result, ConvertResult) else None

    def points(self, search: SearchStatus) -> list[SearchPoint]:
        """Return all points of a search, then those that were measured again, as far as their records exist."""
        records = [self.records.get(record_name("search", key)) for key in search.records]
        results = [record.outcome.result for record in records if record]
        searches = [each for each in results if isinstance(each, SearchResult)]
        points = [point for each in searches for point in each.points]
        return points + [point for each in searches for point in each.repeats]

    def row(self, candidate: CandidateStatus, row: Row) -> RowStatus:
        """Return a measurement of a candidate with all its columns."""
        members = [member_parts(each) for each in candidate.members]
        shapes = (f"{each.input}:{'x'.join(map(str, each.dims))}" for each in self.spec.performance.input_shapes)
        precision, accelerator = (_distinct(each[column] for each in members) for column in (1, 2))
        return row_status(row, precision, accelerator, " ".join(shapes))

    def finished_at(self, stage: str, key: str) -> str:
        """Return when a Job's record was made (RFC 3339, UTC); empty if it is gone."""
        record = self.records.get(record_name(stage, key))
        return record.finished_at if record else ""

    def rows(self, candidate: CandidateStatus, scenario: str) -> list[RowStatus]:
        """Return the measurements of a candidate's sweep. ``scenario``: Offline, Online or RequestRate."""
        profile = self.profile(candidate)
        if profile is None:
            return []
        return [self.row(candidate, row) for row in profile.rows(scenario)]


def member_parts(name: str) -> tuple[str, str, str]:
    """Return format, precision and accelerator of one model of a candidate; empty where its name does not tell."""
    form, precision, accelerator = [*name.rsplit("-", 2), "", ""][:3]
    return form, precision, accelerator


def parse(deployment: Mapping[str, Any], results: Mapping[str, Any] | None, options: Iterable[str] = ()) -> Subject:
    """Parse the API's objects: the TritonDeployment, and the ConfigMap ``<name>-results`` or None.

    ``options``: those of kubectl that name the cluster. Raises SubjectError if this version cannot read the object.
    """
    body = printable(deployment) | {"metadata": one_line(deployment.get("metadata"))}
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    spec_and_status = (body.get("spec"), body.get("status") or {})
    if not isinstance(name, str) or not all(isinstance(each, dict) for each in spec_and_status):
        raise SubjectError("a TritonDeployment has metadata with a name, a spec and a status, which this object lacks")
    observed = observe(name, [results] if results else [])
    try:
        spec = TritonDeploymentSpec.model_validate(body["spec"])
        status = _told_where_it_is(TritonDeploymentStatus.model_validate(one_line(body.get("status") or {})))
        return Subject(
            namespace=metadata.get("namespace", "default"),
            name=name,
            generation=metadata.get("generation", 0),
            version=metadata.get("resourceVersion", ""),
            uid=metadata.get("uid", ""),
            options=tuple(options),
            spec=status.resolved.applied_to(spec) if status.resolved else spec,
            status=status,
            records={each: _printable_record(record) for each, record in observed.records.items()},
            failures=observed.failures,
            history=observed.history,
            damaged=frozenset(observed.damaged),
            server=printable(observed.active_record.server) if observed.active_record else "",
        )
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise SubjectError(
            f"this kubectl-triton cannot read TritonDeployment {name}: {place}: {fault['msg']};"
            " install the version that matches the operator"
        ) from error


def parse_saved(documents: Iterable[Mapping[str, Any]]) -> Subject:
    """Parse the one TritonDeployment among objects as ``kubectl get -o yaml`` prints them, Lists included.

    Raises SubjectError if there is not exactly one.
    """
    found = [document for document in documents if isinstance(document, Mapping)]
    lists = [document["items"] if isinstance(document.get("items"), list) else [document] for document in found]
    objects = [each for items in lists for each in items if isinstance(each, Mapping)]
    deployments = [each for each in objects if each.get("kind") == names.KIND]
    if len(deployments) != 1:
        raise SubjectError(
            f"the file contains {len(deployments)} objects of kind {names.KIND}; it must contain exactly one"
        )
    results_name = names.results(str(_metadata(deployments[0]).get("name")))
    results = (
        each for each in objects if each.get("kind") == "ConfigMap" and _metadata(each).get("name") == results_name
    )
    return parse(deployments[0], next(results, None))


def _told_where_it_is(status: TritonDeploymentStatus) -> TritonDeploymentStatus:
    """Return the status with the command that tries again, in messages of an object that no cluster knows."""
    if not any(each.type == "Local" for each in status.conditions):
        return status
    text = status.model_dump_json(by_alias=True, exclude_unset=True)
    return TritonDeploymentStatus.model_validate_json(RETRY.sub(AGAIN, text))


def _metadata(body: Mapping[str, Any]) -> Mapping[str, Any]:
    found = body.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _distinct(values: Iterable[str]) -> str:
    return "+".join(dict.fromkeys(values))


def printable(value: Any) -> Any:
    """Return JSON without control characters: messages quote users' programs, and a terminal obeys such characters."""
    if isinstance(value, str):
        return text.printable(value, "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, Mapping):
        return {printable(key): printable(each) for key, each in value.items()}
    return [printable(each) for each in value] if isinstance(value, list | tuple) else value


def one_line(value: Any) -> Any:
    """Return JSON that is printable and has no line ends: the next line of a message would look like the plugin's."""
    if isinstance(value, str):
        # Not by a regular expression: one that may begin with any space takes the square of their number.
        first, *others = printable(value).split("\n")
        if not others:
            return first
        return " ".join([first.rstrip(), *filter(None, map(str.strip, others[:-1])), others[-1].lstrip()])
    if isinstance(value, Mapping):
        return {one_line(key): one_line(each) for key, each in value.items()}
    return [one_line(each) for each in value] if isinstance(value, list | tuple) else value


def _printable_record(record: Record) -> Record:
    outcome = record.outcome
    assert outcome.result is not None
    result = type(outcome.result).from_value(one_line(asdict(outcome.result)))
    return replace(record, outcome=replace(outcome, result=result), finished_at=one_line(record.finished_at))
