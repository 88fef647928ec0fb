"""Whether a peer that a spec lets in lies within one that the installation names."""

from typing import Any

import pytest

from triton_operator.api.network_policy import NetworkPolicy, Peer
from triton_operator.policy_rules import is_within

Body = dict[str, Any]


def labels(**matching: str) -> Body:
    return {"matchLabels": matching}


def where(key: str, operator: str, *values: str) -> Body:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": [*values]} if values else {})}]}


OWN: Body = {"podSelector": {}}
TEAM = {"namespaceSelector": labels(team="vision")}
APP = TEAM | {"podSelector": labels(app="shop")}
HERE = {"namespaceSelector": labels(**{"kubernetes.io/metadata.name": "vision"})}
EVERYWHERE: Body = {"namespaceSelector": {}}
NET: Body = {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}


def block(cidr: str) -> Body:
    return {"ipBlock": {"cidr": cidr}}


def of_pods(selector: Body) -> Body:
    return {"podSelector": selector}


@pytest.mark.parametrize(
    ("peer", "bound"),
    [
        (OWN, OWN),
        (TEAM, TEAM),
        (APP, TEAM),
        (APP, EVERYWHERE),
        (OWN, EVERYWHERE),
        (OWN, HERE),
        (HERE, OWN),
        (of_pods(labels(app="shop")), OWN),
        ({"namespaceSelector": labels(team="vision", zone="a")}, TEAM),
        ({"namespaceSelector": where("team", "In", "vision")}, TEAM),
        (TEAM, {"namespaceSelector": where("team", "In", "vision", "audio")}),
        (TEAM, {"namespaceSelector": where("team", "Exists")}),
        (of_pods(where("a", "NotIn", "1", "2")), of_pods(where("a", "NotIn", "1"))),
        (of_pods(where("a", "DoesNotExist")), of_pods(where("a", "DoesNotExist"))),
        (block("10.2.0.0/16"), NET),
        (block("10.2.3.4/16"), NET),
        (block("2001:db8:1::/48"), block("2001:db8::/32")),
    ],
)
def test_the_same_or_less_is_within(peer: Body, bound: Body) -> None:
    assert is_within(Peer.model_validate(peer).body(), bound, "vision")


@pytest.mark.parametrize(
    ("peer", "bound"),
    [
        (EVERYWHERE, TEAM),
        (EVERYWHERE, OWN),
        (TEAM, APP),
        (TEAM, OWN),
        (OWN, TEAM),
        (OWN, {"namespaceSelector": labels(**{"kubernetes.io/metadata.name": "other"})}),
        ({"namespaceSelector": labels(team="audio")}, TEAM),
        ({"namespaceSelector": where("team", "In", "vision", "audio")}, TEAM),
        ({"namespaceSelector": where("team", "Exists")}, TEAM),
        ({"namespaceSelector": where("team", "NotIn", "vision")}, TEAM),
        ({"namespaceSelector": where("team", "DoesNotExist")}, {"namespaceSelector": where("team", "Exists")}),
        (of_pods(where("a", "NotIn", "1")), of_pods(where("a", "NotIn", "1", "2"))),
        (of_pods(where("a", "NotIn", "1")), of_pods(where("a", "DoesNotExist"))),
        (of_pods(labels(other="shop")), of_pods(labels(app="shop"))),
        (block("0.0.0.0/0"), NET),
        (block("10.0.0.0/7"), NET),
        (block("10.1.2.0/24"), NET),
        (block("10.0.0.0/12"), NET),
        (block("::/0"), NET),
        (block("10.2.0.0/16"), EVERYWHERE),
        (OWN, NET),
    ],
)
def test_more_or_something_else_is_not(peer: Body, bound: Body) -> None:
    assert not is_within(Peer.model_validate(peer).body(), bound, "vision")


@pytest.mark.parametrize(
    ("peer", "words"),
    [
        ({}, "a peer must have an ipBlock, or a namespaceSelector, a podSelector or both"),
        (NET | OWN, "a peer must have an ipBlock"),
        (block("10.0.0.0/33"), "cidr must be a block of addresses"),
        (block("10.0.0.300/8"), "cidr must be a block of addresses"),
        (block("10.0.0.0/255.0.0.0"), "should match pattern"),
        (of_pods(where("a", "In")), "In and NotIn take values, Exists and DoesNotExist take none"),
        (of_pods(where("a", "Exists", "1")), "In and NotIn take values, Exists and DoesNotExist take none"),
        (of_pods(where("a", "Is", "1")), "Input should be 'In', 'NotIn', 'Exists' or 'DoesNotExist'"),
    ],
)
def test_what_no_policy_could_have_is_refused(peer: Body, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Peer.model_validate(peer)


def test_an_empty_list_which_to_kubernetes_is_everybody_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 item"):
        NetworkPolicy.model_validate({"from": []})
