"""How an object is changed: by an apply, but for what was created, as by a restore, and for a claim's owners."""

from typing import Any

import pytest

from triton_operator import names
from triton_operator.kube.errors import ClusterError, ForbiddenError, ServerError
from triton_operator.kube.kinds import CLAIM, NETWORK_POLICY
from triton_operator.kube.managed_fields import as_applied
from triton_operator.names import TRITON_DEPLOYMENT_LABEL
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.reporting import StatusRefusedError, UnwrittenStatusError
from triton_operator.runtime.store import Key, Store
from triton_operator.runtime.writing import Failures, Writer, by_key

JSON = dict[str, Any]
OWNER: JSON = {"apiVersion": names.API_VERSION, "kind": names.KIND}
OWNER |= {"metadata": {"name": "digits", "namespace": "vision", "uid": "owner"}}


def entry(operation: str, *labels: str) -> JSON:
    fields: JSON = {"f:metadata": {"f:labels": {f"f:{label}": {} for label in labels}}}
    return {"manager": "triton-operator", "operation": operation, "fieldsV1": fields}


def a_policy(*labels: str) -> JSON:
    metadata: JSON = {"name": "digits-jobs", "namespace": "vision", "labels": dict.fromkeys(labels, "digits")}
    reference = {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": "digits", "uid": "owner"}
    metadata["ownerReferences"] = [reference | {"controller": True}]
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata}


class Api:
    """An API server with one policy, which was created with a label that nobody wants any more."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.version = 1
        self.labels: tuple[str, ...] = (TRITON_DEPLOYMENT_LABEL, "former")
        self.managed = [{**entry("Update", "mesh"), "manager": "mesh"}, entry("Update", *self.labels)]

    def stored(self) -> JSON:
        body = a_policy(*self.labels)
        metadata = {"uid": "uid-1", "resourceVersion": str(self.version), "managedFields": self.managed}
        return {**body, "metadata": {**body["metadata"], **metadata}}

    def apply(self, body: JSON) -> JSON:
        self.asked.append("apply")
        assert body["metadata"]["resourceVersion"] == str(self.version)
        wanted = tuple(body["metadata"]["labels"])
        created = [each for each in self.managed if each["operation"] == "Update"]
        kept = {name for each in created for name in each["fieldsV1"]["f:metadata"]["f:labels"]}
        self.labels = tuple(each for each in self.labels if each in wanted or f"f:{each}" in kept)
        self.managed = [*created, entry("Apply", *wanted)]
        self.version += 1
        return self.stored()

    def own(self, body: JSON) -> JSON:
        self.asked.append("own")
        assert body["metadata"]["resourceVersion"] == str(self.version)
        self.managed = [dict(each) for each in as_applied(body)]
        self.version += 1
        return self.stored()


def test_a_created_policy_is_applied_then_owned_and_then_loses_what_nobody_wants() -> None:
    api, store = Api(), Store()
    store.put(NETWORK_POLICY, api.stored())
    writer = Writer(api, store, Metrics())  # type: ignore[arg-type]  # a stand-in

    def a_pass() -> list[str]:
        api.asked.clear()
        failures = Failures()
        children = by_key(store.children(Key("vision", "digits")))
        writer.apply_all(OWNER, children, [a_policy(TRITON_DEPLOYMENT_LABEL)], failures)
        assert failures == []
        return list(api.asked)

    assert (a_pass(), api.labels) == (["apply", "own"], (TRITON_DEPLOYMENT_LABEL, "former"))
    assert (a_pass(), api.labels) == (["apply"], (TRITON_DEPLOYMENT_LABEL,))
    assert (a_pass(), api.labels) == ([], (TRITON_DEPLOYMENT_LABEL,)), "nobody fights"
    assert "mesh" in {each["manager"] for each in api.managed}


class ClaimApi:
    """An API server with one claim, which nobody is known to have written."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        labels = {TRITON_DEPLOYMENT_LABEL: "digits"}
        references = a_policy()["metadata"]["ownerReferences"]
        self.metadata: JSON = {"name": "digits-repository", "namespace": "vision", "labels": labels}
        self.metadata |= {"uid": "uid-1", "resourceVersion": "1", "ownerReferences": references}

    def stored(self) -> JSON:
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": dict(self.metadata)}

    def disown(self, body: JSON, handed_on: JSON) -> JSON:
        self.asked.append("disown")
        assert body["metadata"]["resourceVersion"] == self.metadata["resourceVersion"]
        del self.metadata["ownerReferences"]
        self.metadata["resourceVersion"] = "2"
        return self.stored()

    def apply(self, body: JSON) -> JSON:
        """It leaves what others are said to have set."""
        self.asked.append("apply")
        owners = self.metadata.get("ownerReferences") or body["metadata"]["ownerReferences"]
        version = str(int(self.metadata["resourceVersion"]) + 1)
        self.metadata |= {"labels": body["metadata"]["labels"], "ownerReferences": owners, "resourceVersion": version}
        return self.stored()


