"""The settings: the chart's values as environment variables, and what a wrong one is answered with."""

import json
from typing import Any

import pytest

from triton_operator.settings import DefaultResources, Settings, SettingsError

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


def test_who_holds_a_lease_has_a_name() -> None:
    lease = {"LEASE": "operators/triton-operator"}
    with pytest.raises(SettingsError, match="POD_NAME is not set"):
        Settings.from_environment(IMAGES | lease)
    named = Settings.from_environment(IMAGES | lease | {"POD_NAME": "operator-0"})
    assert (named.lease, named.holder) == (("operators", "triton-operator"), "operator-0")
    assert Settings.from_environment(IMAGES).holder == ""


@pytest.mark.parametrize(("host", "ipv6"), [("", False), ("10.96.0.1", False), ("fd00:10:96::1", True)])
def test_the_family_of_services_is_that_of_the_api_servers(host: str, ipv6: bool) -> None:
    assert Settings.from_environment(IMAGES | {"KUBERNETES_SERVICE_HOST": host}).ipv6 is ipv6


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


def test_the_default_resources_are_json() -> None:
    text = '{"requests": {"memory": "256Mi"}, "limits": {"memory": "16Gi", "ephemeral-storage": "2Gi"}}'
    settings = Settings.from_environment(IMAGES | {"JOB_RESOURCES": text})
    assert settings.job_resources == DefaultResources(
        requests={"memory": "256Mi"}, limits={"memory": "16Gi", "ephemeral-storage": "2Gi"}
    )
    assert settings.server_resources == DefaultResources()


def test_what_the_installation_demands_and_allows() -> None:
    given = {
        "USER_CODE_RUNTIME_CLASS": "gvisor",
        "USER_CODE_HOST_USERS": "false",
        "ALLOWED_IMAGES": "registry.example/team/, registry.example/nvidia/",
        "ALLOWED_CLAIMS": "team-*",
        "ALLOWED_SERVICE_ACCOUNTS": "vision/models-reader",
        "ALLOWED_GATEWAYS": "gateways/public, vision/*",
        "ALLOWED_HOSTNAMES": "*.models.example",
        "ALLOWED_ANNOTATIONS": "prometheus.io/, linkerd.io/inject",
        "ALLOWED_PYTHON_STEPS": "true",
        "ALLOWED_CLIENTS": '[{"namespaceSelector": {}}]',
    }
    settings = Settings.from_environment(IMAGES | given)
    assert (settings.user_code_runtime_class, settings.user_code_host_users) == ("gvisor", False)
    assert settings.allowed_images == ("registry.example/team/", "registry.example/nvidia/")
    assert settings.allowed_claims == ("team-*",)
    assert settings.allowed_service_accounts == ("vision/models-reader",)
    assert settings.allowed_gateways == ("gateways/public", "vision/*")
    assert settings.allowed_hostnames == ("*.models.example",)
    assert settings.allowed_annotations == ("prometheus.io/", "linkerd.io/inject")
    assert settings.allowed_clients == ({"namespaceSelector": {}},)
    assert settings.allowed_python_steps
    assert Settings.from_environment(IMAGES).allowed_service_accounts == ()
    assert not Settings.from_environment(IMAGES).allowed_python_steps
    assert Settings.from_environment(IMAGES).user_code_host_users is None
    with pytest.raises(SettingsError, match="USER_CODE_HOST_USERS"):
        Settings.from_environment(IMAGES | {"USER_CODE_HOST_USERS": "no"})


def test_no_more_server_arguments_than_a_status_holds() -> None:
    most = " ".join(f"--a{number}=1" for number in range(32))
    assert len(Settings.from_environment(IMAGES | {"SERVER_ARGUMENTS": most}).server_arguments) == 32
    with pytest.raises(SettingsError, match="SERVER_ARGUMENTS has 33 arguments; it takes at most 32"):
        Settings.from_environment(IMAGES | {"SERVER_ARGUMENTS": f"{most} --one-more"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("16Gi", "it takes JSON"),
        ("[]", "it takes JSON"),
        ('{"limit": {"memory": "1Gi"}}', "limit"),
        ('{"limits": {"memory": "16GB"}}', "memory: '16GB'"),
        ('{"limits": {"memory": 1}}', "memory: 1"),
        ('{"limits": {"cpu": "2"}}', "cpu"),
    ],
)
def test_default_resources_that_no_pod_could_have_are_refused(text: str, words: str) -> None:
    with pytest.raises(SettingsError, match="SERVER_RESOURCES") as error:
        Settings.from_environment(IMAGES | {"SERVER_RESOURCES": text})
    assert words in str(error.value)


def egress(value: Any) -> tuple[Any, ...]:
    return Settings.from_environment(IMAGES | {"SOURCES_EGRESS": json.dumps(value)}).sources_egress


