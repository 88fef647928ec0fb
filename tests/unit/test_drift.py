"""What needs an apply, and above all what does not."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_operator.kube.drift import drift

JSON = dict[str, Any]


def a_deployment() -> JSON:
    """As a builder makes it."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "server", "labels": {"app": "server"}, "annotations": {}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "server"}},
            "template": {
                "metadata": {"labels": {"app": "server"}},
                "spec": {
                    "automountServiceAccountToken": False,
                    "containers": [
                        {
                            "name": "server",
                            "args": ["--a", "--b"],
                            "env": [{"name": "HOME", "value": "/"}, {"name": "EMPTY", "value": ""}],
                            "ports": [{"name": "http", "containerPort": 8000}],
                            "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {}},
                            "volumeMounts": [
                                {"name": "shared", "mountPath": "/shared", "readOnly": True},
                                {"name": "shared", "mountPath": "/scratch"},
                            ],
                        }
                    ],
                    "volumes": [{"name": "shared", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
                },
            },
        },
    }


def observed_deployment() -> JSON:
    """As the API server gives it back: defaults, canonical quantities, empty fields left out."""
    found = a_deployment()
    found["metadata"] |= {"uid": "1", "resourceVersion": "7", "labels": {"app": "server", "team": "blue"}}
    del found["metadata"]["annotations"]
    found["spec"]["strategy"] = {"type": "RollingUpdate"}
    pod = found["spec"]["template"]["spec"]
    pod["restartPolicy"] = "Always"
    container = pod["containers"][0]
    container["terminationMessagePath"] = "/dev/termination-log"
    container["env"] = [{"name": "EMPTY"}, {"name": "HOME", "value": "/"}, {"name": "INJECTED", "value": "x"}]
    container["ports"][0]["protocol"] = "TCP"
    container["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    pod["volumes"][0]["emptyDir"]["sizeLimit"] = "1024Mi"
    pod["containers"].insert(0, {"name": "mesh", "image": "proxy"})
    found["status"] = {"replicas": 1}
    return found


def owned() -> JSON:
    """What the API server records after our apply."""
    return {
        "manager": "triton-operator",
        "operation": "Apply",
        "fieldsV1": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:template": {
                    "f:spec": {
                        "f:containers": {
                            'k:{"name":"server"}': {
                                ".": {},
                                "f:args": {},
                                "f:name": {},
                                "f:ports": {'k:{"containerPort":8000,"protocol":"TCP"}': {".": {}, "f:name": {}}},
                            }
                        }
                    }
                },
            },
        },
    }


def put(tree: JSON, path: str, value: Any) -> None:
    """Set `value` at a dotted path; `...` removes it."""
    *parents, last = path.split(".")
    node: Any = tree
    for step in parents:
        node = node[int(step)] if isinstance(node, list) else node[step]
    if value is ...:
        del node[last]
    else:
        node[int(last) if isinstance(node, list) else last] = value


def test_what_the_api_server_made_of_it_is_no_drift() -> None:
    assert drift(a_deployment(), observed_deployment()) is None
    found = observed_deployment()
    found["metadata"]["managedFields"] = [owned()]
    assert drift(a_deployment(), found) is None


POD = "spec.template.spec"


@pytest.mark.parametrize(
    ("path", "value", "difference"),
    [
        ("spec.replicas", 3, "spec.replicas"),
        ("spec.replicas", ..., "spec.replicas"),
        ("metadata.labels.app", "other", "metadata.labels.app"),
        ("metadata.labels", ..., "metadata.labels"),
        ("spec.selector.matchLabels", {"app": "server", "more": "x"}, "spec.selector.matchLabels"),
        (f"{POD}.automountServiceAccountToken", ..., f"{POD}.automountServiceAccountToken"),
        (f"{POD}.automountServiceAccountToken", 0, f"{POD}.automountServiceAccountToken"),
        (f"{POD}.containers.1.args", ["--a"], f"{POD}.containers.[server].args"),
        (f"{POD}.containers.1.args", ["--b", "--a"], f"{POD}.containers.[server].args.[0]"),
        (f"{POD}.containers.1.args", "--a", f"{POD}.containers.[server].args"),
        (f"{POD}.containers.1.env.1.value", "/root", f"{POD}.containers.[server].env.[HOME].value"),
        (f"{POD}.containers.1.env", [], f"{POD}.containers.[server].env.[HOME]"),
        (f"{POD}.containers.1.ports.0.protocol", "UDP", f"{POD}.containers.[server].ports.[8000]"),
        (f"{POD}.containers.1.resources.limits.cpu", "1001m", f"{POD}.containers.[server].resources.limits.cpu"),
        (f"{POD}.containers.1.volumeMounts.1.name", "x", f"{POD}.containers.[server].volumeMounts.[/scratch].name"),
        (f"{POD}.containers.1.volumeMounts.0", {"mountPath": "/"}, f"{POD}.containers.[server].volumeMounts.[/shared]"),
        (f"{POD}.volumes.0.emptyDir", ..., f"{POD}.volumes.[shared].emptyDir"),
        (f"{POD}.containers", [{"name": "mesh"}], f"{POD}.containers.[server]"),
    ],
)  # fmt: skip
def test_edits_are_drift(path: str, value: Any, difference: str) -> None:
    found = observed_deployment()
    put(found, path, value)
    assert drift(a_deployment(), found) == difference


