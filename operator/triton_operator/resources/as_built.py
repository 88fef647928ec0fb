"""Whether a pod template that was recorded is one that the operator builds for a server. Pure.

Records are kept in a ConfigMap that people of the namespace may edit. So a recorded template is compared with all that
any version of the operator has built, and with what the installation allows today. Where a version builds something
else, its shape is added here, and the old ones stay. What only the author of a spec decides, such as a toleration or an
argument of a backend, may differ.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from triton_converters.contract import layout
from triton_converters.contract.document import DocumentError
from triton_converters.contract.text import printable, shortened
from triton_converters.contract.upkeep_requests import CheckRequest
from triton_operator import names
from triton_operator.api.fixed_paths import is_free
from triton_operator.context import Context
from triton_operator.names import REPOSITORY
from triton_operator.observed.pod import CHECK, SERVE, SERVER
from triton_operator.resources import fixed_paths, pod, volumes
from triton_operator.resources.claim import other_owner
from triton_operator.resources.server import CHECK_COMMAND, FIXED_MODELS, HTTP_PORT, POD_UID, RESTRICTIONS, UNWRITTEN
from triton_operator.resources.start_probe import WAIT, start_probe

Template = Mapping[str, Any]
LONGEST_PLACE = 200
"""The longest name of a field in a refusal, in bytes: whoever wrote the record wrote it too."""


@dataclass(frozen=True)
class ServerNames:
    """A server of an object, as the names in its template have to say."""

    owner_name: str
    """Name of the TritonDeployment."""
    server: str
    """Name of the Deployment."""
    key: str
    """Key of the revision."""


def refusal(context: Context, server: str, key: str, template: Template) -> str | None:
    """Words for why a server may not be made of a recorded template; None: it may.

    ``server``, ``key``: name of its Deployment and key of its revision.
    """
    server_names = ServerNames(context.name, server, key)
    strange = _strangeness(server_names, template)
    if strange is not None:
        return f"the record of Deployment {server} is not one that the operator writes: somebody changed {strange}"
    return next(_forbidden(context, server, template), None)


def _strangeness(server_names: ServerNames, template: Template) -> str | None:
    """The first field of a template that no version of the operator has built so; None: there is none."""
    found = next(_strange(template, _shape(server_names, _volumes(template)), "template"), None)
    return None if found is None else shortened(printable(found), LONGEST_PLACE)


def _forbidden(context: Context, server: str, template: Template) -> Iterator[str]:
    """Yield words for what of a pod the installation does not allow."""
    settings, spec = context.settings, template["spec"]
    for key in template["metadata"].get("annotations", {}):
        if not settings.allows_annotation(key):
            yield _words(server, f"annotation {key}", "allowed.annotations")
    for container in (*spec["initContainers"], *spec["containers"]):
        image = container["image"]
        if not settings.keeps_image(image):
            yield _words(server, f"image {image}", "allowed.images")
    for claim in (each["persistentVolumeClaim"]["claimName"] for each in spec["volumes"] if each["name"] == REPOSITORY):
        if claim not in (context.claim_name, names.claim(context.name)):
            yield f"the record of Deployment {server} has claim {claim}, which is not the one of this object"
        elif claim != names.claim(context.name) and not settings.allows_claim(claim):
            yield _words(server, f"claim {claim}", "allowed.claims")
        elif claim == context.claim_name and (owner := other_owner(context)):
            yield f"the record of Deployment {server} has claim {claim}, which is TritonDeployment {owner}'s alone"


def _words(server: str, what: str, setting: str) -> str:
    return (
        f"the record of Deployment {server} has {shortened(printable(what), LONGEST_PLACE)}, which this installation"
        f" does not allow; ask the administrator who installed the operator to add it to the Helm value {setting}"
    )


def _strange(value: Any, shape: Any, place: str) -> Iterator[str]:
    """Yield the places where a value has not the shape; ``_shape`` says how shapes are written."""
    if isinstance(shape, dict):
        fields = value if isinstance(value, dict) else {}
        desired = {name.removesuffix("?"): inner for name, inner in shape.items()}
        yield from (f"{place}.{name}" for name in fields if name not in desired)
        yield from (f"{place}.{name}" for name in shape if name.removesuffix("?") == name and name not in fields)
        for name in desired.keys() & fields.keys():
            yield from _strange(fields[name], desired[name], f"{place}.{name}")
    elif isinstance(shape, tuple):
        if not isinstance(value, list) or len(value) != len(shape):
            yield place
        else:
            for number, (each, inner) in enumerate(zip(value, shape, strict=True)):
                yield from _strange(each, inner, f"{place}[{number}]")
    elif not (shape(value) if callable(shape) else value == shape):
        yield place


def _shape(server_names: ServerNames, pod_volumes: tuple[Any, ...]) -> dict[str, Any]:
    """What every version of the operator has built: the fields by their names, with ? after one that may be missing.

    A tuple is a list of exactly these items, a function is a test, and any other value is the only one.
    ``pod_volumes``: the shapes of the pod's volumes.
    """
    key, revision = server_names.key, layout.revision_directory(server_names.key)
    part = {"name": REPOSITORY, "mountPath": str(revision), "subPath": _below(revision), "readOnly": True}
    container = {
        "image": _is_text,
        "imagePullPolicy?": "IfNotPresent",
        "env?": _all(_is_variable),
        "resources?": {"limits?": _is_free, "requests?": _is_free},
        "securityContext": pod.CONTAINER_SECURITY,
        "terminationMessagePolicy?": "FallbackToLogsOnError",
    }
    check = {"name": CHECK, "command": CHECK_COMMAND, "args": _checks(key), "volumeMounts": (part,)}
    server = {
        "name": SERVER,
        "args": _serves(key),
        "volumeMounts": _all(
            lambda mount: (
                mount in (part, volumes.SHARED_MEMORY, volumes.TEMPORARY)
                or _holds_engines(mount)
                or _is_of_a_step(key, mount)
            )
        ),
        "ports?": _all(lambda port: isinstance(port, dict) and set(port) == {"name", "containerPort"}),
        "lifecycle?": {"preStop": {"sleep": _is_free}},
        "startupProbe": _is_start_probe,
    } | {f"{probe}?": PROBE for probe in ("readinessProbe", "livenessProbe")}
    return {
        "metadata": {"labels": _labels(server_names), "annotations?": _is_unreserved},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks?": False,
            "hostUsers?": _is_flag,
            "securityContext": USER,
            "terminationGracePeriodSeconds?": _is_free,
            "initContainers": (container | check,),
            "containers": (container | server,),
            "volumes": pod_volumes,
        }
        | {f"{field}?": _is_free for field in PLACEMENT},
    }


def _is_free(value: Any) -> bool:
    """Whatever the spec says: the API server checks it with the Deployment."""
    return True


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_id(value: Any) -> bool:
    """Whether a value is the id of a user or a group that is not root."""
    return type(value) is int and value > 0


PLACEMENT = (
    "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName", "runtimeClassName",
    "imagePullSecrets",
)  # fmt: skip
"""The fields of a pod that the spec alone decides."""
PROBE = {
    "httpGet": {"path": _is_text, "port": "http"},
    **{f"{field}?": _is_free for field in ("periodSeconds", "failureThreshold", "timeoutSeconds")},
}
USER = {
    "runAsNonRoot": True,
    "runAsUser": _is_id,
    "runAsGroup": _is_id,
    "fsGroup": _is_id,
    "fsGroupChangePolicy?": _is_free,
    "seccompProfile": {"type": "RuntimeDefault"},
}
VOLUMES = (
    {"name": REPOSITORY, "persistentVolumeClaim": {"claimName": _is_text, "readOnly": True}},
    {"name": volumes.SHARED_MEMORY["name"], "emptyDir": {"medium": "Memory", "sizeLimit": _is_text}},
    {"name": volumes.TEMPORARY["name"], "emptyDir": {"sizeLimit": _is_text}},
)

OTHERS = (volumes.ENGINES, volumes.empty_directory(volumes.SCRATCH, volumes.SERVER_TEMPORARY))


def _volumes(template: Template) -> tuple[Any, ...]:
    """The shapes of the volumes: that of engines, and that which steps write to, only some servers have."""
    spec = template.get("spec")
    found = spec.get("volumes") if isinstance(spec, dict) else None
    return (*VOLUMES, *(each for each in OTHERS if isinstance(found, list) and each in found))


def _all(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(test, value))


def _is_unreserved(value: Any) -> bool:
    return isinstance(value, dict) and not any(map(names.is_reserved, value))


def _labels(server_names: ServerNames) -> Callable[[Any], bool]:
    """The test whether labels are those of the object's own server, and else only a user's."""

    def test(labels: Any) -> bool:
        if not isinstance(labels, dict):
            return False
        own = names.labels(server_names.owner_name, "server")
        own |= names.server_labels(server_names.server, server_names.key)
        reserved = {key: value for key, value in labels.items() if key in own or names.is_reserved(key)}
        return reserved == own

    return test


def _is_variable(variable: Any) -> bool:
    """Whether an entry is a variable that a user may set, or one of the operator's own. No Secret is named."""
    if not isinstance(variable, dict):
        return False
    name, free = variable.get("name"), set(variable) == {"name", "value"} and _is_text(variable["value"])
    own = variable in (pod.NO_GPU, pod.TF32_OFF, UNWRITTEN, POD_UID)
    return own or (free and isinstance(name, str) and not names.is_reserved_variable(name))


