"""The kinds that the operator uses, and its verbs on each. A test compares them with the chart's rules."""

from dataclasses import dataclass
from typing import Any

from triton_operator import names


@dataclass(frozen=True, eq=False)
class ApiKind:
    """A kind of the API, and the verbs used on it. Each is there once, so it is compared and hashed by identity."""

    api_version: str
    kind: str
    plural: str
    verbs: frozenset[str]
    status_verbs: frozenset[str] = frozenset()
    """Verbs on its status subresource."""
    dry_run_verbs: frozenset[str] = frozenset()
    """Verbs that `helm test` uses as a dry run alone. Its own Role grants them, the operator's does not."""
    labels: str = names.MANAGED_BY_SELECTOR
    """Label selector of lists and watches. Without it, all Pods of the cluster would go through this process."""
    fields: str = ""
    """Field selector of lists and watches."""
    created: bool = False
    """Whether a missing object is created instead of applied. That costs the API server a third less, but no later
    apply removes fields of it. A Job needs no removal: it is never changed, because its name changes with its
    content."""

    @property
    def group(self) -> str:
        """API group; empty: core."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """Version within the group."""
        return self.api_version.rpartition("/")[2]

    def __str__(self) -> str:
        return self.kind


_WATCHED = frozenset({"list", "watch"})
# A server-side apply is a patch, and a create if the object is missing.
_APPLIED = _WATCHED | {"get", "create", "patch"}

TRITON_DEPLOYMENT = ApiKind(
    names.API_VERSION, names.KIND, "tritondeployments", _WATCHED, frozenset({"patch"}), frozenset({"create"}), labels=""
)
JOB = ApiKind("batch/v1", "Job", "jobs", _WATCHED | {"create", "delete", "get"}, created=True)
POD = ApiKind("v1", "Pod", "pods", _WATCHED)
DEPLOYMENT = ApiKind("apps/v1", "Deployment", "deployments", _APPLIED | {"delete"})
SERVICE = ApiKind("v1", "Service", "services", _APPLIED | {"delete"})
CONFIG_MAP = ApiKind("v1", "ConfigMap", "configmaps", _APPLIED)
CLAIM = ApiKind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", _APPLIED)
NETWORK_POLICY = ApiKind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", _APPLIED | {"delete"})
DISRUPTION_BUDGET = ApiKind(
    names.POLICY_API_VERSION, names.DISRUPTION_BUDGET, "poddisruptionbudgets", _APPLIED | {"delete"}
)
# Events have no labels. The most frequent ones are left out, because a pod's status says the same.
_WARNINGS = "type=Warning,reason!=BackOff,reason!=FailedScheduling,reason!=Unhealthy"
EVENT = ApiKind("v1", "Event", "events", _WATCHED | {"create"}, labels="", fields=_WARNINGS)
LEASE = ApiKind("coordination.k8s.io/v1", "Lease", "leases", frozenset({"create", "get", "update"}))
"""Used only in the operator's own namespace; no TritonDeployment has one."""
NODE = ApiKind("v1", "Node", "nodes", frozenset({"list"}), labels="")
"""Nodes belong to the cluster: an operator for some namespaces, or with rbac.readNodes false, may not read them."""

SCALED_OBJECT = ApiKind(names.KEDA_API_VERSION, names.SCALED_OBJECT, "scaledobjects", _APPLIED | {"delete"})
"""KEDA's; used only where its CustomResourceDefinition is served and the installation names a Prometheus."""
HTTP_ROUTE = ApiKind(names.GATEWAY_API_VERSION, names.HTTP_ROUTE, "httproutes", _APPLIED | {"delete"})
"""The Gateway API's; used only where its CustomResourceDefinition is served and the installation allows it."""
OPTIONAL = (SCALED_OBJECT, HTTP_ROUTE)
"""Kinds of other projects, which a cluster may lack. What becomes of such an object stalls nothing."""

CHILDREN = (JOB, POD, DEPLOYMENT, SERVICE, CONFIG_MAP, CLAIM, NETWORK_POLICY, DISRUPTION_BUDGET)
"""Kinds that are watched because TritonDeployments own them, directly or through a Job or a Deployment."""
ALL = (TRITON_DEPLOYMENT, *CHILDREN, EVENT)
"""All watched kinds. Events come last, because the store knows them by the object that they are about."""

READING = frozenset({"get", "list", "watch"})

_BY_NAME = {(kind.api_version, kind.kind): kind for kind in (*ALL, *OPTIONAL)}


def kind_of(body: dict[str, Any]) -> ApiKind:
    """The kind of an object; raises KeyError if the operator does not know it."""
    return kind_named(body["apiVersion"], body["kind"])


def kind_named(api_version: str, kind: str) -> ApiKind:
    """The kind with a name; raises KeyError if the operator does not know it."""
    return _BY_NAME[api_version, kind]
