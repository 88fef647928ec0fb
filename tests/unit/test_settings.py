"""The settings: the chart's values as environment variables, and what a wrong one is answered with."""

import json
from typing import Any

import pytest

from triton_operator.settings import Settings, SettingsError

IMAGES = {"CONVERTER_IMAGE": "c:1", "SERVER_IMAGE": "s:1", "CONVERTER_TENSORFLOW_IMAGE": "t:1"}
TEAM = {"matchLabels": {"team": "vision"}}


def clients(value: Any) -> tuple[Any, ...]:
    text = value if isinstance(value, str) else json.dumps(value)
    return Settings.from_environment(IMAGES | {"NETWORK_POLICY_CLIENTS": text}).clients


@pytest.mark.parametrize(
    "peer",
    [
        {"podSelector": {}},
        {"podSelector": TEAM, "namespaceSelector": {}},
        {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["vision"]}]}},
        {"podSelector": TEAM | {"matchExpressions": [{"key": "stage", "operator": "DoesNotExist"}]}},
        {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
        {"ipBlock": {"cidr": "fd00::/8"}},
    ],
)
def test_a_peer_of_kubernetes_is_taken_as_it_is(peer: Any) -> None:
    assert clients([peer]) == (peer,)


def test_anybody_is_the_default() -> None:
    settings = Settings.from_environment(IMAGES)
    assert (settings.clients, settings.metrics_readers) == ((), ())
    assert clients("") == clients([]) == ()


def test_fields_that_the_api_server_does_not_keep_are_left_out() -> None:
    """Otherwise each pass would see a difference and write."""
    assert clients([{"podSelector": {"matchLabels": {}, "matchExpressions": []}, "ipBlock": None}]) == (
        {"podSelector": {}},
    )
    assert clients([{"ipBlock": {"cidr": "10.0.0.0/8", "except": []}}]) == ({"ipBlock": {"cidr": "10.0.0.0/8"}},)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("podSelector: {}", "Invalid JSON"),
        ({"podSelector": {}}, "valid array"),
        ([{}], "0 .*a peer has an ipBlock, or a namespaceSelector"),
        ([{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}], "a peer has an ipBlock, or"),
        ([{"podSelector": {}}, {"podselector": {}}], "1.podselector Extra inputs are not permitted"),
        ([{"podSelector": {"matchLabels": {"replicas": 1}}}], "0.podSelector.matchLabels.replicas .*valid string"),
        ([{"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}], "In and NotIn take values"),
        ([{"podSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}], "operator .*'Exists'"),
        ([{"ipBlock": {"cidr": "10.0.0.0/33"}}], "0.ipBlock .*10.0.0.0/33"),
        ([{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/9"]}}], "11.0.0.0/9 does not lie within 10.0.0.0/8"),
    ],
)
def test_a_wrong_peer_is_named_with_its_place(value: Any, words: str) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        clients(value)
    assert str(caught.value).startswith("NETWORK_POLICY_CLIENTS is no JSON list of Kubernetes NetworkPolicyPeers: ")
    with pytest.raises(SettingsError, match="NETWORK_POLICY_METRICS is no JSON list"):
        Settings.from_environment(IMAGES | {"NETWORK_POLICY_METRICS": "[{}]"})
