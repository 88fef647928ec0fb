"""What serves a TritonDeployment, as plain objects that run without the operator. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

import yaml

from triton_converters.contract import layout
from triton_operator import names
from triton_operator.kube.kinds import ApiKind
from triton_operator.names import Body
from triton_operator.observed.pod import CHECK, SERVER
from triton_plugin.errors import SubjectError

AUTOSCALER = ApiKind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", frozenset({"list"}))
KEPT: Mapping[str, Mapping[str, str]] = {
    "Deployment": {
        "replicas": "as many as there are now",
        "progressDeadlineSeconds": "",
        "strategy": "",
        "template": (
            "the whole pod: arguments, environment, volumes, probes, drain, resources, security context, placement."
            f" Its init container `{CHECK}` is left out, because it is a program of the operator's. Selectors of the"
            " object's own pods select the copy's"
        ),
    },
    "Service": {"ports": "without node ports, which are the cluster's to give", "sessionAffinity": ""},
    "NetworkPolicy": {
        "policyTypes": "",
        "ingress": "without the operator's own Jobs",
        "egress": "",
    },
    "PodDisruptionBudget": {"maxUnavailable": "", "unhealthyPodEvictionPolicy": ""},
    "HorizontalPodAutoscaler": {"minReplicas": "", "maxReplicas": "", "metrics": "", "behavior": ""},
    "HTTPRoute": {
        "parentRefs": "",
        "hostnames": "the older route has them, until it is deleted with the object",
        "rules": "to the copy's Service alone, without a canary's share",
    },
}
"""The fields of each kind's spec that a copy keeps, and how. All else is the operator's or the cluster's."""
AFTERWARDS = "afterwards"
"""The folder with what is applied once the TritonDeployment is gone; `kubectl apply -f` does not enter it."""
HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True)
class Live:
    """What serves now, as the API server shows it."""

    name: str
    """Name of the TritonDeployment."""
    deployment: Body
    service: Body
    claim: Body | None
    """The repository claim; None: it is not there, or may not be read."""
    others: tuple[Body, ...] = ()
    """The NetworkPolicy of the servers, the disruption budget, the autoscaler and the route, as far as they exist."""
    sharing: tuple[str, ...] = ()
    """Names of other TritonDeployments with the same claim."""
    has_scaled_object: bool = False
    """Whether KEDA scales the object by the field `serving.autoscaling`."""

    @property
    def key(self) -> str:
        """Key of the revision that serves."""
        return str(self.deployment["metadata"]["labels"][names.KEY_LABEL])

    @property
    def claim_name(self) -> str:
        """Name of the claim that the pods mount."""
        volumes = self.deployment["spec"]["template"]["spec"]["volumes"]
        claim = next(each for each in volumes if each["name"] == "repository")
        return str(claim["persistentVolumeClaim"]["claimName"])


def copy_name(name: str) -> str:
    """Name of every copy. A TritonDeployment's has at most 40 characters, a Service's may have 63."""
    return f"{name}-ejected"


def own_labels(name: str) -> dict[str, str]:
    """The labels by which the copy's pods are selected; no selector of the operator knows them."""
    return {"app.kubernetes.io/name": "tritonserver", "app.kubernetes.io/instance": copy_name(name)}


def active_server(name: str, service: Body | None, place: str) -> str:
    """Return the name of the Deployment that a Service leads to. Raises SubjectError if nothing serves.

    ``place``: the options of a command about the object.
    """
    server = (service or {}).get("spec", {}).get("selector", {}).get(names.SERVER_LABEL, "")
    if not server:
        raise SubjectError(
            f"TritonDeployment {name} has no active revision, so there is nothing to write; to see what is missing:"
            f" kubectl triton explain {name} {place}"
        )
    return str(server)


def autoscaler(name: str, found: Iterable[Body]) -> Body | None:
    """Return the user's HorizontalPodAutoscaler of the object; None if there is none. KEDA's belongs to KEDA."""
    target = {"kind": names.KIND, "name": name}
    return next(
        (
            each
            for each in found
            if not each["metadata"].get("ownerReferences") and target.items() <= each["spec"]["scaleTargetRef"].items()
        ),
        None,
    )


