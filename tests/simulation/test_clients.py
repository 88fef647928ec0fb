"""Whom an object lets in to its servers, and how the installation bounds that."""

from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import Attack
from tests.simulation.cluster import SETTINGS, Cluster
from tests.states.deployment import a_deployment
from triton_operator.policy_rules import PolicyPeer

Body = dict[str, Any]
SHOP: PolicyPeer = {"namespaceSelector": {"matchLabels": {"team": "shop"}}}
CHECKOUT: PolicyPeer = {**SHOP, "podSelector": {"matchLabels": {"app": "checkout"}}}
OWN: PolicyPeer = {"podSelector": {}}
ANYBODY: PolicyPeer = {"ipBlock": {"cidr": "0.0.0.0/0"}}
EVERY_POD: PolicyPeer = {"namespaceSelector": {}}
BOUNDED = replace(SETTINGS, clients=(OWN,), allowed_clients=(SHOP,))


def asked(*peers: PolicyPeer) -> Body:
    return {"serving": {"networkPolicy": {"from": [*peers]}}}


def clients(cluster: Cluster, port: int = 8000) -> Any:
    """Who may reach a port of the servers besides the measure Job; None: nobody."""
    _, *rules = cluster.objects["NetworkPolicy", "digits-servers"]["spec"]["ingress"]
    found = [rule.get("from", "anybody") for rule in rules if port in [each["port"] for each in rule["ports"]]]
    return found[0] if found else None


def test_an_object_lets_in_whom_it_names_at_once_and_restarts_nothing(serving: Cluster) -> None:
    before = [*serving.of_kind("Deployment"), *serving.of_kind("Pod"), *serving.of_kind("Job")]
    told = list(serving.story)
    for edit, expected in ((asked(CHECKOUT, OWN), [CHECKOUT, OWN]), (asked(ANYBODY), [ANYBODY]), ({}, "anybody")):
        serving.edit(**({"serving": {}} | edit))
        serving.settle()
        assert (clients(serving), clients(serving, 8001)) == (expected, expected)
        assert clients(serving, 8002) == "anybody", "metrics are the installation's"
        assert serving.condition("Ready")["status"] == "True"
    assert serving.story == told
    assert [*serving.of_kind("Deployment"), *serving.of_kind("Pod"), *serving.of_kind("Job")] == before


def test_the_measure_job_reaches_the_server_of_an_object_that_lets_in_one_pod() -> None:
    cluster = a_deployment().asking(**asked(CHECKOUT)).settled().cluster()
    own, *_ = cluster.objects["NetworkPolicy", "digits-servers"]["spec"]["ingress"]
    assert own["from"][0]["podSelector"]["matchLabels"]["triton-operator.dev/stage"] == "measure"
    assert cluster.condition("Ready")["status"] == "True"


@pytest.mark.parametrize("peer", [OWN, SHOP, CHECKOUT])
def test_within_the_bound_everything_is_as_it_is_asked(serving: Cluster, peer: PolicyPeer) -> None:
    serving.settings = BOUNDED
    serving.edit(**asked(peer))
    serving.settle()
    assert (clients(serving), serving.condition("Stalled")["status"]) == ([peer], "False")


def test_without_the_field_only_the_clients_of_the_installation_are_let_in(serving: Cluster) -> None:
    serving.settings = BOUNDED
    serving.settle()
    assert clients(serving) == [OWN]


@pytest.mark.parametrize("peer", [EVERY_POD, ANYBODY, {"namespaceSelector": {"matchLabels": {"team": "other"}}}])
def test_nobody_beyond_the_bound_is_let_in(serving: Cluster, attack: Attack, peer: PolicyPeer) -> None:
    """The others are, so what an edit asks for in vain takes the server from no client."""
    story = list(serving.story)
    serving.settings = BOUNDED
    serving.edit(**asked(peer, CHECKOUT))
    serving.settle()
    stalled = serving.condition("Stalled")
    attack("author of an object", f"a server that lets in {peer}", stalled["message"])
    assert clients(serving) == [CHECKOUT]
    assert (stalled["status"], stalled["reason"]) == ("True", "NotAllowed")
    assert stalled["message"].startswith("spec.serving.networkPolicy.from names peer {")
    assert "to add it to the Helm value allowed.clients" in stalled["message"]
    assert serving.condition("Available")["status"] == "True"
    serving.edit(**asked(peer))
    serving.settle()
    assert clients(serving) is None, "no rule at all: one without peers would be for everybody"
    assert serving.story == story


def test_a_bound_that_is_narrowed_holds_at_once(serving: Cluster, attack: Attack) -> None:
    serving.settings = BOUNDED
    serving.edit(**asked(SHOP, OWN))
    serving.settle()
    serving.settings = replace(BOUNDED, allowed_clients=())
    serving.settle()
    attack("author of an object", "a server that lets in whom it was once allowed", str(clients(serving)))
    assert clients(serving) == [OWN]
    assert serving.condition("UpToDate")["reason"] == "NotAllowed"
