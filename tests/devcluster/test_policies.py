"""The nftables ruleset of NetworkPolicies, as text."""

import json
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from hack.devcluster.nodes import Node
from hack.devcluster.paths import ClusterPaths
from hack.devcluster.policies import ruleset, selects
from hack.devcluster.policy_engine import Attachments, policy_engine, with_address
from hack.devcluster.process import end, start
from hack.devcluster.teardown import strays

NAMESPACES = [
    {"metadata": {"name": "a", "labels": {"team": "a"}}},
    {"metadata": {"name": "b", "labels": {"team": "b"}}},
]


def pod(name: str, address: str, namespace: str = "a", **changed: Any) -> dict[str, Any]:
    ports = [{"name": "web", "containerPort": changed.pop("web")}] if "web" in changed else []
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": {"app": name}},
        "spec": {"nodeName": "devcluster", "containers": [{"ports": ports}], **changed},
        "status": {"podIP": address, "phase": "Running"},
    }


PODS = [pod("server", "10.213.0.5", web=8080), pod("client", "10.213.0.6"), pod("guest", "10.213.0.7", "b", web=9090)]


def policy(name: str = "p", **spec: Any) -> dict[str, Any]:
    selector = {"podSelector": {"matchLabels": {"app": "server"}}}
    return {"metadata": {"name": name, "namespace": "a"}, "spec": {**selector, **spec}}


def chain(text: str, name: str) -> list[str]:
    """The rules of a chain, without the last, which drops the rest."""
    lines = [line.strip() for line in text.splitlines()]
    start = lines.index(f"chain {name} {{") + 1
    *rules, last = lines[start : lines.index("}", start)]
    assert last == 'counter drop comment "a/server"'
    return rules


def ingress(*rules: dict[str, Any]) -> list[str]:
    """What the server's chain lets in, but for the server itself."""
    itself, *others = chain(ruleset([policy(ingress=[*rules])], PODS, NAMESPACES), "ingress-10.213.0.5")
    assert itself == "ip saddr 10.213.0.5 return"
    return others


def egress(*rules: dict[str, Any]) -> list[str]:
    text = ruleset([policy(policyTypes=["Egress"], egress=[*rules])], PODS, NAMESPACES)
    return chain(text, "egress-10.213.0.5")[1:]


def test_the_whole_table() -> None:
    rules = [{"from": [{"podSelector": {}}], "ports": [{"port": 80}]}]
    assert ruleset([policy(ingress=rules)], PODS, NAMESPACES) == textwrap.dedent("""\
        add table ip triton-devcluster-policies
        delete table ip triton-devcluster-policies
        table ip triton-devcluster-policies {
          chain ingress-10.213.0.5 {
            ip saddr 10.213.0.5 return
            ip saddr { 10.213.0.5, 10.213.0.6 } tcp dport 80 return
            counter drop comment "a/server"
          }
          set known { type ipv4_addr; elements = { 10.213.0.1, 10.213.0.5, 10.213.0.6, 10.213.0.7 } }
          map egress { type ipv4_addr : verdict; }
          map ingress { type ipv4_addr : verdict; elements = { 10.213.0.5 : jump ingress-10.213.0.5 } }
          chain forward {
            type filter hook forward priority filter;
            ct state established,related accept
            ip saddr 10.213.0.0/16 ip saddr != @known counter drop
            ip daddr 10.213.0.0/16 ip daddr != @known counter drop
            ip saddr vmap @egress
            ip daddr vmap @ingress
          }
          chain input {
            type filter hook input priority filter;
            ct state established,related accept
            ip saddr 10.213.0.0/16 ip saddr != @known counter drop
            ip saddr vmap @egress
          }
        }
        """)


@pytest.mark.parametrize(
    ("peer", "allowed"),
    [
        ({"podSelector": {"matchLabels": {"app": "client"}}}, ["ip saddr { 10.213.0.6 } return"]),
        ({"podSelector": {"matchLabels": {"app": "guest"}}}, []),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, ["ip saddr { 10.213.0.7 } return"]),
        ({"namespaceSelector": {}}, ["ip saddr { 10.213.0.5, 10.213.0.6, 10.213.0.7 } return"]),
        (
            {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "guest"}}},
            ["ip saddr { 10.213.0.7 } return"],
        ),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}, "podSelector": {"matchLabels": {"app": "client"}}}, []),
        ({"ipBlock": {"cidr": "10.0.0.0/8"}}, ["ip saddr 10.0.0.0/8 return"]),
        (
            {"ipBlock": {"cidr": "10.0.0.1/8", "except": ["10.1.0.0/16", "10.1.2.0/24"]}},
            ["ip saddr 10.0.0.0/8 ip saddr != 10.1.0.0/16 ip saddr != 10.1.2.0/24 return"],
        ),
        ({"ipBlock": {"cidr": "fd00::/8"}}, []),
    ],
)
def test_peers(peer: dict[str, Any], allowed: list[str]) -> None:
    assert ingress({"from": [peer]}) == allowed


@pytest.mark.parametrize(
    ("port", "allowed"),
    [
        ({"port": 80}, ["tcp dport 80 return"]),
        ({"port": 53, "protocol": "UDP"}, ["udp dport 53 return"]),
        ({"port": 80, "endPort": 90}, ["tcp dport 80-90 return"]),
        ({"protocol": "SCTP"}, ["meta l4proto sctp return"]),
        ({"port": "web"}, ["tcp dport 8080 return"]),
        ({"port": "web", "protocol": "UDP"}, []),
        ({"port": "other"}, []),
    ],
)
def test_ports(port: dict[str, Any], allowed: list[str]) -> None:
    assert ingress({"ports": [port]}) == allowed


