"""The planned HTTPRoute on a real API server: the Gateway API's schema takes it, and the admission policy holds it."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.apiserver.conftest import VALUES
from tests.apiserver.gateway_api import definitions
from tests.apiserver.kubectl import Kubectl, KubectlError
from tests.apiserver.operator_process import eventually, install_account
from tests.golden.passes import objects
from triton_operator.kube.drift import FIELD_MANAGER, drift

Body = dict[str, Any]
KIND = "httproutes.gateway.networking.k8s.io"


@pytest.fixture(scope="module")
def as_operator(cluster_kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """kubectl with the operator's token, where the kind is known.

    Other modules install other values of the chart, and the admission policy is the cluster's: it is applied again.
    """
    file = str(definitions() / "gateway.networking.k8s.io_httproutes.yaml")
    cluster_kubectl("apply", "--server-side", "-f", file)
    cluster_kubectl("wait", "--for=condition=Established", f"crd/{KIND}", "--timeout=60s")
    found = Kubectl(install_account(cluster_kubectl, tmp_path_factory.mktemp("account"), *VALUES))
    # The API server takes a new policy up a moment later.
    eventually(lambda: refusal(found.within("default"), to_another_service) is not None, within=60)
    yield found
    cluster_kubectl("delete", "-f", file)


def refusal(operator: Kubectl, change: Callable[[Body], None]) -> str | None:
    """The API server's words about a route that was changed; None: it would take it."""
    body = deepcopy(planned())
    change(body)
    try:
        operator("create", "--dry-run=server", "--validate=false", "-f", "-", body=body)
    except KubectlError as error:
        return str(error)
    return None


def planned() -> Body:
    """The HTTPRoute of a canary, without its owner and its namespace."""
    body = next(each for each in objects("canary") if each["kind"] == "HTTPRoute")
    del body["metadata"]["namespace"], body["metadata"]["ownerReferences"]
    return body


def test_what_the_api_server_makes_of_it_is_no_drift(as_operator: Kubectl, kubectl: Kubectl) -> None:
    own, body = as_operator.within(kubectl.namespace), planned()
    own("apply", "--server-side", f"--field-manager={FIELD_MANAGER}", "--validate=strict", "-f", "-", body=body)
    found = own.get(KIND, "digits")
    assert drift(body, found) is None
    body["spec"]["rules"][0]["backendRefs"][0]["weight"] -= 1
    assert drift(body, found) is not None
    own("delete", KIND, "digits")


def to_another_service(body: Body) -> None:
    body["spec"]["rules"][1]["backendRefs"][0]["name"] = "billing"


def to_another_namespace(body: Body) -> None:
    body["spec"]["rules"][0]["backendRefs"][0]["namespace"] = "kube-system"


def to_another_kind(body: Body) -> None:
    body["spec"]["rules"][0]["backendRefs"][0] |= {"group": "example.com", "kind": "Bucket"}


def with_a_filter(body: Body) -> None:
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "listener", "port": 80}}}
    body["spec"]["rules"][0]["filters"] = [mirror]


def without_backends(body: Body) -> None:
    del body["spec"]["rules"][0]["backendRefs"]


def without_labels(body: Body) -> None:
    del body["metadata"]["labels"]["triton-operator.dev/deployment"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (to_another_service, "leads to the Services of one TritonDeployment"),
        (to_another_namespace, "leads to the Services of one TritonDeployment"),
        (to_another_kind, "leads to the Services of one TritonDeployment"),
        (with_a_filter, "leads to the Services of one TritonDeployment"),
        (without_backends, "leads to the Services of one TritonDeployment"),
        (without_labels, "has not the labels of an object of a TritonDeployment"),
    ],
)
def test_the_operators_token_makes_no_other_route(
    as_operator: Kubectl, kubectl: Kubectl, change: Callable[[Body], None], words: str
) -> None:
    assert words in (refusal(as_operator.within(kubectl.namespace), change) or "it was taken")
