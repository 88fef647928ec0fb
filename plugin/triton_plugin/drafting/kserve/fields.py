"""What each field of a KServe InferenceService becomes: a value and its place, or a reason. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from triton_converters.contract.uris import SCHEMES, split
from triton_operator import names
from triton_operator.api.server_arguments import is_allowed
from triton_operator.names import Body
from triton_plugin.drafting.kserve.service import Service, map_of
from triton_plugin.drafting.kserve.table import MODEL, NO_FIELD, TABLE

COMPONENTS = ("transformer", "explainer", "canary")
"""The other parts of an InferenceService."""
OLDEST_IMAGE = (24, 1)
"""Year and month of the oldest server image that knows all of the operator's options."""
IMAGE = "nvcr.io/nvidia/tritonserver"
GPU = re.compile(r"^nvidia\.com/(gpu|mig-[a-z0-9.]+)$")
BLOB = re.compile(r"^https://[^/]+\.blob\.core\.windows\.net/(.+)$")
NUMBER = re.compile(r"^[0-9]{1,9}\Z")
DNS_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
LABEL = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")
LABEL_KEY = re.compile(r"^([a-z0-9][-a-z0-9.]{0,251}[a-z0-9]/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
SPEAKING_V1 = ("tensorflow", "pytorch", "xgboost", "lightgbm")
"""Formats whose clients ask by v1 unless the InferenceService says otherwise: KServe's own servers do."""
KSERVES_RUNTIMES = "kserve-"
"""How the names of the runtimes begin that KServe brings along."""
ARCHIVES = (".tar", ".tgz", ".gz", ".zip", ".mar")
OWN_ANNOTATIONS = ("kubectl.kubernetes.io/", "serving.kserve.io/storageSecretName", "serving.kserve.io/stop")
"""How annotations begin that have a rule, or are nobody's wish."""


class MappedField(NamedTuple):
    """A value of the InferenceService, and where it goes."""

    field: str
    place: str
    value: Any


class LeftOut(NamedTuple):
    """A field that has no place, or needs more, and why."""

    field: str
    why: str
    needs_hand: bool = False
    """Whether somebody has to do it before the object serves as the InferenceService did."""


Found = MappedField | LeftOut


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def fields(service: Service) -> Iterator[Found]:
    """Yield what becomes of everything that the InferenceService says. Raises FolderError if a part is no object."""
    yield from _metadata(service)
    for name in map_of(service.body, "spec"):
        if name != "predictor":
            rule = TABLE[name] if name in COMPONENTS else NO_FIELD
            yield LeftOut(name, rule.note, rule.needs_hand)
    yield from _replicas(service)
    for name, value in service.predictor.items():
        if name not in (service.kind, "minReplicas", "maxReplicas"):
            field = f"predictor.{name}"
            yield from _read(field, field, value, service)
    for name, value in service.model.items():
        yield from _read(f"{MODEL}.{name}", f"predictor.{service.kind}.{name}", value, service)
    if service.form in SPEAKING_V1 and not service.model.get("protocolVersion"):
        yield from _protocol(f"predictor.{service.kind}.protocolVersion", "v1", service)


def _read(rule: str, field: str, value: Any, service: Service) -> Iterator[Found]:
    """What becomes of one field. ``rule``: its name in the table; ``field``: its name in the file."""
    if value in (None, "", [], {}):
        return
    if rule in SPECIAL:
        yield from SPECIAL[rule](field, value, service)
    elif TABLE.get(rule, NO_FIELD).place.endswith("[]"):
        for number, each in enumerate(_list(value)):
            yield MappedField(f"{field}[{number}]", TABLE[rule].place, each)
    else:
        yield _by_table(rule, field, value)


def _by_table(rule: str, field: str, value: Any) -> Found:
    place, note, needs_hand = TABLE.get(rule, NO_FIELD)
    return MappedField(field, place, value) if place else LeftOut(field, note, needs_hand)


def _metadata(service: Service) -> Iterator[Found]:
    metadata = map_of(service.body, "metadata")
    namespace = metadata.get("namespace")
    if namespace is not None and DNS_LABEL.match(str(namespace)):
        yield MappedField("metadata.namespace", "metadata.namespace", str(namespace))
    elif namespace is not None:
        yield LeftOut("metadata.namespace", "it is no namespace's name")
    labels = {}
    for key, value in map_of(metadata, "labels").items():
        if names.is_inherited(str(key)) and LABEL_KEY.match(str(key)) and LABEL.match(str(value)):
            labels[key] = str(value)
        else:
            yield LeftOut(f"metadata.labels.{key}", "it is Kubernetes' or a deployer's, or no label")
    if labels:
        yield MappedField("metadata.labels", "metadata.labels", labels)
    yield from _annotations(map_of(metadata, "annotations"))


def _annotations(annotations: Body) -> Iterator[Found]:
    if secret := annotations.get("serving.kserve.io/storageSecretName"):
        rule = "metadata.annotations.serving.kserve.io/storageSecretName"
        yield MappedField(rule, TABLE[rule].place, secret)
        yield LeftOut(rule, TABLE[rule].note, needs_hand=True)
    for key in map(str, annotations):
        if not key.startswith(OWN_ANNOTATIONS):
            is_own = key.startswith("serving.kserve.io/")
            why = "it is KServe's own" if is_own else TABLE["metadata.annotations"].note
            yield LeftOut(f"metadata.annotations.{key}", why)


def _replicas(service: Service) -> Iterator[Found]:
    """The replicas; a range of them is the autoscaler's."""
    least, most = service.predictor.get("minReplicas", 1), service.predictor.get("maxReplicas", 0)
    stop = map_of(map_of(service.body, "metadata"), "annotations").get("serving.kserve.io/stop")
    numbers = isinstance(least, int) and isinstance(most, int)
    if least == 0:
        yield LeftOut("predictor.minReplicas", "there is no scaling to 0; one replica stays")
    if str(stop).lower() == "true":
        yield MappedField("metadata.annotations.serving.kserve.io/stop", "serving.replicas", 0)
    elif numbers and most > max(least, 1):
        yield MappedField(
            "predictor.maxReplicas", "serving.autoscaling", {"minReplicas": max(least, 1), "maxReplicas": most}
        )
        yield LeftOut("predictor.maxReplicas", TABLE["predictor.maxReplicas"].note)
    elif least not in (0, 1):
        yield MappedField("predictor.minReplicas", "serving.replicas", least)
    if not isinstance(most, int):
        yield LeftOut("predictor.maxReplicas", "it is no number")


def _storage_uri(field: str, value: Any, service: Service) -> Iterator[Found]:
    uri = str(value)
    if blob := BLOB.match(uri):
        yield MappedField(field, "source.uri", f"azure://{blob[1]}")
        yield LeftOut(
            field,
            "azure needs a Secret with AZURE_STORAGE_ACCOUNT_NAME in source.secretRef (docs/source.md)",
            needs_hand=True,
        )
        return
    if uri.startswith("hf://") and ":" in uri.removeprefix("hf://"):
        uri, _, version = uri.rpartition(":")
        yield MappedField(field, "source.version", version)
    # A URI that is left out is not quoted: it may hold credentials.
    if uri.startswith("oci://"):
        why = "it is an image, and the operator takes artifacts, as ORAS pushes them"
        yield LeftOut(field, why, needs_hand=True)
    elif PurePosixPath(uri).suffix in ARCHIVES:
        yield LeftOut(field, "it is an archive, and none is unpacked; give the files", needs_hand=True)
    else:
        try:
            split(uri)
        except ValueError as error:
            yield LeftOut(field, str(error), needs_hand=True)
        else:
            yield MappedField(field, "source.uri", uri)


def _storage(field: str, value: Any, service: Service) -> Iterator[Found]:
    """Where the model is by KServe's own Secret, which holds a login for each key."""
    given = value if isinstance(value, dict) else {}
    parameters = given.get("parameters") if isinstance(given.get("parameters"), dict) else {}
    if parameters and parameters.get("bucket") and "storageUri" not in service.model:
        scheme = parameters.get("type", "s3")
        yield from _storage_uri(field, f"{scheme}://{parameters['bucket']}/{given.get('path', '')}", service)
    for name in given:
        if name not in ("path", "parameters"):
            why = f"put the login {given[name]} into a Secret (docs/source.md), and name that in source.secretRef"
            is_key = name == "key"
            yield LeftOut(f"{field}.{name}", why if is_key else NO_FIELD.note, needs_hand=is_key)


def _account(field: str, value: Any, service: Service) -> Iterator[Found]:
    """The ServiceAccount, which in KServe brings Secrets along or is known to a cloud."""
    scheme = str(service.model.get("storageUri", "")).partition("://")[0]
    if scheme in SCHEMES and SCHEMES[scheme].knows_accounts:
        yield MappedField(field, TABLE["predictor.serviceAccountName"].place, value)
        yield LeftOut(
            field,
            "the Helm value allowed.serviceAccounts must name it; if it brings a Secret along instead, name that one in"
            " source.secretRef (docs/source.md)",
            needs_hand=True,
        )
    else:
        why = "servers have no ServiceAccount; name a Secret for the download in source.secretRef"
        yield LeftOut(field, why, needs_hand=True)


def _runtime_version(field: str, value: Any, service: Service) -> Iterator[Found]:
    match = re.match(r"^(\d\d)\.(\d\d)-", str(value))
    uses_triton = service.kind == "triton" or service.form == "triton" or "triton" in str(service.model.get("runtime"))
    if uses_triton and match and (int(match[1]), int(match[2])) >= OLDEST_IMAGE:
        if "image" in service.model:
            yield LeftOut(field, "image says which server")
        else:
            yield MappedField(field, "serving.image", f"{IMAGE}:{value}")
    else:
        yield LeftOut(field, f"the installation's server is taken, and not {value}; to keep to one, set serving.image")


def _image(field: str, value: Any, service: Service) -> Iterator[Found]:
    if "tritonserver" in str(value):
        yield MappedField(field, "serving.image", value)
    else:
        yield LeftOut(field, f"{value} is no tritonserver", needs_hand=True)


def _runtime(field: str, value: Any, service: Service) -> Iterator[Found]:
    is_known = str(value).startswith(KSERVES_RUNTIMES)
    own = "" if is_known else f"; {value} is not KServe's, and may have other backends, which the model then needs"
    yield LeftOut(field, f"{TABLE[f'{MODEL}.runtime'].note}{own}", needs_hand=not is_known)


def _protocol(field: str, value: Any, service: Service) -> Iterator[Found]:
    if "v2" not in str(value):
        yield LeftOut(field, f"clients of {value} have to ask by v2: Triton does not know {value}", needs_hand=True)


def _resources(field: str, value: Any, service: Service) -> Iterator[Found]:
    """Requests and limits; of GPUs the limits count."""
    for part in ("requests", "limits"):
        given = value.get(part) if isinstance(value, dict) else None
        for name, amount in (given if isinstance(given, dict) else {}).items():
            place = f"{field}.{part}.{name}"
            if GPU.match(str(name)):
                if part == "limits":
                    yield MappedField(place, "gpu.count", int(str(amount)) if NUMBER.match(str(amount)) else amount)
                    if name != "nvidia.com/gpu":
                        yield MappedField(place, "gpu.resourceName", name)
            elif "/" in str(name) or "." in str(name):
                yield LeftOut(place, "only GPUs of NVIDIA are known", needs_hand=True)
            else:
                yield MappedField(place, f"serving.pod.resources.{part}.{name}", str(amount))


def _node_selector(field: str, value: Any, service: Service) -> Iterator[Found]:
    selector = dict(value) if isinstance(value, dict) else {}
    product = selector.pop(names.GPU_PRODUCT_LABEL, None)
    if product is not None:
        yield MappedField(f"{field}.{names.GPU_PRODUCT_LABEL}", "gpu.product", product)
    if selector:
        yield MappedField(field, TABLE["predictor.nodeSelector"].place, selector)


def _spread(field: str, value: Any, service: Service) -> Iterator[Found]:
    fields = ("topologyKey", "maxSkew", "whenUnsatisfiable")
    for number, each in enumerate(_list(value)):
        kept = {name: each[name] for name in fields if isinstance(each, dict) and name in each}
        yield MappedField(f"{field}[{number}]", TABLE["predictor.topologySpreadConstraints"].place, kept)


def _env(field: str, value: Any, service: Service) -> Iterator[Found]:
    for each in _list(value):
        name = str(each.get("name")) if isinstance(each, dict) else "?"
        place = f"{field}.{name}"
        if names.is_reserved_variable(name):
            threads = name == "OMP_NUM_THREADS"
            why = "threads follow the CPU limit" if threads else "the operator sets it, or a program loads code by it"
            yield LeftOut(place, why)
        elif not isinstance(each, dict) or "valueFrom" in each:
            yield LeftOut(place, "only literal values are taken")
        else:
            yield MappedField(place, TABLE[f"{MODEL}.env"].place, {"name": name, "value": str(each.get("value", ""))})


def _arguments(field: str, value: Any, service: Service) -> Iterator[Found]:
    for each in map(str, _list(value)):
        if is_allowed(each):
            yield MappedField(f"{field}.{each}", "serving.arguments[]", each)
        elif each != "tritonserver":
            yield LeftOut(f"{field}.{each}", "the operator sets tritonserver's options")


def _batcher(field: str, value: Any, service: Service) -> Iterator[Found]:
    given = value if isinstance(value, dict) else {}
    size, delay = given.get("maxBatchSize"), given.get("maxLatency")
    if size is not None:
        yield MappedField(f"{field}.maxBatchSize", "models[].config.maxBatchSize", size)
        yield MappedField(field, "models[].config.dynamicBatching", {"maxQueueDelay": f"{delay}ms"} if delay else {})
    for name in given:
        if name not in ("maxBatchSize", "maxLatency") or size is None:
            needs = "needs maxBatchSize too" if name == "maxLatency" else "has no such setting"
            yield LeftOut(f"{field}.{name}", f"Triton's dynamic batcher {needs}")


def _security(field: str, value: Any, service: Service) -> Iterator[Found]:
    for name, each in (value if isinstance(value, dict) else {}).items():
        if name in ("runAsUser", "fsGroup"):
            yield MappedField(f"{field}.{name}", f"pod.{name}", each)
        elif name not in ("runAsNonRoot", "runAsGroup", "seccompProfile"):
            yield LeftOut(f"{field}.{name}", "a pod is as restricted as it can be in any case")


def _of_pods(field: str, value: Any, service: Service) -> Iterator[Found]:
    """Labels or annotations of pods, without those by which a pod is taken for another."""
    given = value if isinstance(value, dict) else {}
    free = {key: str(each) for key, each in given.items() if not names.is_reserved(str(key))}
    if free:
        yield MappedField(field, TABLE[field].place, free)
    for key in given:
        if key not in free:
            yield LeftOut(f"{field}.{key}", "it is reserved for the operator or Kubernetes")


def _nothing(field: str, value: Any, service: Service) -> Iterator[Found]:
    return iter(())


SPECIAL: Mapping[str, Callable[[str, Any, Service], Iterator[Found]]] = {
    f"{MODEL}.modelFormat": _nothing,
    f"{MODEL}.storageUri": _storage_uri,
    f"{MODEL}.storage": _storage,
    f"{MODEL}.runtimeVersion": _runtime_version,
    f"{MODEL}.image": _image,
    f"{MODEL}.runtime": _runtime,
    f"{MODEL}.protocolVersion": _protocol,
    f"{MODEL}.resources": _resources,
    f"{MODEL}.env": _env,
    f"{MODEL}.args": _arguments,
    "predictor.serviceAccountName": _account,
    "predictor.nodeSelector": _node_selector,
    "predictor.topologySpreadConstraints": _spread,
    "predictor.batcher": _batcher,
    "predictor.labels": _of_pods,
    "predictor.annotations": _of_pods,
    "predictor.securityContext": _security,
}
"""The fields that are not taken as they are, by their names in the table."""