def test_a_claim_that_is_to_outlive_its_object_loses_its_owners_and_gets_them_back() -> None:
    api, store = ClaimApi(), Store()
    store.put(CLAIM, api.stored())
    writer = Writer(api, store, Metrics())  # type: ignore[arg-type]  # a stand-in
    owned = api.metadata["ownerReferences"]

    def a_pass(owners: list[JSON]) -> list[str]:
        api.asked.clear()
        desired = api.stored()
        desired["metadata"] = {key: api.metadata[key] for key in ("name", "namespace", "labels")}
        desired["metadata"]["ownerReferences"] = owners
        failures = Failures()
        writer.apply_all(OWNER, by_key(store.children(Key("vision", "digits"))), [desired], failures)
        assert failures == []
        return list(api.asked)

    assert a_pass(owned) == []
    assert (a_pass([]), "ownerReferences" in api.metadata) == (["disown"], False)
    assert a_pass([]) == []
    assert (a_pass(owned), api.metadata["ownerReferences"]) == (["apply"], owned)


def test_a_claim_loses_its_owners_although_the_rest_of_it_is_refused() -> None:
    """Whatever else of it differs: the models of a user must not go because nobody may enlarge a volume."""

    class Refusing(ClaimApi):
        def apply(self, body: JSON) -> JSON:
            raise ForbiddenError("only dynamically provisioned pvc can be resized")

    api, store = Refusing(), Store()
    store.put(CLAIM, api.stored())
    desired = api.stored()
    labels = {TRITON_DEPLOYMENT_LABEL: "digits", "app.kubernetes.io/component": "repository"}
    desired["metadata"] = {"name": "digits-repository", "namespace": "vision", "labels": labels, "ownerReferences": []}
    writer, failures = Writer(api, store, Metrics()), Failures()  # type: ignore[arg-type]  # a stand-in
    writer.apply_all(OWNER, by_key(store.children(Key("vision", "digits"))), [desired], failures)
    assert (api.asked, "ownerReferences" in api.metadata) == (["disown"], False)


@pytest.mark.parametrize(
    "error",
    [
        ServerError("no", 7.0),
        UnwrittenStatusError(ServerError("no", 7.0)),
        StatusRefusedError(ForbiddenError("no", 7.0)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_any_kind_says_what_it_is_about(error: ClusterError) -> None:
    class Failing(Api):
        def delete(self, body: JSON) -> None:
            raise error

    failures, writer = Failures(), Writer(Failing(), Store(), Metrics())  # type: ignore[arg-type]  # a stand-in
    assert writer.delete_all(OWNER, [a_policy()], failures) == []
    assert [type(each) for each in failures] == [type(error)]
    assert (str(failures), failures.retry_after) == ("deleting NetworkPolicy digits-jobs: no", 7.0)
