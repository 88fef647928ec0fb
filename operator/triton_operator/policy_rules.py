"""The peers and rules of NetworkPolicies that an installation sets, checked before they are in any object. Pure."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.alias_generators import to_camel

PolicyPeer = Mapping[str, Any]
"""A Kubernetes NetworkPolicyPeer, without its empty fields, which the API server does not keep."""
PolicyRule = Mapping[str, Any]
"""A Kubernetes NetworkPolicyEgressRule or NetworkPolicyIngressRule, without its empty fields."""
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label of a namespace that the API server alone sets: its name."""
_Condition = tuple[str, str, frozenset[str]]
"""A condition on a label: its key, an operator of Kubernetes' selectors, and the operator's values."""
_T = TypeVar("_T")


class _Part(BaseModel):
    """A part of a peer, with Kubernetes' names of its fields."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class _Expression(_Part):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] = []

    @model_validator(mode="after")
    def _has_values_if_it_takes_some(self) -> Self:
        if self.operator.endswith("In") != bool(self.values):
            raise ValueError("In and NotIn take values, Exists and DoesNotExist take none")
        return self


class _Selector(_Part):
    match_labels: dict[str, str] = {}
    match_expressions: list[_Expression] = []


class _Block(_Part):
    cidr: str
    holes: list[str] = Field([], alias="except")

    @model_validator(mode="after")
    def _holes_lie_within(self) -> Self:
        whole = ip_network(self.cidr)
        for hole in map(ip_network, self.holes):
            if hole == whole or hole.version != whole.version or not hole.subnet_of(whole):  # type: ignore[arg-type]  # of one IP version
                raise ValueError(f"the exception {hole} does not lie within {whole}")
        return self


class _Peer(_Part):
    ip_block: _Block | None = None
    namespace_selector: _Selector | None = None
    pod_selector: _Selector | None = None

    @model_validator(mode="after")
    def _is_a_block_or_selects(self) -> Self:
        selects = self.namespace_selector is not None or self.pod_selector is not None
        if selects == (self.ip_block is not None):
            raise ValueError("a peer has an ipBlock, or a namespaceSelector, a podSelector or both")
        return self


class _Port(_Part):
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    port: int | str | None = None
    end_port: int | None = None


class _Egress(_Part):
    to: list[_Peer] = []
    ports: list[_Port] = []


class _Ingress(_Part):
    peers: list[_Peer] = Field([], alias="from")
    ports: list[_Port] = []


_PEERS = TypeAdapter(list[_Peer])
_INGRESS = TypeAdapter(list[_Ingress])
_EGRESS = TypeAdapter(list[_Egress])


def peers(text: str) -> tuple[PolicyPeer, ...]:
    """Return the peers of a JSON list; raises ValueError with the faults."""
    found = _json_list(text, _PEERS, "NetworkPolicyPeers")
    return tuple(each.model_dump(by_alias=True, exclude_defaults=True) for each in found)


def egress(text: str) -> tuple[PolicyRule, ...]:
    """Return the rules of a JSON list of egress; raises ValueError with the faults."""
    return _rules(_json_list(text, _EGRESS, "NetworkPolicyEgressRules"))


def ingress(text: str) -> tuple[PolicyRule, ...]:
    """Return the rules of a JSON list of ingress; raises ValueError with the faults."""
    return _rules(_json_list(text, _INGRESS, "NetworkPolicyIngressRules"))


def is_within(peer: PolicyPeer, bound: PolicyPeer, namespace: str) -> bool:
    """Whether a peer selects nobody whom a bound does not, as their words show it: it has all conditions of the bound.

    ``namespace``: of the policy, to which both belong if they select pods alone. Nobody knows which addresses pods
    have, so a block of addresses lies within another block alone.
    """
    if "ipBlock" in peer or "ipBlock" in bound:
        return "ipBlock" in peer and "ipBlock" in bound and _lies_within(peer["ipBlock"], bound["ipBlock"])
    own = {"matchLabels": {NAMESPACE_NAME: namespace}}
    namespaces = [_conditions(each.get("namespaceSelector", own)) for each in (peer, bound)]
    pods = [_conditions(each.get("podSelector", {})) for each in (peer, bound)]
    return all(any(_implies(has, needs) for has in ours) for ours, theirs in (namespaces, pods) for needs in theirs)


def _lies_within(block: Mapping[str, Any], bound: Mapping[str, Any]) -> bool:
    """Whether a block without exceptions lies in another one, and apart from its exceptions."""
    inner, outer = ip_network(block["cidr"], strict=False), ip_network(bound["cidr"])
    if inner.version != outer.version:
        return False
    is_inside = inner.subnet_of(outer)  # type: ignore[arg-type]  # of one IP version
    return is_inside and not any(inner.overlaps(ip_network(hole)) for hole in bound.get("except", ()))


def _conditions(selector: Mapping[str, Any]) -> list[_Condition]:
    """Return what a selector asks of labels."""
    labels = [(key, "In", frozenset({value})) for key, value in selector.get("matchLabels", {}).items()]
    expressions = selector.get("matchExpressions", ())
    return labels + [(each["key"], each["operator"], frozenset(each.get("values", ()))) for each in expressions]


def _implies(has: _Condition, needs: _Condition) -> bool:
    """Whether labels that meet one condition meet the other one too."""
    key, operator, values = has
    if needs[1] == "Exists":
        return key == needs[0] and operator in ("In", "Exists")
    enough = values >= needs[2] if operator == "NotIn" else values <= needs[2]
    return (key, operator) == needs[:2] and enough


def _rules(rules: Sequence[_Egress] | Sequence[_Ingress]) -> tuple[PolicyRule, ...]:
    # The API server writes the default of a port's protocol into the object.
    return tuple(
        each.model_dump(by_alias=True, exclude_defaults=True)
        | ({"ports": [port.model_dump(by_alias=True, exclude_none=True) for port in each.ports]} if each.ports else {})
        for each in rules
    )


def _json_list(text: str, adapter: TypeAdapter[list[_T]], kind: str) -> list[_T]:
    """Read a JSON list. The API server would refuse a wrong one too, but only for each object."""
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, each['loc']))} {each['msg']}".strip() for each in error.errors()]
        raise ValueError(f"no JSON list of Kubernetes {kind}: {'; '.join(faults)}") from error
