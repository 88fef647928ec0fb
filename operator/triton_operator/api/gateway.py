"""The HTTPRoute that clients outside the cluster reach the active revision by, and the canary on it."""

from itertools import pairwise
from typing import Annotated, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from triton_operator.api.schema import ApiType, DnsLabel, DnsName, rules

MOST_STEPS = 10
"""The most steps of a canary: each lasts as long as a soak, and the CEL rule about their order has to name each."""
ORDER = (
    "canary must list each share once, in rising order, such as [5, 25, 50]: sort the list, and remove what is double"
)
Hostname = Annotated[
    str,
    StringConstraints(
        max_length=253, pattern=r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    ),
]
Share = Annotated[int, Field(ge=1, le=99)]


class ParentRef(ApiType):
    """A Gateway of the Gateway API."""

    name: DnsName
    """Name of the Gateway."""
    namespace: DnsLabel = ""
    """Namespace of the Gateway, whose listener must allow routes from this one. Default: the object's own."""
    section_name: Annotated[str, StringConstraints(max_length=253, pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$")] = ""
    """Name of the Gateway's listener. Default: every listener that takes the route."""


class Route(ApiType):
    """An HTTPRoute to the object's Service, for clients outside the cluster."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                f"!has(self.canary) || {list(range(MOST_STEPS - 1))}.all(step, step + 1 >= self.canary.size()"
                " || self.canary[step] < self.canary[step + 1])",
                ORDER,
            )
        )
    )
    parent_refs: Annotated[list[ParentRef], Field(min_length=1, max_length=8)]
    """The Gateways that the route belongs to."""
    hostnames: Annotated[list[Hostname], Field(max_length=16)] = Field(default_factory=list)
    """Host names that the route takes; the first label may be `*`. Default: all that the Gateways' listeners take."""
    canary: Annotated[list[Share], Field(max_length=MOST_STEPS)] = Field(default_factory=list)
    """Rising shares of the route's requests, in percent, that a new revision gets before it becomes active; each step
    is judged as a soak. It needs `soak`. Default: none."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        """Refuse what the CRD's rule refuses where there is no API server."""
        if any(one >= other for one, other in pairwise(self.canary)):
            raise ValueError(ORDER)
        return self