def _checks(key: str) -> Callable[[Any], bool]:
    """The test whether arguments ask to check the revision before a server starts on it."""

    def test(arguments: Any) -> bool:
        try:
            (text,) = arguments
            request = CheckRequest.from_json(text)
        except (DocumentError, TypeError, ValueError):
            return False
        return (request.stage, request.key, request.revision) == (SERVE, key, key)

    return test


def _serves(key: str) -> Callable[[Any], bool]:
    """The test whether arguments are tritonserver's, which serves the revision and lets no client change that.

    Before them may be what empties the directories of steps.
    """
    repository = f"--model-repository={layout.model_repository(key)}"

    def test(arguments: Any) -> bool:
        if not _all(_is_text)(arguments) or SERVER not in arguments:
            return False
        before = arguments[: arguments.index(SERVER)]
        if before and not _empties(before):
            return False
        repositories = [each for each in arguments if each.startswith(("--model-repository", "--model-store"))]
        return repositories == [repository] and {FIXED_MODELS, *RESTRICTIONS} <= set(arguments)

    return test


def _is_start_probe(probe: Any) -> bool:
    """Whether a probe runs our program alone, for whichever model."""
    try:
        path = probe["exec"]["command"][len(WAIT)]
    except (TypeError, KeyError, IndexError):
        return False
    return _is_text(path) and probe == start_probe(path, HTTP_PORT)


