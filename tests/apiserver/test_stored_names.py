"""An upgrade of the CRD and the operator over objects that the older ones stored, on an API server of its own.

Each state has a namespace of its own, with the object, its status and its children as 2bb6dae5 left them.
"""

import json
import lzma
import tempfile
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.conftest import CRD
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import Operator, eventually
from tests.apiserver.test_operator import condition
from tests.upgrades.stored import state
from triton_operator.api.renamed import found, rewritten
from triton_operator.api.triton_deployment import parse_status

Body = dict[str, Any]
OLDER = Path(__file__).parents[1] / "upgrades/crd-2bb6dae5.yaml.xz"
STATES = ("ready", "several-servers", "soaking", "kept", "performance-regressed", "resnet50-on-an-a100")
"""Among them, these have most of the old names."""
OF_WHAT_SERVES = {"images", "serving", "accuracy", "performance"}
"""Parts of the status that stay while nothing is done. The older operator had other names and units for them."""
CHILDREN = "configmaps,deployments,persistentvolumeclaims,services,networkpolicies"
REVISION = "triton-operator.dev/revision"
MADE_BY_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Mapping[str, Kubectl], Mapping[str, Any]]]:
    """The namespaces, by the states, once the CRD is this tree's; and what was stored before."""
    with tempfile.TemporaryDirectory(prefix="apiserver-") as folder, ApiServer(Path(folder)) as server:
        admin = Kubectl(server.kubeconfig)
        older = tmp_path_factory.mktemp("older") / "crd.yaml"
        older.write_bytes(lzma.decompress(OLDER.read_bytes()))
        admin("create", "-f", str(older))
        eventually(partial(is_established, admin))
        places = {}
        for name in STATES:
            admin("create", "namespace", name)
            places[name] = admin.within(name)
            restore(places[name], name)
        before = {name: stored(place) for name, place in places.items()}
        admin("replace", "-f", str(CRD))
        yield places, before


def is_established(kubectl: Kubectl) -> bool:
    """Whether the API server serves the kind; right after its creation it has no conditions."""
    conditions = kubectl.get("crd", CRD.stem).get("status", {}).get("conditions") or []
    return any((each["type"], each["status"]) == ("Established", "True") for each in conditions)


def restore(kubectl: Kubectl, name: str) -> None:
    """Create what the state holds, as far as the API server lets anybody."""
    kept = state(name)
    kubectl("create", "-f", "-", body=in_namespace(kept.body, name))
    owner = kubectl.get("td", "digits")["metadata"]["uid"]
    status = json.dumps({"status": kept.body["status"]})
    kubectl("patch", "td", "digits", "--subresource=status", "--type=merge", "-p", status)
    children = [
        in_namespace(each, name, owner) for each in kept.children if each["kind"] not in ("Pod", "Job", "Event")
    ]
    kubectl("create", "-f", "-", body=children)


def in_namespace(body: Body, namespace: str, owner: str = "") -> Body:
    """The body as somebody would create it; ``owner``: the uid of its TritonDeployment."""
    copy = deepcopy({field: value for field, value in body.items() if field != "status"})
    metadata = {field: value for field, value in copy["metadata"].items() if field not in MADE_BY_THE_SERVER}
    for reference in metadata.get("ownerReferences", []):
        reference["uid"] = owner
    return copy | {"metadata": metadata | {"namespace": namespace}}


def stored(kubectl: Kubectl) -> Any:
    """The spec, what the status tells of what serves, and the versions of the children."""
    body = kubectl.get("td", "digits")
    children = {
        (each["kind"], each["metadata"]["name"]): each["metadata"]["resourceVersion"]
        for each in kubectl.items(CHILDREN, "--selector=app.kubernetes.io/managed-by=triton-operator")
    }
    return body["spec"], parse_status(body).model_dump(include=OF_WHAT_SERVES), children


def test_the_new_crd_prunes_nothing_of_what_is_stored(
    upgraded: tuple[Mapping[str, Kubectl], Mapping[str, Any]],
) -> None:
    places, before = upgraded
    assert {name: stored(place) for name, place in places.items()} == before


def test_the_operator_says_what_to_write_and_changes_nothing_until_it_is_written(
    upgraded: tuple[Mapping[str, Kubectl], Mapping[str, Any]], tmp_path: Path
) -> None:
    places, before = upgraded
    kubeconfig = next(iter(places.values())).kubeconfig
    with Operator(kubeconfig, tmp_path / "operator") as operator:
        for name, place in places.items():
            told = eventually(partial(refused, place))
            for old in found(before[name][0]):
                assert str(old) in told, name
        assert {name: stored(place) for name, place in places.items()} == before
        for name, place in places.items():
            renamed = [{"op": "replace", "path": "/spec", "value": rewritten(before[name][0])}]
            place("patch", "td", "digits", "--type=json", "-p", json.dumps(renamed))
            eventually(partial(understood, place))
            spec, told, children = stored(place)
            assert list(found(spec)) == []
            assert told["images"] == before[name][1]["images"]
            kept = {each for each in before[name][2] if each[0] in ("ConfigMap", "PersistentVolumeClaim", "Service")}
            # A Deployment that is created anew has another uid, so the one before a soak is not known any more.
            leading = [each["spec"]["selector"][REVISION] for each in place.items("services") if serves(each)]
            assert kept | {("Deployment", each) for each in leading} <= children.keys(), name
    assert "Traceback" not in operator.log.read_text()


def serves(service: Body) -> bool:
    """Whether it is the object's main Service, and leads to a revision."""
    return service["metadata"]["name"] == "digits" and REVISION in service["spec"]["selector"]


def refused(kubectl: Kubectl) -> str:
    """The message, once the operator refuses the object."""
    ready = condition(kubectl, "Ready")
    return str(ready["message"]) if (ready.get("status"), ready.get("reason")) == ("False", "FieldRenamed") else ""


def understood(kubectl: Kubectl) -> bool:
    """Whether the operator has read the spec."""
    return bool(condition(kubectl, "Ready").get("reason") != "FieldRenamed")
