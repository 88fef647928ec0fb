"""What waits for what while a plan is carried out."""

from collections.abc import Iterable
from typing import Any

import pytest

from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.kube.kinds import HTTP_ROUTE, SERVICE, ApiKind
from triton_operator.planning.plan import Plan
from triton_operator.planning.summary import SummaryFacts
from triton_operator.runtime.carrying_out import CarryingOut
from triton_operator.runtime.writing import Failures, ForeignError, key_of

Body = dict[str, Any]
OWNER: Body = {"metadata": {"name": "digits", "namespace": "vision"}}


def a_body(kind: ApiKind, name: str, **others: Any) -> Body:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, **others}


def a_route(share: int) -> Body:
    weights = {"digits": 100 - share, "digits-preview": share}
    backends = [{"name": name, "weight": weight} for name, weight in weights.items()]
    return a_body(HTTP_ROUTE, "digits", spec={"rules": [{"backendRefs": backends}]})


class AWriter:
    """A writer for whom some names are taken by other objects."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)
        self.applied: list[Body] = []

    def apply_all(self, owner: Body, children: Any, objects: Iterable[Body], failures: Failures) -> list[str]:
        for each in objects:
            if (each["kind"], each["metadata"]["name"]) in {("Service", name) for name in self.taken}:
                failures.append(ForeignError("it exists and is not this TritonDeployment's"))
            else:
                self.applied.append(each)
        return [f"{each['kind']} {each['metadata']['name']}" for each in self.applied]


@pytest.mark.parametrize("are_known", [True, False])
@pytest.mark.parametrize(
    ("share", "taken", "is_routed"),
    [
        (0, [], True),
        (20, [], True),
        (20, ["digits-preview"], False),
        (0, ["digits-preview"], True),
        (0, ["digits"], False),
        (20, ["digits"], False),
    ],
)
def test_no_route_leads_to_the_service_of_another_object(
    share: int, taken: list[str], is_routed: bool, are_known: bool
) -> None:
    services, route = [a_body(SERVICE, name) for name in ("digits", "digits-preview")], a_route(share)
    children = {key_of(each): each for each in services if are_known and each["metadata"]["name"] not in taken}
    writer = AWriter(taken)
    facts: Any = SummaryFacts.__new__(SummaryFacts)
    planned = Plan((*services, route), (), TritonDeploymentStatus(), (), None, facts)
    carried = CarryingOut(writer, OWNER, children, planned).take_steps(to_the_end=True)  # type: ignore[arg-type]  # a fake of the writer
    assert (route in writer.applied, bool(carried.failures)) == (is_routed, bool(taken))
