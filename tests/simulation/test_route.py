"""The HTTPRoute: when there is one, where it leads, and what the condition says of it."""

from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import Attack
from tests.simulation.cluster import SETTINGS, Body, Cluster, accepted
from tests.states.deployment import a_deployment

ROUTE = {"parentRefs": [{"name": "public", "namespace": "gateways"}], "hostnames": ["digits.example"]}


def routed(serving: dict[str, Any] | None = None, **fields: Any) -> Cluster:
    """An object with a route, before its first pass."""
    return (
        a_deployment()
        .one_candidate()
        .asking(serving={"route": ROUTE} | (serving or {}))
        .where(**{"has_gateway_api": True} | fields)
        .cluster()
    )


@pytest.fixture
def cluster() -> Cluster:
    found = routed()
    found.settle()
    return found


def route(cluster: Cluster) -> Body | None:
    return cluster.objects.get(("HTTPRoute", "digits"))


def backends(cluster: Cluster) -> list[tuple[str, int, int]]:
    found = route(cluster)
    assert found is not None
    return [
        (each["name"], each["port"], each["weight"]) for rule in found["spec"]["rules"] for each in rule["backendRefs"]
    ]


def routed_condition(cluster: Cluster) -> tuple[str, str]:
    found = cluster.condition("Routed")
    return found["status"], found["reason"]


def test_one_route_has_a_rule_for_each_protocol(cluster: Cluster) -> None:
    found = route(cluster)
    assert found is not None
    assert found["spec"]["parentRefs"] == ROUTE["parentRefs"]
    assert found["spec"]["hostnames"] == ROUTE["hostnames"]
    grpc, http = ([each["path"]["value"] for each in rule["matches"]] for rule in found["spec"]["rules"])
    assert (grpc, http) == (["/inference.GRPCInferenceService", "/grpc.health.v1.Health"], ["/v2"])
    assert backends(cluster) == [("digits", 8001, 100), ("digits", 8000, 100)]
    assert routed_condition(cluster) == ("True", "RouteAccepted")
    assert (
        "digits.example come to Service digits through Gateway gateways/public"
        in (cluster.condition("Routed")["message"])
    )


def test_gateways_know_that_grpc_has_no_tls(cluster: Cluster) -> None:
    for name in ("digits", "digits-preview"):
        ports = {each["name"]: each.get("appProtocol") for each in cluster.objects["Service", name]["spec"]["ports"]}
        assert ports == {"http": None, "grpc": "kubernetes.io/h2c", "metrics": None}


def test_the_preview_service_is_named_only_for_a_canary() -> None:
    cluster = routed({"soak": {}, "route": ROUTE | {"canary": [5]}})
    cluster.settle()
    assert backends(cluster) == [
        ("digits", 8001, 100),
        ("digits-preview", 8001, 0),
        ("digits", 8000, 100),
        ("digits-preview", 8000, 0),
    ]


def test_an_object_that_asks_for_nothing_has_neither_a_route_nor_the_condition() -> None:
    cluster = a_deployment().one_candidate().where(has_gateway_api=True).settled().cluster()
    assert route(cluster) is None
    assert all(each["type"] != "Routed" for each in cluster.status["conditions"])


def test_before_a_first_revision_is_active_there_is_no_route() -> None:
    cluster = routed()
    cluster.act()
    assert (route(cluster), routed_condition(cluster)) == (None, ("Unknown", "Waiting"))


@pytest.mark.parametrize(("allowed", "known"), [(False, True), (True, False)])
def test_what_the_cluster_lacks_is_said_and_stops_nothing(allowed: bool, known: bool) -> None:
    cluster = routed(has_gateway_api=known, settings=replace(SETTINGS, gateway_api=allowed))
    cluster.settle()
    assert (route(cluster), routed_condition(cluster)) == (None, ("False", "AddOnMissing"))
    assert ("gatewayApi.enabled" in cluster.condition("Routed")["message"]) is not allowed
    assert cluster.condition("Ready")["status"] == "True"
    assert [each.type for each in cluster.events if each.reason == "AddOnMissing"] == ["Warning"]


BOUNDED = replace(SETTINGS, allowed_gateways=("gateways/public", "vision/*"), allowed_hostnames=("*.models.example",))


