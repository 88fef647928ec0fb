"""The client module against the real API server: what it writes, and what becomes of the API server's refusals."""

from dataclasses import replace
from pathlib import Path
from socket import SHUT_RDWR
from typing import Any

import pytest

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.custom_resources import MINIMAL, changed
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import install_account
from tests.simulation.cluster import SETTINGS
from tests.simulation.cluster import Cluster as Simulation
from tests.simulation.deployments import a_spec
from triton_operator.kube.cluster import Cluster
from triton_operator.kube.drift import drift
from triton_operator.kube.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError, UnavailableError
from triton_operator.kube.kinds import CONFIG_MAP, DEPLOYMENT, EVENT, JOB, NETWORK_POLICY, POD, TRITON_DEPLOYMENT
from triton_operator.names import MANAGED_BY, MANAGED_BY_LABEL
from triton_operator.policy_rules import PolicyPeer

JSON = dict[str, Any]


@pytest.fixture
def connected(apiserver: ApiServer, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig))
    return Cluster.connect()


def a_config_map(kubectl: Kubectl, data: dict[str, str], name: str = "results") -> JSON:
    metadata = {"name": name, "namespace": kubectl.namespace, "labels": {MANAGED_BY_LABEL: MANAGED_BY}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def list_all(cluster: Cluster, namespace: str | None) -> tuple[list[JSON], str]:
    items, version = cluster.list_all(CONFIG_MAP, namespace)
    return list(items), version


def test_an_apply_creates_changes_and_removes(connected: Cluster, kubectl: Kubectl) -> None:
    connected.apply(a_config_map(kubectl, {"a": "1", "b": "1"}))
    kubectl("patch", "configmap", "results", "--type=merge", "-p", '{"data": {"a": "2", "theirs": "1"}}')
    applied = connected.apply(a_config_map(kubectl, {"a": "3"}))
    assert applied["data"] == {"a": "3", "theirs": "1"}, "ours is forced, dropped is removed, others' stays"
    assert connected.get(CONFIG_MAP, kubectl.namespace, "results") == applied
    assert connected.get(CONFIG_MAP, kubectl.namespace, "missing") is None


def test_an_apply_of_the_same_leaves_the_object_alone(connected: Cluster, kubectl: Kubectl) -> None:
    first = connected.apply(a_config_map(kubectl, {"a": "1"}))
    assert connected.apply(a_config_map(kubectl, {"a": "1"})) == first


def test_an_apply_on_what_is_not_the_latest_is_a_conflict(connected: Cluster, kubectl: Kubectl) -> None:
    first = connected.apply(a_config_map(kubectl, {"a": "1"}))
    connected.apply(a_config_map(kubectl, {"a": "2"}))
    stale = changed(
        a_config_map(kubectl, {"a": "3"}), {"metadata.resourceVersion": first["metadata"]["resourceVersion"]}
    )
    with pytest.raises(ConflictError, match='configmaps "results": the object has been modified'):
        connected.apply(stale)


def test_what_is_new_to_us_is_created_and_never_taken_over(connected: Cluster, kubectl: Kubectl) -> None:
    created = connected.apply_new(a_config_map(kubectl, {"a": "1"}))
    assert connected.get(CONFIG_MAP, kubectl.namespace, "results") == created
    with pytest.raises(ConflictError):
        connected.apply_new(a_config_map(kubectl, {"a": "2"}))
    kubectl("create", "configmap", "theirs")
    with pytest.raises(ConflictError):
        connected.apply_new(a_config_map(kubectl, {"a": "1"}, "theirs"))
    assert "data" not in kubectl.get("configmap", "theirs")


def test_a_job_is_created_once(connected: Cluster, kubectl: Kubectl) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    metadata = {"name": "j", "namespace": kubectl.namespace}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    created = connected.apply_new(job)
    assert connected.get(JOB, kubectl.namespace, "j") == created
    with pytest.raises(ConflictError):
        connected.apply_new(job)


def test_the_lists_and_selectors_of_a_network_policy_are_replaced(connected: Cluster, kubectl: Kubectl) -> None:
    spec = {
        "podSelector": {"matchLabels": {"a": "1"}},
        "policyTypes": ["Egress"],
        "egress": [{"ports": [{"protocol": "UDP", "port": 53}]}],
    }
    metadata = {"name": "p", "namespace": kubectl.namespace}
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}
    assert drift(policy, connected.apply_new(policy)) is None
    other = changed(policy, {"spec.podSelector": {"matchLabels": {"b": "1"}}, "spec.egress": []})
    applied = connected.apply(other)
    assert applied["spec"]["podSelector"] == {"matchLabels": {"b": "1"}}
    assert not applied["spec"].get("egress")
    assert drift(other, applied) is None