def test_a_name_of_a_port_is_the_receivers() -> None:
    assert egress({"to": [{"namespaceSelector": {}}], "ports": [{"port": "web"}]}) == [
        "ip daddr 10.213.0.5 tcp dport 8080 return",
        "ip daddr 10.213.0.7 tcp dport 9090 return",
    ]


def test_a_rule_without_peers_and_ports_allows_everything_and_no_rule_nothing() -> None:
    assert ingress({}) == ["return"]
    assert ingress() == []


def test_every_peer_goes_with_every_port() -> None:
    peers = [{"ipBlock": {"cidr": "10.0.0.0/8"}}, {"podSelector": {"matchLabels": {"app": "client"}}}]
    assert egress({"to": peers, "ports": [{"port": 1}, {"port": 2}]}) == [
        "ip daddr 10.0.0.0/8 tcp dport 1 return",
        "ip daddr { 10.213.0.6 } tcp dport 1 return",
        "ip daddr 10.0.0.0/8 tcp dport 2 return",
        "ip daddr { 10.213.0.6 } tcp dport 2 return",
    ]


def test_policies_add_up() -> None:
    both = [policy("one", ingress=[{"ports": [{"port": 1}]}]), policy("two", ingress=[{"ports": [{"port": 2}]}])]
    assert chain(ruleset(both, PODS, NAMESPACES), "ingress-10.213.0.5")[1:] == [
        "tcp dport 1 return",
        "tcp dport 2 return",
    ]


@pytest.mark.parametrize(
    ("spec", "isolated"),
    [
        ({}, {"ingress"}),
        ({"egress": [{}]}, {"ingress", "egress"}),
        ({"policyTypes": ["Egress"]}, {"egress"}),
        ({"policyTypes": ["Ingress", "Egress"]}, {"ingress", "egress"}),
        ({"podSelector": {"matchLabels": {"app": "guest"}}}, set()),
    ],
)
def test_isolation(spec: dict[str, Any], isolated: set[str]) -> None:
    text = ruleset([policy(**spec)], PODS, NAMESPACES)
    assert {name for name in ("ingress", "egress") if f"jump {name}-" in text} == isolated


@pytest.mark.parametrize(
    ("operator", "values", "selected"),
    [
        ("In", ["x"], {"x"}),
        ("NotIn", ["x"], {"y", None}),
        ("Exists", None, {"x", "y"}),
        ("DoesNotExist", None, {None}),
    ],
)
def test_expressions(operator: str, values: list[str] | None, selected: set[str | None]) -> None:
    expression = {"key": "k", "operator": operator} | ({"values": values} if values else {})
    labelled: dict[str | None, dict[str, str]] = {"x": {"k": "x"}, "y": {"k": "y"}, None: {}}
    assert {key for key, labels in labelled.items() if selects({"matchExpressions": [expression]}, labels)} == selected


def test_a_pod_without_its_own_address_is_nobody() -> None:
    ended = pod("ended", "10.213.0.8")
    ended["status"]["phase"] = "Succeeded"
    text = ruleset([], [pod("host", "10.215.0.1", hostNetwork=True), ended, pod("new", "")], NAMESPACES)
    assert "elements = { 10.213.0.1 }" in text


def test_a_sidecar_has_ports_too() -> None:
    sidecar = {"restartPolicy": "Always", "ports": [{"name": "web", "containerPort": 7070}]}
    once = {"ports": [{"name": "web", "containerPort": 1}]}
    pods = [pod("server", "10.213.0.5", initContainers=[once, sidecar])]
    text = ruleset([policy(ingress=[{"ports": [{"port": "web"}]}])], pods, NAMESPACES)
    assert chain(text, "ingress-10.213.0.5")[1:] == ["tcp dport 7070 return"]


def attachment(uid: str, address: str, network: str = "triton-devcluster") -> str:
    content = {
        "networkName": network,
        "cniArgs": [["K8S_POD_NAME", "server"], ["K8S_POD_UID", uid]],
        "result": {"ips": [{"address": address}]},
    }
    return json.dumps(content)


def test_addresses_come_from_cni_before_the_api_knows_them(tmp_path: Path) -> None:
    attachments = Attachments(tmp_path / "results")
    assert attachments.addresses() == {}
    (tmp_path / "results").mkdir()
    (tmp_path / "results/lo").write_text(attachment("server", "127.0.0.1/8", "cni-loopback"))
    half = tmp_path / "results/eth0"
    half.write_text(attachment("server", "10.213.0.5/16")[:40])
    assert attachments.addresses() == {}
    half.write_text(attachment("server", "10.213.0.5/16"))
    assert attachments.addresses() == {"server": "10.213.0.5"}
    half.unlink()
    assert attachments.addresses() == {}


def test_an_address_that_cni_took_back_is_no_longer_the_pods() -> None:
    assert with_address(PODS[0], {"server": "10.213.0.9"})["status"]["podIP"] == "10.213.0.9"
    assert with_address(PODS[0], {})["status"]["podIP"] is None
    elsewhere = pod("far", "10.213.64.5", nodeName="devcluster-2")
    assert with_address(elsewhere, {})["status"]["podIP"] is None, "all nodes' results lie in one folder"


def test_an_engine_without_a_record_is_found_and_it_runs_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds no certificates here, so it loads nothing. The deadline is for a busy machine."""
    paths = ClusterPaths(home=tmp_path / "home", runtime=tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    started = start(policy_engine(Node(1, paths)), records=tmp_path / "records", logs=tmp_path / "logs")
    try:
        log = tmp_path / "logs/network-policies.log"
        deadline = time.monotonic() + 120
        while "listing again" not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "FileNotFoundError" in log.read_text()
        assert [found.pid for found in strays(paths)] == [started.pid]
    finally:
        end([started], grace=0)
    assert strays(paths) == []