def files(live: Live) -> dict[str, str]:
    """Return the text of each file, by its path below the folder."""
    service = _copy(live, live.service)
    later = {**service, "metadata": {**service["metadata"], "name": live.name}}
    named = {_file(each): _copy(live, each) for each in (live.deployment, live.service, *live.others)}
    named[f"{AFTERWARDS}/{_file(live.service)}"] = later
    return {path: _text(live, body) for path, body in named.items()}


def every_file() -> list[str]:
    """Return the paths of all files that there may be, so that none is left of an earlier time."""
    return [*(_file({"kind": kind}) for kind in KEPT), f"{AFTERWARDS}/{_file({'kind': 'Service'})}"]


def next_steps(live: Live, folder: str, kubectl: str) -> str:
    """Return what to do with the files, as lines for a shell and words around them.

    ``kubectl``: the start of each command, with the options of the cluster and namespace.
    """
    name, copy = live.name, copy_name(live.name)
    lines = [
        "Start the copy, and ask it for an answer at its own Service before you go on:",
        f"  {kubectl} apply --filename {quote(folder)}",
        f"  {kubectl} rollout status deployment/{copy}",
    ]
    if _goes_with_the_object(live):
        retained = '{"spec": {"repository": {"retentionPolicy": {"whenDeleted": "Retain"}}}}'
        lines += [
            f"Keep the claim {live.claim_name}, which would be deleted with the object. Go on when the second command"
            " prints nothing:",
            f"  {kubectl} patch td {name} --type merge --patch '{retained}'",
            f"  {kubectl} get pvc {live.claim_name} --output jsonpath='{{.metadata.ownerReferences}}'",
        ]
    lines += [
        "Delete the object, and give its Service's name to the copy:",
        f"  {kubectl} delete td {name}",
        f"  {kubectl} wait --for=delete service/{name} --timeout=60s",
        f"  {kubectl} apply --filename {quote(f'{folder}/{AFTERWARDS}')}",
        "To have the model's folder on this machine too:",
        f"  {kubectl} exec deployment/{copy} --container {SERVER} -- tar --create --directory"
        f" {layout.revision_directory(live.key)} . > {quote(f'{name}.tar')}",
    ]
    return "\n".join([*lines, *_warnings(live)])


def _warnings(live: Live) -> Iterator[str]:
    if live.sharing:
        yield (
            f"Take the folder to another claim: {', '.join(live.sharing)} also use {live.claim_name}, and their clean"
            " Jobs delete what no TritonDeployment names (docs/leaving.md)."
        )
    if live.has_scaled_object:
        yield (
            f"The ScaledObject {live.name} was left out: its queries ask for series that only servers of the operator"
            " have. The copy keeps its replicas until you scale it (docs/leaving.md)."
        )


def _goes_with_the_object(live: Live) -> bool:
    owners = (live.claim or {}).get("metadata", {}).get("ownerReferences", ())
    return any((each["kind"], each["name"]) == (names.KIND, live.name) for each in owners)


def _copy(live: Live, body: Body) -> Body:
    """Return the object as a stranger would have written it."""
    kind, spec = body["kind"], body["spec"]
    kept = {field: spec[field] for field in KEPT[kind] if field in spec}
    labels = own_labels(live.name)
    selector = {"matchLabels": labels}
    changes: dict[str, Any] = {}
    if kind == "Deployment":
        changes = {"selector": selector, "template": _template(live, spec["template"])}
    elif kind == "Service":
        changes = {"selector": labels, "ports": [_without(each, "nodePort") for each in spec["ports"]]}
    elif kind == "NetworkPolicy":
        changes = {"podSelector": selector, "ingress": list(_without_jobs(spec.get("ingress", ())))}
    elif kind == "PodDisruptionBudget":
        changes = {"selector": selector}
    elif kind == AUTOSCALER.kind:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": copy_name(live.name)}
        changes = {"scaleTargetRef": target}
    else:
        changes = {"rules": [_rule(live.name, each) for each in spec["rules"]]}
    metadata = {
        "name": copy_name(live.name),
        "namespace": body["metadata"]["namespace"],
        "labels": _inherited(body["metadata"], "labels") | labels,
        "annotations": _inherited(body["metadata"], "annotations"),
    }
    return {
        "apiVersion": body["apiVersion"],
        "kind": kind,
        "metadata": {field: value for field, value in metadata.items() if value},
        "spec": {**changes, **kept, **changes},
    }