@pytest.mark.parametrize(
    ("parent", "hostnames", "words"),
    [
        ({"name": "public"}, ["a.models.example"], ""),
        ({"name": "public", "namespace": "gateways"}, ["a.models.example", "*.models.example"], ""),
        (
            {"name": "private", "namespace": "gateways"},
            ["a.models.example"],
            "spec.serving.route.parentRefs names Gateway gateways/private, which this installation does not allow",
        ),
        (
            {"name": "public"},
            ["a.models.example", "shop.example"],
            "spec.serving.route.hostnames names host name shop.example, which this installation does not allow",
        ),
        ({"name": "public"}, ["*.example"], "spec.serving.route.hostnames names host name *.example, which"),
        ({"name": "public"}, ["models.example"], "spec.serving.route.hostnames names host name models.example, which"),
        ({"name": "public"}, [], "spec.serving.route.hostnames names no host name, and so all that the listeners take"),
    ],
)
def test_a_route_names_what_the_installation_allows(
    parent: Body, hostnames: list[str], words: str, attack: Attack
) -> None:
    asked = {"parentRefs": [parent], "hostnames": hostnames}
    cluster = routed({"route": asked})
    cluster.settle()
    assert route(cluster) is not None
    cluster.settings = BOUNDED
    cluster.settle()
    if not words:
        assert (cluster.condition("Stalled")["status"], routed_condition(cluster)) == (
            "False",
            ("True", "RouteAccepted"),
        )
        return
    assert route(cluster) is None
    assert routed_condition(cluster) == ("False", "NotAllowed")
    for kind in ("UpToDate", "Routed"):
        assert cluster.condition(kind)["message"].startswith(words)
    assert "the Helm value allowed." in cluster.condition("Routed")["message"]
    assert cluster.condition("Available")["status"] == "True"
    cluster.settings = SETTINGS
    cluster.settle()
    assert routed_condition(cluster) == ("True", "RouteAccepted")
    attack("author of an object", f"requests for others, by Gateway {parent['name']} and {hostnames}", words)


def test_a_new_object_with_a_route_that_is_not_allowed_starts_nothing() -> None:
    cluster = routed(settings=BOUNDED)
    cluster.settle()
    assert (route(cluster), cluster.story) == (None, [])
    assert cluster.condition("Stalled")["reason"] == "NotAllowed"


def test_an_edit_that_meets_a_host_name_of_another_object_takes_nothing_from_clients(cluster: Cluster) -> None:
    before = route(cluster)
    cluster.edit(serving={"route": {"parentRefs": [{"name": "public"}], "hostnames": ["cart.example"]}})
    cluster.host_holder = "shop/cart"
    cluster.act()
    assert (route(cluster), routed_condition(cluster)) == (before, ("False", "RouteRefused"))


def test_a_host_name_that_another_object_has_is_not_taken_from_it(attack: Attack) -> None:
    cluster = routed()
    cluster.host_holder = "shop/cart"
    cluster.act()
    assert (route(cluster), routed_condition(cluster)) == (None, ("False", "RouteRefused"))
    words = cluster.condition("Routed")["message"]
    assert "TritonDeployment shop/cart has the same host name on the same Gateway" in words
    assert cluster.intent().requeue_after is not None
    cluster.host_holder = ""
    cluster.settle()
    assert routed_condition(cluster) == ("True", "RouteAccepted")
    attack("author of an object", "requests for others, by their host name", words)


def test_a_gateway_that_refuses_the_route_says_why() -> None:
    def refused(body: Body) -> list[Body]:
        words = {"reason": "NotAllowedByListeners", "message": "no listener takes routes of namespace vision"}
        said = {"type": "Accepted", "status": "False", "observedGeneration": 1, **words}
        return [{"parentRef": each, "conditions": [said]} for each in body["spec"]["parentRefs"]]

    cluster = routed(gateway=refused)
    cluster.settle()
    assert routed_condition(cluster) == ("False", "RouteRefused")
    assert (
        "Gateway gateways/public does not accept HTTPRoute digits: Accepted: NotAllowedByListeners: no listener"
        in (cluster.condition("Routed")["message"])
    )
    assert cluster.condition("Ready")["status"] == "True"


def test_the_answer_of_a_gateway_that_is_not_asked_does_not_count() -> None:
    def stale(body: Body) -> list[Body]:
        said = {"type": "Accepted", "status": "False", "observedGeneration": 1}
        return [*accepted(body), {"parentRef": {"name": "former", "namespace": "gateways"}, "conditions": [said]}]

    cluster = routed(gateway=stale)
    cluster.settle()
    assert routed_condition(cluster) == ("True", "RouteAccepted")


def test_a_gateway_that_says_nothing_is_named() -> None:
    cluster = routed(gateway=lambda body: [])
    cluster.settle()
    assert routed_condition(cluster) == ("Unknown", "Waiting")
    assert "Gateway gateways/public has not answered" in cluster.condition("Routed")["message"]


def test_the_field_changes_no_key_and_restarts_nothing(cluster: Cluster) -> None:
    story = list(cluster.story)
    cluster.edit(serving={})
    cluster.settle()
    assert route(cluster) is None
    cluster.edit(serving={"route": ROUTE | {"hostnames": ["other.example"]}})
    cluster.settle()
    found = route(cluster)
    assert found is not None
    assert found["spec"]["hostnames"] == ["other.example"]
    assert set(cluster.story[len(story) :]) <= {"promotion"}, "the Service's ports changed; no Job and no server did"