def test_rules_of_egress_are_taken_with_what_the_api_server_adds() -> None:
    """Otherwise each pass would see a difference and write."""
    block = {"ipBlock": {"cidr": "10.0.0.0/8"}}
    assert egress([{"to": [block], "ports": [{"port": 3128}]}, {"ports": [{"protocol": "UDP", "port": 53}]}]) == (
        {"to": [block], "ports": [{"protocol": "TCP", "port": 3128}]},
        {"ports": [{"protocol": "UDP", "port": 53}]},
    )
    assert egress([{"ports": [{"protocol": "TCP", "port": 8000, "endPort": 8100}]}, {}]) == (
        {"ports": [{"protocol": "TCP", "port": 8000, "endPort": 8100}]},
        {},
    )
    assert Settings.from_environment(IMAGES).sources_egress == ()


@pytest.mark.parametrize("rule", [{"from": []}, {"to": [{}]}, {"ports": [{"port": 443, "protocol": "HTTP"}]}, []])
def test_a_wrong_rule_of_egress_is_refused(rule: Any) -> None:
    with pytest.raises(SettingsError, match="SOURCES_EGRESS is no JSON list of Kubernetes NetworkPolicyEgressRules"):
        egress([rule])


@pytest.mark.parametrize("proxy", ["http://user:pw@proxy:3128", "proxy:3128", "http://proxy", "socks5://proxy:1080"])
def test_a_proxy_has_a_host_and_a_port_and_no_credentials(proxy: str) -> None:
    with pytest.raises(SettingsError, match="SOURCES_PROXY is no URL") as caught:
        Settings.from_environment(IMAGES | {"SOURCES_PROXY": proxy})
    assert "pw" not in str(caught.value)
    good = Settings.from_environment(IMAGES | {"SOURCES_PROXY": "http://proxy.example:3128"})
    assert good.sources_proxy == "http://proxy.example:3128"


@pytest.mark.parametrize(
    "text", ["certificates", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "x" * 65537]
)
def test_a_bundle_that_would_fail_each_download_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="SOURCES_CA_BUNDLE"):
        Settings.from_environment(IMAGES | {"SOURCES_CA_BUNDLE": text})


@pytest.mark.parametrize(
    ("name", "field"), [("SOURCES_HUB", "sources_hub"), ("SOURCES_PACKAGE_INDEX", "sources_package_index")]
)
def test_a_mirror_is_an_https_url(name: str, field: str) -> None:
    settings = Settings.from_environment(IMAGES | {name: "https://mirror.example:8443/hub/"})
    assert getattr(settings, field) == "https://mirror.example:8443/hub"
    for wrong in ("http://mirror.example", "https://user:pw@mirror.example", "mirror.example"):
        with pytest.raises(SettingsError, match=name):
            Settings.from_environment(IMAGES | {name: wrong})


@pytest.mark.parametrize("url", ["collector:4318", "http://user:pw@collector:4318/v1/traces", "http://collector/?a=b"])
def test_a_collector_has_a_url_without_credentials(url: str) -> None:
    with pytest.raises(SettingsError, match="TRACING_ENDPOINT is no URL"):
        Settings.from_environment(IMAGES | {"TRACING_ENDPOINT": url})


def test_prometheus_may_be_reached_without_encryption_but_not_with_credentials() -> None:
    settings = Settings.from_environment(IMAGES | {"PROMETHEUS_ADDRESS": "http://prometheus.monitoring:9090/tenant/"})
    assert settings.prometheus_address == "http://prometheus.monitoring:9090/tenant"
    for wrong in ("http://user:pw@prometheus:9090", "prometheus:9090", 'http://prometheus"'):
        with pytest.raises(SettingsError, match="PROMETHEUS_ADDRESS"):
            Settings.from_environment(IMAGES | {"PROMETHEUS_ADDRESS": wrong})


def test_rules_of_a_mesh_are_taken_in_both_directions() -> None:
    rules = {
        "MESH_INGRESS": [{"from": [{"podSelector": {}}], "ports": [{"port": 15008}]}],
        "MESH_EGRESS": [{"to": [{"podSelector": {}}], "ports": [{"port": 15012}]}],
    }
    settings = Settings.from_environment(IMAGES | {name: json.dumps(value) for name, value in rules.items()})
    assert settings.mesh_ingress == ({"from": [{"podSelector": {}}], "ports": [{"protocol": "TCP", "port": 15008}]},)
    assert settings.mesh_egress == ({"to": [{"podSelector": {}}], "ports": [{"protocol": "TCP", "port": 15012}]},)
    with pytest.raises(SettingsError, match="MESH_INGRESS is no JSON list of Kubernetes NetworkPolicyIngressRules"):
        Settings.from_environment(IMAGES | {"MESH_INGRESS": '[{"to": []}]'})
