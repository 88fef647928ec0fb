"""Who may talk to a server and to a Job: the policies of an object, from its first pass on."""

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.cluster import SETTINGS, Cluster
from tests.states.deployment import a_deployment
from triton_operator.policy_rules import PolicyPeer, PolicyRule

Body = dict[str, Any]
GATEWAY: PolicyPeer = {"namespaceSelector": {"matchLabels": {"team": "vision"}}, "podSelector": {}}
PROMETHEUS: PolicyPeer = {"ipBlock": {"cidr": "10.0.0.0/8"}}
OF_MEASURE = {
    "podSelector": {"matchLabels": {"triton-operator.dev/deployment": "digits", "triton-operator.dev/stage": "measure"}}
}


def policies(cluster: Cluster) -> dict[str, Body]:
    return {each["metadata"]["name"]: each["spec"] for each in cluster.of_kind("NetworkPolicy")}


def who(cluster: Cluster) -> dict[int, Any]:
    """Who may reach the servers besides the measure Job, by port."""
    own, *rules = policies(cluster)["digits-servers"]["ingress"]
    assert own["from"] == [OF_MEASURE]
    assert [each["port"] for each in own["ports"]] == [8000, 8001, 8002]
    return {each["port"]: rule.get("from", "anybody") for rule in rules for each in rule["ports"]}


def test_an_object_has_the_policies_of_servers_from_its_first_server_on() -> None:
    cluster = a_deployment().cluster()
    while not cluster.of_kind("Deployment"):
        assert set(policies(cluster)) <= {"digits-jobs"}
        cluster.run(1)
    assert set(policies(cluster)) == {"digits-jobs", "digits-servers", "digits-measure"}
    kinds = [each["kind"] for each in cluster.intent().objects]
    assert "NetworkPolicy" not in kinds[kinds.index("Deployment") :], "a server never runs before its policy"


def test_a_server_asks_nobody_and_answers_everybody_by_default(serving: Cluster) -> None:
    policy = policies(serving)["digits-servers"]
    assert policy["podSelector"]["matchExpressions"] == [{"key": "triton-operator.dev/server", "operator": "Exists"}]
    assert (policy["policyTypes"], policy["egress"]) == (["Ingress", "Egress"], [])
    assert who(serving) == {8000: "anybody", 8001: "anybody", 8002: "anybody"}


@pytest.mark.parametrize("suspend", [False, True])
def test_other_peers_take_effect_at_the_next_pass_and_restart_nothing(serving: Cluster, suspend: bool) -> None:
    """Also while the object is suspended, and when the peers are taken away again."""
    serving.edit(suspend=suspend)
    serving.settle()
    before = [*serving.of_kind("Deployment"), *serving.of_kind("Pod"), *serving.of_kind("Job")]
    for clients, readers in (((GATEWAY,), (PROMETHEUS,)), (({"podSelector": {}},), ()), ((), ())):
        serving.settings = replace(SETTINGS, clients=clients, metrics_readers=readers)
        assert serving.act() == 1, "the policy, and nothing else"
        inference = list(clients) or "anybody"
        assert who(serving) == {8000: inference, 8001: inference, 8002: list(readers) or "anybody"}
    assert [*serving.of_kind("Deployment"), *serving.of_kind("Pod"), *serving.of_kind("Job")] == before


@pytest.mark.parametrize("name", ["digits-jobs", "digits-servers", "digits-measure"])
@pytest.mark.parametrize("direction", ["ingress", "egress"])
def test_what_somebody_opens_is_closed_again(serving: Cluster, name: str, direction: str) -> None:
    before = policies(serving)[name][direction]
    serving.objects["NetworkPolicy", name]["spec"] = policies(serving)[name] | {direction: [*before, {}]}
    assert serving.act() == 1
    assert policies(serving)[name][direction] == before


def test_a_policy_that_opens_something_goes_with_what_needed_it(serving: Cluster) -> None:
    closing = {"digits-jobs", "digits-servers"}
    serving.edit(serving={"soak": {"duration": "5m"}}, conversion={"requirements": "requirements.txt"})
    serving.run(3)
    assert set(policies(serving)) == closing | {"digits-measure", "digits-snapshot", "digits-sources"}
    serving.edit(serving={}, conversion={})
    serving.run(3)
    assert set(policies(serving)) == closing | {"digits-measure"}


def test_a_policy_that_closes_pods_stays(serving: Cluster) -> None:
    """The pods of a Deployment that somebody deletes may live on for their grace period."""
    serving.edit(suspend=True)
    for each in serving.of_kind("Deployment"):
        serving.delete("Deployment", each["metadata"]["name"])
    deleted = {each.name for each in serving.intent().deletions if each.kind == "NetworkPolicy"}
    assert deleted <= {"digits-measure"}


RULE_IN: PolicyRule = {"ports": [{"protocol": "TCP", "port": 15008}]}
RULE_OUT: PolicyRule = {"to": [{"namespaceSelector": {}}], "ports": [{"protocol": "TCP", "port": 15012}]}


def test_a_proxy_of_a_mesh_reaches_and_is_reached_where_the_installation_says(serving: Cluster) -> None:
    """In all pods, because a mesh adds its proxy to all of them."""
    serving.settings = replace(SETTINGS, mesh_ingress=(RULE_IN,), mesh_egress=(RULE_OUT,))
    assert serving.act() == 2, "the two policies that close pods, and nothing else"
    for name in ("digits-jobs", "digits-servers"):
        assert RULE_IN in policies(serving)[name]["ingress"]
        assert policies(serving)[name]["egress"] == [RULE_OUT]