def test_quantities_are_equal_only_where_quantities_stand() -> None:
    assert drift({"data": {"size": "1Gi"}}, {"data": {"size": "1024Mi"}}) == "data.size"
    claim = {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    assert drift(claim, {"spec": {"resources": {"requests": {"storage": "1024Mi"}}}}) is None


@pytest.mark.parametrize(
    ("gone", "difference"),
    [
        ("metadata.labels.app", "metadata.labels.app"),
        ("spec.selector", "spec.selector"),
        (f"{POD}.containers.0.args", f'{POD}.containers.{{"name":"server"}}.args'),
        (f"{POD}.containers.0.ports.0.name", None),
    ],
)
def test_a_field_we_own_and_no_longer_want_is_drift(gone: str, difference: str | None) -> None:
    desired, found = a_deployment(), observed_deployment()
    found["metadata"]["managedFields"] = [{"manager": "kubectl", "operation": "Update"}, owned()]
    put(desired, gone, ...)
    if difference is None:
        difference = f'{POD}.containers.{{"name":"server"}}.ports.{{"containerPort":8000,"protocol":"TCP"}}.name'
    assert drift(desired, found) == difference


def test_a_field_others_own_is_no_drift() -> None:
    desired, found = a_deployment(), observed_deployment()
    found["metadata"]["managedFields"] = [
        {**owned(), "manager": "kubectl"},
        {**owned(), "manager": "kubectl", "operation": "Update"},
        {**owned(), "subresource": "status"},
    ]
    put(desired, "metadata.labels.app", ...)
    assert drift(desired, found) is None


@pytest.mark.parametrize("applied", [[], [{**owned(), "fieldsV1": {"f:metadata": {"f:labels": {"f:other": {}}}}}]])
def test_a_field_that_we_created_and_no_longer_want_is_drift(applied: list[JSON]) -> None:
    """What a restore created may have been applied since."""
    desired, found = a_deployment(), observed_deployment()
    desired["metadata"]["labels"]["other"] = found["metadata"]["labels"]["other"] = "x"
    found["metadata"]["managedFields"] = [{**owned(), "operation": "Update"}, *applied]
    assert drift(desired, found) is None
    put(desired, "metadata.labels.app", ...)
    assert drift(desired, found) == "metadata.labels.app"


def test_items_of_a_set_we_own() -> None:
    entry = {**owned(), "fieldsV1": {"f:metadata": {"f:finalizers": {'v:"a"': {}, 'v:"b"': {}}}}}
    found = {"metadata": {"finalizers": ["a", "b"], "managedFields": [entry]}}
    assert drift({"metadata": {"finalizers": ["a", "b"]}}, found) is None
    assert drift({"metadata": {"finalizers": ["a"]}}, found) == "metadata.finalizers"


names = st.text("abcdefgh", min_size=1, max_size=4)
leaves = st.text("xyz", min_size=1, max_size=3) | st.integers(1, 9) | st.just(True)
trees = st.recursive(
    leaves,
    lambda below: st.dictionaries(names, below, min_size=1, max_size=3) | st.lists(below, min_size=1, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(names, trees, min_size=1, max_size=4)


def with_more(tree: Any, draw: st.DataObject) -> Any:
    """The same tree with entries that others set."""
    if isinstance(tree, dict):
        extra = draw.draw(st.dictionaries(st.text("IJKL", min_size=1, max_size=2), leaves, max_size=2))
        return {key: with_more(value, draw) for key, value in tree.items()} | extra
    return [with_more(item, draw) for item in tree] if isinstance(tree, list) else tree


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all leaves."""
    if isinstance(tree, dict):
        return [place for key, value in tree.items() for place in places(value, (*path, key))]
    if isinstance(tree, list):
        return [place for index, value in enumerate(tree) for place in places(value, (*path, index))]
    return [path]


@given(objects, st.data())
def test_what_others_add_anywhere_is_no_drift(desired: JSON, data: st.DataObject) -> None:
    assert drift(desired, with_more(desired, data)) is None


@given(objects, st.data())
def test_any_changed_or_removed_leaf_is_drift(desired: JSON, data: st.DataObject) -> None:
    found = with_more(desired, data)
    *parents, last = data.draw(st.sampled_from(places(desired)))
    node = found
    for step in parents:
        node = node[step]
    if data.draw(st.booleans()):
        node[last] = "CHANGED"
    else:
        del node[last]
    assert drift(desired, found) is not None


@given(objects)
def test_the_arguments_are_left_alone(desired: JSON) -> None:
    before, found = copy.deepcopy(desired), copy.deepcopy(desired)
    drift(desired, found)
    assert desired == before == found


HTTP = {"protocol": "TCP", "port": 8000}
SSH = {"protocol": "TCP", "port": 22}


@pytest.mark.parametrize(
    ("peer", "found"),
    [
        ({}, {"from": [{"podSelector": {}}]}),
        ({"from": [{"podSelector": {}}]}, {"from": [{"podSelector": {}, "namespaceSelector": {}}]}),
        (
            {"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]},
            {"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]},
        ),
        ({"from": [{"podSelector": {}}]}, {"from": [{"podSelector": {"matchLabels": {"team": "vision"}}}]}),
        ({"from": [{"podSelector": {}}]}, {"from": [{"podSelector": {}}], "ports": [HTTP, SSH]}),
    ],
)
def test_a_policy_that_says_more_is_drift(peer: JSON, found: JSON) -> None:
    """A created object has no record of applied fields, and more fields of a rule let in more or fewer."""

    def policy(rule: JSON) -> JSON:
        return {"spec": {"ingress": [{"ports": [HTTP]} | rule], "egress": []}}

    assert drift(policy(peer), policy(peer)) is None
    assert (drift(policy(peer), policy(found)) or "").startswith("spec.ingress.[0]")


@pytest.mark.parametrize("others", [[], [{"uid": "2", "kind": "Backup"}]])
def test_an_owner_that_is_no_longer_wanted_is_drift(others: list[JSON]) -> None:
    retained: JSON = {"metadata": {"ownerReferences": []}}
    owned = [{"uid": "1", "kind": "TritonDeployment"}, *others]
    assert drift(retained, {"metadata": {"ownerReferences": owned}}) == "metadata.ownerReferences"
    assert drift(retained, {"metadata": {}}) is None


def test_a_route_that_does_more_with_a_request_is_drift() -> None:
    def route(**fields: Any) -> JSON:
        backend = {"name": "digits", "port": 8000, "weight": 100}
        return {"spec": {"rules": [{"backendRefs": [backend | fields.pop("backend", {})]} | fields]}}

    assert drift(route(), route(backend={"group": "", "kind": "Service"})) is None, "the API server's defaults"
    assert drift(route(), route(filters=[{"type": "RequestMirror"}])) == "spec.rules.[0]"
    assert drift(route(), route(backend={"kind": "Bucket"})) == "spec.rules.[0].backendRefs.[0]"


def test_a_budget_that_selects_fewer_pods_is_drift() -> None:
    wanted = {"spec": {"selector": {"matchLabels": {"a": "1"}}}}
    found = {"spec": {"selector": {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b"}]}}}
    assert drift(wanted, found) == "spec.selector"


def test_a_spread_that_others_add_is_no_drift() -> None:
    """As a policy of the cluster does; an apply leaves it, so that each pass would make another one."""

    def spread(*constraints: tuple[str, str]) -> JSON:
        return {"topologySpreadConstraints": [{"topologyKey": k, "whenUnsatisfiable": w} for k, w in constraints]}

    ours, theirs = ("zone", "ScheduleAnyway"), ("zone", "DoNotSchedule")
    assert drift(spread(ours), spread(theirs, ours)) is None
    assert drift(spread(ours), spread(theirs)) == "topologySpreadConstraints.[zone]"


def test_a_trigger_with_credentials_of_others_is_drift() -> None:
    wanted: JSON = {"spec": {"triggers": [{"type": "prometheus", "metadata": {"query": "up"}}]}}
    for more in ({"authenticationRef": {"name": "theirs"}}, {"metadata": {"query": "up", "customHeaders": "a=b"}}):
        found = {"spec": {"triggers": [wanted["spec"]["triggers"][0] | more]}}
        assert (drift(wanted, found) or "").startswith("spec.triggers.[0]")