def test_what_was_created_counts_as_applied_once_it_is_owned(connected: Cluster, kubectl: Kubectl) -> None:
    metadata = {"name": "p", "namespace": kubectl.namespace, "labels": {"a": "1", "b": "1"}}
    spec = {"podSelector": {}, "policyTypes": ["Ingress"]}
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}
    created = policy | connected.create(NETWORK_POLICY, policy)
    fewer = changed(policy, {"metadata.labels": {"a": "1"}})
    assert drift(fewer, created) == "metadata.labels.b"
    applied = connected.apply(fewer)
    assert applied["metadata"]["labels"] == {"a": "1", "b": "1"}, "an apply alone removes nothing"
    with pytest.raises(ConflictError):
        connected.own(created)
    owned = connected.own(applied)
    assert owned["spec"] == applied["spec"]
    assert drift(fewer, owned) == "metadata.labels.b"
    last = connected.apply(changed(fewer, {"metadata.resourceVersion": owned["metadata"]["resourceVersion"]}))
    assert last["metadata"]["labels"] == {"a": "1"}
    assert drift(fewer, last) is None


PEERS: tuple[PolicyPeer, ...] = (
    {"podSelector": {}},
    {"namespaceSelector": {}, "podSelector": {"matchLabels": {"team": "vision"}}},
    {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
    {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
    {"ipBlock": {"cidr": "10.0.0.0/8"}},
)


def test_the_policy_of_servers_settles_whatever_its_peers_are_and_were(connected: Cluster, kubectl: Kubectl) -> None:
    simulated = Simulation(a_spec())
    while not simulated.of_kind("Deployment"):
        simulated.run(1)

    def policy(*clients: PolicyPeer) -> JSON:
        simulated.settings = replace(SETTINGS, clients=clients, metrics_readers=clients[:1])
        found = next(each for each in simulated.intent().objects if each["metadata"]["name"] == "digits-servers")
        metadata = {"name": "digits-servers", "namespace": kubectl.namespace, "labels": found["metadata"]["labels"]}
        return found | {"metadata": metadata}

    observed = connected.apply_new(policy())
    assert drift(policy(), observed) is None
    for clients in (PEERS, PEERS[1:2], PEERS[:1], PEERS[3:4], PEERS[4:], ()):
        assert drift(policy(*clients), observed) is not None
        observed = connected.apply(policy(*clients))
        assert drift(policy(*clients), observed) is None
    kubectl("patch", "networkpolicy", "digits-servers", "--type=merge", "-p", '{"spec": {"egress": [{}]}}')
    observed = connected.get(NETWORK_POLICY, kubectl.namespace, "digits-servers") or {}
    assert drift(policy(), {"kind": "NetworkPolicy", **observed}) == "spec.egress"
    assert not connected.apply(policy())["spec"].get("egress")


def test_a_connection_that_the_api_server_closed_is_opened_anew(connected: Cluster, kubectl: Kubectl) -> None:
    connected.apply(a_config_map(kubectl, {"a": "1"}))
    (pool,) = connected._connection._client.rest_client.pool_manager.pools._container.values()
    kept = [each for each in list(pool.pool.queue if pool.pool else ()) if each is not None]
    # As the API server does with one that was idle for 90 s: both directions end, and nobody is told.
    for connection in kept:
        connection.sock.shutdown(SHUT_RDWR)
    assert kept
    assert connected.apply(a_config_map(kubectl, {"a": "2"}))["data"] == {"a": "2"}


def test_a_list_in_pages_is_whole(connected: Cluster, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triton_operator.kube.cluster.PAGE", 2)
    for number in range(5):
        connected.apply(a_config_map(kubectl, {}, f"c{number}"))
    items, version = list_all(connected, kubectl.namespace)
    assert [item["metadata"]["name"] for item in items] == ["c0", "c1", "c2", "c3", "c4"]
    assert int(version) >= max(int(item["metadata"]["resourceVersion"]) for item in items)
    everywhere, _ = list_all(connected, None)
    assert len(everywhere) >= 5
    kubectl("create", "configmap", "theirs")
    assert len(list_all(connected, kubectl.namespace)[0]) == 5, "what is not ours is not asked for"


def test_a_list_whose_pages_get_shorter_and_longer_is_whole(
    connected: Cluster, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        connected.apply(a_config_map(kubectl, {"a": "b" * 20_000 if number in (2, 7) else ""}, f"c{number:02}"))
    monkeypatch.setattr("triton_operator.kube.cluster.LONGEST_PAGE", 20_000)
    asked = list[int]()
    call = connected._connection.request

    def request(method: str, path: str, query: Any, *others: Any) -> JSON:
        asked.append(int(query["limit"]))
        return call(method, path, query, *others)

    monkeypatch.setattr(connected._connection, "request", request)
    items, _ = list_all(connected, kubectl.namespace)
    assert [item["metadata"]["name"] for item in items] == [f"c{number:02}" for number in range(12)]
    assert len(set(asked)) > 2, asked


def test_a_watch_says_what_became_of_what_is_ours(connected: Cluster, kubectl: Kubectl) -> None:
    _, version = list_all(connected, kubectl.namespace)
    kubectl("create", "configmap", "theirs")
    created = connected.apply(a_config_map(kubectl, {"a": "1"}))
    changed_since = connected.apply(a_config_map(kubectl, {"a": "2"}))
    watch = connected.watch(CONFIG_MAP, kubectl.namespace, version)
    assert [next(watch), next(watch)] == [("ADDED", created), ("MODIFIED", changed_since)]
    kubectl("delete", "configmap", "results")
    event_type, body = next(watch)
    assert (event_type, body["metadata"]["name"]) == ("DELETED", "results")
    assert int(body["metadata"]["resourceVersion"]) > int(changed_since["metadata"]["resourceVersion"])


def test_a_watch_ends_in_order_and_by_silence(
    connected: Cluster, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, version = list_all(connected, kubectl.namespace)
    monkeypatch.setattr("triton_operator.kube.cluster.SILENT_SECONDS", 0.5)
    with pytest.raises(UnavailableError, match="Read timed out"):
        list(connected.watch(CONFIG_MAP, kubectl.namespace, version))
    monkeypatch.setattr("triton_operator.kube.cluster.SILENT_SECONDS", 10)
    monkeypatch.setattr("triton_operator.kube.cluster.WATCH_SECONDS", 1)
    # Before it ends one, the API server says how far it was.
    assert {event_type for event_type, _ in connected.watch(CONFIG_MAP, kubectl.namespace, version)} <= {"BOOKMARK"}


def test_a_watch_of_events_ends_in_order_because_no_bookmark_comes(
    connected: Cluster, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_operator.kube.cluster.EVENTS_WATCH_SECONDS", 1)
    monkeypatch.setattr("triton_operator.kube.cluster.SILENT_SECONDS", 10)
    _, version = connected.list_all(EVENT, kubectl.namespace)
    assert list(connected.watch(EVENT, kubectl.namespace, version)) == []


def test_only_the_observed_object_is_deleted(connected: Cluster, kubectl: Kubectl) -> None:
    def a_deployment(replicas: int) -> JSON:
        labels = {"a": "1"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"name": "d", "namespace": kubectl.namespace}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}

    first = connected.apply(a_deployment(1))
    second = connected.apply(a_deployment(0))
    with pytest.raises(ConflictError):
        connected.delete(first)
    connected.delete(second)
    assert connected.get(DEPLOYMENT, kubectl.namespace, "d") is None
    connected.delete(second)
    connected.apply(a_deployment(1))
    with pytest.raises(ConflictError):
        connected.delete(second)


def test_the_status_is_applied_and_the_object_never_created(connected: Cluster, kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", body=MINIMAL)
    metadata = {"name": "digits", "namespace": kubectl.namespace}
    status = {"apiVersion": MINIMAL["apiVersion"], "kind": MINIMAL["kind"], "metadata": metadata}
    applied = connected.apply_status({**status, "status": {"observedGeneration": 1}})
    assert applied["status"] == {"observedGeneration": 1}
    assert applied["spec"] == changed(MINIMAL, {"spec.serving.replicas": 1})["spec"]
    with pytest.raises(NotFoundError):
        connected.apply_status(changed(status, {"metadata.name": "missing", "status": {"observedGeneration": 1}}))
    with pytest.raises(ConflictError):
        connected.apply_status(changed(status, {"metadata.resourceVersion": "1", "status": {"observedGeneration": 2}}))
    assert [item["metadata"]["name"] for item in kubectl.items("td")] == ["digits"]


def test_what_the_api_server_refuses_is_quoted(connected: Cluster, kubectl: Kubectl) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": []}}
    metadata = {"name": "j", "namespace": kubectl.namespace}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    with pytest.raises(InvalidError, match=r'Job.batch "j" is invalid: .*spec.template.spec.containers'):
        connected.apply_new(job)
    with pytest.raises(InvalidError, match=r"\.dato: field not declared in schema"):
        connected.apply(changed(a_config_map(kubectl, {}), {"dato": {}}))
    with pytest.raises(InvalidError, match=r'unknown field "spec.paralelism"'):
        connected.apply_new(changed(job, {"spec.paralelism": 1}))
    with pytest.raises(NotFoundError, match='namespaces "missing" not found'):
        connected.apply(changed(a_config_map(kubectl, {}), {"metadata.namespace": "missing"}))
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"count/configmaps": "0"}},
        "status": {"hard": {"count/configmaps": "0"}, "used": {"count/configmaps": "0"}},
    }
    kubectl("create", "-f", "-", body=quota)
    # No controller counts here: the test says what is used.
    kubectl("replace", "--subresource=status", "-f", "-", body=quota)
    with pytest.raises(ForbiddenError, match="exceeded quota: none"):
        connected.apply(a_config_map(kubectl, {}, "one-too-many"))


def test_a_namespace_that_is_being_deleted_takes_nothing_more(connected: Cluster, kubectl: Kubectl) -> None:
    connected.apply(a_config_map(kubectl, {}, "there"))
    # No controller here ends what the deletion begins.
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
    for write in (connected.apply, connected.apply_new):
        with pytest.raises(NotFoundError, match="because it is being terminated"):
            write(a_config_map(kubectl, {}, "new"))
    assert connected.apply(a_config_map(kubectl, {"a": "1"}, "there"))["data"] == {"a": "1"}


def test_warnings_alone_are_listed(connected: Cluster, kubectl: Kubectl) -> None:
    for number, (type, reason) in enumerate(
        [("Warning", "FailedMount"), ("Normal", "Pulled"), ("Warning", "Unhealthy"), ("Warning", "FailedCreate")]
    ):
        connected.create_event(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"e{number}", "namespace": kubectl.namespace},
                "involvedObject": {"kind": "Pod", "namespace": kubectl.namespace, "name": "p", "uid": "uid"},
                "reason": reason,
                "message": "why",
                "type": type,
            }
        )
    events, _ = connected.list_all(EVENT, kubectl.namespace)
    assert [event["reason"] for event in events] == ["FailedMount", "FailedCreate"]


def test_nodes_are_known_by_their_label_where_they_may_be_read(
    connected: Cluster,
    kubectl: Kubectl,
    cluster_kubectl: Kubectl,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    label, product = "nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"
    metadata = {"name": "a-gpu-node", "labels": {label: product}}
    kubectl("create", "-f", "-", body={"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    assert connected.has_node(label, product) is True
    assert connected.has_node(label, "NVIDIA-H200") is False
    assert connected.node_labels("a-gpu-node")[label] == product
    assert connected.node_labels("another-node") == {}
    assert "a-gpu-node" in (each["metadata"]["name"] for each in connected.other_nodes({label: product}, ["b"]) or ())
    assert connected.other_nodes({label: product}, ["a-gpu-node", "another-node"]) == []
    kubectl("delete", "node", "a-gpu-node")
    assert connected.has_node(label, product) is False
    settings = ("--set", f"watchNamespaces={{{kubectl.namespace}}}")
    account = install_account(cluster_kubectl, tmp_path, *settings, namespace="without-nodes")
    monkeypatch.setenv("KUBECONFIG", str(account))
    assert Cluster.connect().has_node(label, product) is None
    assert Cluster.connect().other_nodes({label: product}, ["another-node"]) is None
    assert Cluster.connect().node_labels("a-gpu-node") == {}


def test_no_answer_is_unavailable(
    connected: Cluster, apiserver: ApiServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(apiserver.kubeconfig.read_text().replace(apiserver.url, "https://127.0.0.1:9"))
    monkeypatch.setenv("KUBECONFIG", str(nowhere))
    with pytest.raises(UnavailableError, match="no answer from the API server"):
        Cluster.connect().get(CONFIG_MAP, "default", "any")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(UnavailableError, match="no service account and no usable kubeconfig"):
        Cluster.connect()


def test_a_verb_that_the_chart_does_not_grant_is_a_bug(connected: Cluster, kubectl: Kubectl) -> None:
    for kind, verb in ((POD, "delete"), (TRITON_DEPLOYMENT, "patch"), (EVENT, "get")):
        with pytest.raises(RuntimeError, match=f"{verb} {kind.plural} is not among the verbs"):
            connected._call(kind, verb, f"/namespaces/{kubectl.namespace}/x")
    assert "delete" in JOB.verbs
