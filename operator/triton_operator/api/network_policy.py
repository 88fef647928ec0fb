"""Who may send requests to the servers, as Kubernetes' NetworkPolicies write it."""

from ipaddress import IPv6Network, ip_network
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, field_validator, model_validator

from triton_operator.api.schema import KEYS, ApiType, LabelKey, LabelValue, rules

MatchLabels = Annotated[dict[str, LabelValue], Field(max_length=16, json_schema_extra=rules(KEYS))]
VALUES = "operator In and NotIn take values, Exists and DoesNotExist take none: add or remove the values"
ONE_KIND = "a peer must have an ipBlock, or a namespaceSelector, a podSelector or both: correct it"
A_BLOCK = "cidr must be a block of addresses, such as 10.0.0.0/8 or 2001:db8::/64: correct it"


def is_block(text: str) -> bool:
    """Whether a text is a block of addresses to CEL's ``isCIDR``, which takes neither 10.0.0.0/08 nor IPv4 in IPv6."""
    try:
        block = ip_network(text, strict=False)
    except ValueError:
        return False
    is_mapped = isinstance(block, IPv6Network) and block.network_address.ipv4_mapped is not None
    return not is_mapped and text.rpartition("/")[2] == str(block.prefixlen)


class LabelRequirement(ApiType):
    """A condition on one label."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            ("(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)", VALUES)
        )
    )
    key: LabelKey
    """Key of the label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """Relation to `values`."""
    values: Annotated[list[LabelValue], Field(max_length=16)] = Field(default_factory=list)
    """Values of the label. Default: none."""

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        """Refuse what the CRD's rule refuses where there is no API server."""
        if (self.operator in ("In", "NotIn")) != bool(self.values):
            raise ValueError(VALUES)
        return self


class LabelSelector(ApiType):
    """Labels that something must have; `{}` selects everything."""

    match_labels: MatchLabels = Field(default_factory=dict)
    """Labels and the values that they must have. Default: none."""
    match_expressions: Annotated[list[LabelRequirement], Field(max_length=16)] = Field(default_factory=list)
    """Further conditions, all of which must hold. Default: none."""


class AddressBlock(ApiType):
    """A block of addresses."""

    model_config = ConfigDict(json_schema_extra=rules(("isCIDR(self.cidr)", A_BLOCK)))
    cidr: Annotated[str, StringConstraints(max_length=49, pattern=r"^[0-9a-fA-F.:]+/[0-9]{1,3}$")]
    """The block, such as `10.0.0.0/8`."""

    @field_validator("cidr")
    @classmethod
    def _check_block(cls, cidr: str) -> str:
        """Refuse what the CRD's rule refuses where there is no API server."""
        if not is_block(cidr):
            raise ValueError(A_BLOCK)
        return cidr


class Peer(ApiType):
    """A Kubernetes NetworkPolicyPeer: pods, or a block of addresses."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            ("has(self.ipBlock) != (has(self.namespaceSelector) || has(self.podSelector))", ONE_KIND)
        )
    )
    namespace_selector: LabelSelector | None = None
    """Namespaces of the pods; `{}` selects all. Default: the object's own namespace."""
    pod_selector: LabelSelector | None = None
    """The pods, by their labels. Default: all pods of these namespaces."""
    ip_block: AddressBlock | None = None
    """Addresses of clients that are no pods. Default: none."""

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        """Refuse what the CRD's rule refuses where there is no API server."""
        if (self.ip_block is None) == (self.namespace_selector is None and self.pod_selector is None):
            raise ValueError(ONE_KIND)
        return self

    def body(self) -> dict[str, Any]:
        """Return the peer as a NetworkPolicy has it, without empty fields, which the API server does not keep."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


class NetworkPolicy(ApiType):
    """Who may send requests to the servers."""

    peers: Annotated[list[Peer], Field(alias="from", min_length=1, max_length=16)]
    """The only peers that may reach the inference ports, as in a NetworkPolicy, within the Helm values
    `networkPolicy.clients` and `allowed.clients`."""
