"""The planned HTTPRoute on a real API server: the Gateway API's schema takes it, and the admission policy holds it."""

from collections.abc import Callable, Iterator

import pytest

from tests.apiserver.conftest import VALUES
from tests.apiserver.definitions import HTTP_ROUTES
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import eventually, install_account
from tests.apiserver.planned import HOLDER, Body, anywhere, one, planned, refused, simulated_objects, told
from tests.conftest import Attack
from triton_operator.kube.drift import drift
from triton_operator.kube.managed_fields import FIELD_MANAGER


@pytest.fixture(scope="module")
def as_operator(cluster_kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """kubectl with the operator's token, where the kind is known.

    Other modules install other values of the chart, and the admission policy is the cluster's: it is applied again.
    """
    with HTTP_ROUTES.served(cluster_kubectl):
        found = Kubectl(install_account(cluster_kubectl, tmp_path_factory.mktemp("account"), *VALUES))
        elsewhere = one("HTTPRoute")
        backend(name="billing")(elsewhere)
        # The API server takes a new policy up a moment later.
        eventually(lambda: refused(found.within("default"), elsewhere), within=60)
        yield found


def test_every_route_that_the_operator_makes_is_allowed(as_operator: Kubectl, kubectl: Kubectl) -> None:
    routes = [body for body in [*planned(), *simulated_objects()] if body["kind"] == "HTTPRoute"]
    assert {tuple(route["spec"].get("hostnames", ())) for route in routes} >= {("digits.example", "*.models.example")}
    operator = as_operator.within(kubectl.namespace)
    operator("create", "--dry-run=server", "--validate=false", "-f", "-", body=list(map(anywhere, routes)))


def test_what_the_api_server_makes_of_it_is_no_drift(as_operator: Kubectl, kubectl: Kubectl) -> None:
    own, body = as_operator.within(kubectl.namespace), one("HTTPRoute")
    own("apply", "--server-side", f"--field-manager={FIELD_MANAGER}", "--validate=strict", "-f", "-", body=body)
    found = own.get(HTTP_ROUTES.name, "digits")
    assert drift(body, found) is None
    body["spec"]["rules"][0]["backendRefs"][0]["weight"] -= 1
    assert drift(body, found) is not None
    own("delete", HTTP_ROUTES.name, "digits")


def backend(**fields: object) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        body["spec"]["rules"][0]["backendRefs"][0] |= fields

    return change


def rule(**fields: object) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        body["spec"]["rules"][1] |= fields

    return change


def match(**fields: object) -> Callable[[Body], None]:
    return rule(matches=[fields])


def parent(**fields: object) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        body["spec"]["parentRefs"][0] |= fields

    return change


def without(field: str) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        del body["spec"]["rules"][0][field]

    return change


def without_labels(body: Body) -> None:
    del body["metadata"]["labels"]["triton-operator.dev/deployment"]


def without_owner(body: Body) -> None:
    del body["metadata"]["ownerReferences"]


def of_another_name(body: Body) -> None:
    body["metadata"]["name"] = "billing"


SERVICES = "leads to the Services of its own TritonDeployment"
PATHS = "takes the paths of Triton's protocols alone"
PARENTS = "has Gateways as its parents"
MIRROR = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "listener", "port": 80}}}
HEADER = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "a", "value": "b"}]}}
ATTACKS: list[tuple[str, Callable[[Body], None], str]] = [
    ("another Service", backend(name="billing"), SERVICES),
    ("another object's Service", backend(name="digits-2"), SERVICES),
    ("another namespace", backend(namespace="kube-system"), SERVICES),
    ("another kind", backend(group="example.com", kind="Bucket"), SERVICES),
    ("another group", backend(group="example.com"), SERVICES),
    ("a filter of a backend", backend(filters=[HEADER]), SERVICES),
    ("a filter", rule(filters=[MIRROR]), SERVICES),
    ("timeouts", rule(timeouts={"request": "1s"}), SERVICES),
    ("no backends", without("backendRefs"), SERVICES),
    ("any path", match(path={"type": "PathPrefix", "value": "/"}), PATHS),
    ("another path", match(path={"type": "PathPrefix", "value": "/login"}), PATHS),
    ("an exact path", match(path={"type": "Exact", "value": "/v2"}), PATHS),
    ("a header", match(path={"type": "PathPrefix", "value": "/v2"}, headers=[{"name": "a", "value": "b"}]), PATHS),
    ("a method", match(path={"type": "PathPrefix", "value": "/v2"}, method="GET"), PATHS),
    ("no matches", without("matches"), PATHS),
    ("a mesh", parent(group="", kind="Service"), PARENTS),
    ("a port of a Gateway", parent(port=443), PARENTS),
    ("no labels", without_labels, "has not the labels of an object of a TritonDeployment"),
    ("no owner", without_owner, "has not the TritonDeployment digits as its owner"),
    ("another name", of_another_name, "has not a name of an object of the TritonDeployment digits"),
]


@pytest.mark.parametrize(("name", "change", "words"), ATTACKS, ids=[each[0] for each in ATTACKS])
def test_the_operators_token_makes_no_other_route(
    as_operator: Kubectl, kubectl: Kubectl, attack: Attack, name: str, change: Callable[[Body], None], words: str
) -> None:
    body = one("HTTPRoute")
    change(body)
    said = refused(as_operator.within(kubectl.namespace), body)
    attack(HOLDER, f"HTTPRoute: {name}", told(said))
    assert words in said