def _empties(arguments: list[str]) -> bool:
    """Whether arguments empty directories to which a step may write, and become what follows."""
    program, paths, end = arguments[:4], arguments[4:-1], arguments[-1]
    return (program, end) == (fixed_paths.BEFORE, "--") and all(
        path in fixed_paths.WRITABLE or is_free(path) for path in paths
    )


def _holds_engines(mount: Any) -> bool:
    """Whether an entry mounts the pod's own directory of engines."""
    if not isinstance(mount, dict) or set(mount) != {"name", "mountPath"} or mount["name"] != volumes.ENGINES["name"]:
        return False
    place = str(mount["mountPath"])
    return place.startswith(f"{layout.ROOT / 'caches'}/") and not {"", ".", ".."} & set(place.split("/")[1:])


def _is_of_a_step(key: str, mount: Any) -> bool:
    """Whether an entry mounts a folder of the revision, or an empty one, at a path that a step's code may name."""
    fields = set(mount) if isinstance(mount, dict) else set()
    if not {"name", "mountPath", "subPath"} <= fields or not all(map(_is_text, (mount["mountPath"], mount["subPath"]))):
        return False
    path, below = mount["mountPath"], mount["subPath"]
    if not is_free(path):
        return False
    if mount["name"] == volumes.SCRATCH:
        return fields == {"name", "mountPath", "subPath"} and path == f"/{below}"
    inside = below.startswith(f"{_below(layout.model_repository(key))}/") and not {"", ".", ".."} & {*below.split("/")}
    return mount == {"name": REPOSITORY, "mountPath": path, "subPath": below, "readOnly": True} and inside


def _below(directory: Any) -> str:
    """The path of a directory of the claim as a subPath."""
    return str(directory.relative_to(layout.MOUNT))
