"""What of a pod decides where it runs, with the fields that Kubernetes has.

The CRD holds these as open objects: it would spell them out three times, and `kubectl explain pod.spec` explains them.
So the operator knows their fields, and refuses any other at once.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, GetJsonSchemaHandler, StringConstraints, model_validator
from pydantic_core import CoreSchema

from triton_operator.api.schema import ApiType, LabelKey

LONGEST_AFFINITY_BYTES = 16 * 1024
"""An affinity stands in each Job and twice in each Deployment; one that names 200 nodes has about half of this."""
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


class PodPart(ApiType):
    """The base of what the CRD leaves open."""

    model_config = ConfigDict(extra="forbid", populate_by_name=False)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the schema of an open object."""
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

    def body(self) -> dict[str, Any]:
        """Return the part as a pod's spec has it, without defaults, which the API server would add."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


class Requirement(PodPart):
    """A condition on a label or a field."""

    key: str
    operator: Operator
    values: list[str] = Field(default_factory=list)


class Labels(PodPart):
    """Conditions on labels."""

    match_labels: dict[str, str] = Field(default_factory=dict)
    match_expressions: list[Requirement] = Field(default_factory=list)


class NodeTerm(PodPart):
    """Conditions on a node."""

    match_expressions: list[Requirement] = Field(default_factory=list)
    match_fields: list[Requirement] = Field(default_factory=list)


class PreferredNode(PodPart):
    """A node that is better than others."""

    weight: int
    preference: NodeTerm


class NodeTerms(PodPart):
    """Conditions of which a node meets one."""

    node_selector_terms: list[NodeTerm]


class NodeAffinity(PodPart):
    """The nodes for a pod."""

    required_during_scheduling_ignored_during_execution: NodeTerms | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredNode] = Field(default_factory=list)


class PodTerm(PodPart):
    """Pods, and the places at which they count as near."""

    topology_key: str
    label_selector: Labels | None = None
    namespace_selector: Labels | None = None
    namespaces: list[str] = Field(default_factory=list)
    match_label_keys: list[str] = Field(default_factory=list)
    mismatch_label_keys: list[str] = Field(default_factory=list)


class PreferredPods(PodPart):
    """Pods to be near, or away from."""

    weight: int
    pod_affinity_term: PodTerm


class PodAffinity(PodPart):
    """The pods that a pod is to be near, or away from."""

    required_during_scheduling_ignored_during_execution: list[PodTerm] = Field(default_factory=list)
    preferred_during_scheduling_ignored_during_execution: list[PreferredPods] = Field(default_factory=list)


class Affinity(PodPart):
    """A pod's affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_length(cls, given: Any) -> Any:
        """Refuse an affinity that is too long for all that it stands in."""
        if isinstance(given, dict) and (size := len(json.dumps(given))) > LONGEST_AFFINITY_BYTES:
            raise ValueError(f"the affinity has {size} bytes as JSON, more than {LONGEST_AFFINITY_BYTES}: shorten it")
        return given


class Toleration(PodPart):
    """A taint that a pod tolerates."""

    key: Annotated[str, StringConstraints(max_length=317)] = ""
    operator: Literal["Exists", "Equal"] = "Equal"
    value: Annotated[str, StringConstraints(max_length=63)] = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    toleration_seconds: Annotated[int, Field(ge=0)] | None = None


class TopologySpread(PodPart):
    """How evenly pods spread over the values of a node label. The operator selects the pods: those of one kind."""

    topology_key: LabelKey
    max_skew: Annotated[int, Field(ge=1, le=100)] = 1
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "ScheduleAnyway"


def one_a_key(spreads: list[TopologySpread]) -> list[TopologySpread]:
    """Return the spreads; raises ValueError for two over one key, which Kubernetes refuses."""
    keys = [each.topology_key for each in spreads]
    if len(keys) > len(set(keys)):
        raise ValueError("two have one topologyKey: remove one of them")
    return spreads