def _inherited(metadata: Body, field: str) -> dict[str, str]:
    """The labels or annotations that a user gave: neither the operator's, nor Kubernetes', nor a deployer's."""
    return {key: value for key, value in (metadata.get(field) or {}).items() if names.is_inherited(key)}


def _template(live: Live, template: Body) -> Body:
    """The pod: the operator's labels, its init container and its selectors of the old pods become the copy's."""
    metadata, spec = template["metadata"], dict(template["spec"])
    labels = {key: value for key, value in metadata["labels"].items() if not names.is_reserved(key)}
    first = [each for each in spec.pop("initContainers", ()) if each["name"] != CHECK]
    if first:
        spec["initContainers"] = first
    if "affinity" in spec:
        spec["affinity"] = _near_the_old(live.name, spec["affinity"])
    if "topologySpreadConstraints" in spec:
        spec["topologySpreadConstraints"] = [
            _without(_selecting_own(live.name, each), "matchLabelKeys") for each in spec["topologySpreadConstraints"]
        ]
    annotations = metadata.get("annotations") or {}
    return {
        "metadata": {"labels": labels | own_labels(live.name)} | ({"annotations": annotations} if annotations else {}),
        "spec": spec,
    }


def _near_the_old(name: str, affinity: Body) -> Body:
    """The affinity to the copy's own pods and, at first, to those of the object: the claim may be on their node alone.

    The latter is preferred, not required, because there are none once the object is gone.
    """
    changed: Body = _selecting_own(name, affinity)
    if changed == affinity or "podAffinity" not in affinity:
        return changed
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    old = {"labelSelector": {"matchLabels": {names.TRITON_DEPLOYMENT_LABEL: name}}, "topologyKey": HOSTNAME}
    terms = [*changed["podAffinity"].get(preferred, ()), {"weight": 100, "podAffinityTerm": old}]
    return {**changed, "podAffinity": {**changed["podAffinity"], preferred: terms}}


def _selecting_own(name: str, value: Any) -> Any:
    """The value with the copy's labels in each selector of the object's pods."""
    if isinstance(value, list):
        return [_selecting_own(name, each) for each in value]
    if not isinstance(value, dict):
        return value
    if (value.get("matchLabels") or {}).get(names.TRITON_DEPLOYMENT_LABEL) == name:
        return {"matchLabels": own_labels(name)}
    return {key: _selecting_own(name, each) for key, each in value.items()}


def _without_jobs(rules: Iterable[Body]) -> Iterator[Body]:
    """The rules without the peers that are the operator's Jobs; a rule without peers would let everybody in."""
    for rule in rules:
        peers = [each for each in rule.get("from", ()) if not _is_job(each)]
        if peers or "from" not in rule:
            yield {**rule, **({"from": peers} if peers else {})}


def _is_job(peer: Body) -> bool:
    return names.STAGE_LABEL in ((peer.get("podSelector") or {}).get("matchLabels") or {})


def _rule(name: str, rule: Body) -> Body:
    """A rule of the route that leads to the copy's Service: the first reference is the active revision's."""
    first = rule["backendRefs"][0]
    return {**rule, "backendRefs": [{**first, "name": copy_name(name), "weight": 100}]}


def _without(body: Body, field: str) -> Body:
    return {key: value for key, value in body.items() if key != field}


def _file(body: Mapping[str, Any]) -> str:
    return f"{body['kind'].lower()}.yaml"


def _text(live: Live, body: Body) -> str:
    head = f"# Written by `kubectl triton eject {live.name}`, for revision {live.key}. The operator does not know it.\n"
    return head + yaml.safe_dump(body, sort_keys=False, width=120)
