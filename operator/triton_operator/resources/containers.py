"""The containers of a Job's pod, by its shape.

Where there are three of ours, they run one after the other: `prepare` writes down what is to be done, `run` meets code
or answers of strangers, and may write to a volume of the pod but not to the claim, and the last one checks what it
wrote and publishes it. A private server starts between `prepare` and `run`, and ends with the pod.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from triton_converters.contract import layout
from triton_converters.contract.upkeep_requests import CheckRequest
from triton_operator.api.quantity import amount
from triton_operator.candidates import server_image
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.names import Body
from triton_operator.observed.pod import RUN
from triton_operator.resources import fixed_paths, pod
from triton_operator.resources.claim import claim_size
from triton_operator.resources.private_server import private_image
from triton_operator.resources.work import (
    AnyWork,
    Client,
    Download,
    Pip,
    Plain,
    Replay,
    UserCode,
)

COPIED_CONVERTERS = str(layout.CONVERTERS_MOUNT)
CONVERTERS_MOUNT = {"name": "converters", "mountPath": COPIED_CONVERTERS}
"""The mount of the converters for an image that lacks them."""
TENSORRT_CHECK = "tensorrt"
"""Name of the container that compares TensorRT versions."""
PREPARE = "prepare"
"""Name of the container before `run`, which makes sure of its inputs."""
INCOMING_MOUNT = {"name": "incoming", "mountPath": str(layout.INCOMING_MOUNT)}
OWN_TEMPORARY = {"name": "own-tmp", "mountPath": pod.TEMPORARY["mountPath"]}
"""The /tmp of the other containers in a pod with `run`."""
CLIENT_TEMPORARY = {"name": "client-tmp", "mountPath": pod.TEMPORARY["mountPath"]}
"""The /tmp of the client of a private server. The server, whose model is a program too, has another."""
SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""Keeps Python from importing modules of the working directory, which in our images is /tmp."""


@dataclass(frozen=True)
class Containers:
    """The containers of a Job's pod, and what they need of it."""

    first: Sequence[Body]
    """The init containers, in the order in which they start."""
    main: Body
    """The container that publishes the result."""
    volumes: Sequence[Body]
    """The volumes besides the claim and the /tmp that every pod has."""


@dataclass(frozen=True)
class _Program:
    """What one container of ours is there for."""

    name: str
    arguments: list[str]
    mounts: list[Body]

    @property
    def runs(self) -> bool:
        """Whether the container is `run`, which meets what strangers wrote."""
        return self.name == RUN


def containers(context: Context, work: AnyWork) -> Containers:
    """The containers of the work's shape."""
    match work.shape:
        case UserCode() | Pip():
            return _around_code(context, work, work.shape)
        case Client():
            return _around_client(context, work, work.shape)
        case Plain() | Download():
            return _alone(context, work, work.shape)
        case Replay():
            return _reads(context, work, work.shape)


def checks_engine(work: AnyWork) -> bool:
    """Whether the pod compares the TensorRT of the server's image with the one that built the engine.

    A server behind the preview was compared when it was profiled.
    """
    asks_another = isinstance(work.shape, Client) and work.shape.server is None
    return bool(_tensorrt_version(work)) and not asks_another


def _tensorrt_version(work: AnyWork) -> str:
    """TensorRT version of the engine that the server serves. Empty: no engine."""
    return work.shape.attempt.tensorrt_version if isinstance(work.shape, Client) else ""


def _alone(context: Context, work: AnyWork, shape: Plain | Download) -> Containers:
    mounts = [pod.repository_mount(read_only=False), pod.TEMPORARY, *shape.mounts]
    main = _Program(work.stage, [work.stage, work.request.to_json()], mounts)
    return Containers([], _container(context, work, main), shape.volumes)


def _reads(context: Context, work: AnyWork, shape: Replay) -> Containers:
    command = ["publish"] if shape.boxed else []
    mounts = [pod.repository_mount(read_only=False), pod.TEMPORARY]
    main = _Program(work.stage, [*command, work.stage, work.request.to_json()], mounts)
    return Containers([], _container(context, work, main), [])


def _around_code(context: Context, work: AnyWork, shape: UserCode | Pip) -> Containers:
    """The user's code, or pip: neither needs a server, and an image of another's gets our converters."""
    imports = [CONVERTERS_MOUNT] if _copies_converters(context, work) else []
    # The workers of PyTorch's DataLoader hand their batches over in /dev/shm.
    shares = isinstance(shape, UserCode)
    inputs = shape.inputs if isinstance(shape, UserCode) else ()
    run = [
        *map(pod.input_mount, inputs),
        INCOMING_MOUNT,
        pod.TEMPORARY,
        *shape.mounts,
        *map(_read_only, imports),
        *([pod.SHARED_MEMORY] if shares else []),
    ]
    prepare = [pod.repository_mount(read_only=True), INCOMING_MOUNT, OWN_TEMPORARY, *imports]
    dataset = context.spec.mounted_dataset if isinstance(shape, UserCode) else None
    if dataset is not None:
        prepare.append(pod.claim_volume("data", dataset.uri, layout.DATA_MOUNT)[1])
    looks = _prepare(context, work, [], prepare)
    if dataset is not None:
        looks["env"].append({"name": layout.DATASET, "value": dataset.uri})
    first = [looks, _container(context, work, _Program(RUN, [RUN, work.stage], run))]
    volumes = [
        *shape.volumes,
        *_box_volumes(context),
        *([_converters_volume()] if imports else []),
        *([pod.shared_memory_volume(context)] if shares else []),
    ]
    return Containers(first, _publish(context, work), volumes)


def _around_client(context: Context, work: AnyWork, shape: Client) -> Containers:
    """A client, and the private server that it asks, if it has one."""
    attempt, server = shape.attempt, shape.server
    copied = [CONVERTERS_MOUNT] if checks_engine(work) else []
    engines = attempt.engine_cache if server is not None else ""
    check = [_check_request(work, attempt).to_json()] if server is not None else []
    prepare = [pod.repository_mount(read_only=True), INCOMING_MOUNT, OWN_TEMPORARY, *copied]
    own = [CLIENT_TEMPORARY, pod.SHARED_MEMORY] if server is not None else [pod.TEMPORARY]
    built = [_read_only(pod.engines_mount(engines))] if engines else []
    run = [*map(pod.input_mount, shape.inputs), *built, INCOMING_MOUNT, *own]
    first = [
        _prepare(context, work, check, prepare),
        *([_tensorrt_check(context, work, attempt)] if copied else []),
        *([server] if server is not None else []),
        _container(context, work, _Program(RUN, [RUN, work.stage], run)),
    ]
    volumes = [
        *_box_volumes(context),
        *([_converters_volume()] if copied else []),
        *([_client_volume(), pod.shared_memory_volume(context)] if server is not None else []),
        *([pod.ENGINES] if engines else []),
        *(fixed_paths.volumes(context.spec, pod.SERVER_TEMPORARY) if server is not None else ()),
    ]
    return Containers(first, _publish(context, work), volumes)


def _prepare(context: Context, work: AnyWork, check: list[str], mounts: list[Body]) -> Body:
    """The container before `run`. It fails if an input is missing, so the kubelet never makes an empty directory."""
    return _container(context, work, _Program(PREPARE, [PREPARE, work.stage, work.request.to_json(), *check], mounts))


def _publish(context: Context, work: AnyWork) -> Body:
    """The container after `run`, which checks what that wrote, and publishes it."""
    mounts = [pod.repository_mount(read_only=False), _read_only(INCOMING_MOUNT), OWN_TEMPORARY]
    return _container(context, work, _Program(work.stage, ["publish", work.stage, work.request.to_json()], mounts))


def _container(context: Context, work: AnyWork, program: _Program) -> Body:
    """A container that runs the converters."""
    gpu = program.runs and isinstance(work.shape, UserCode) and work.shape.gpu
    return {
        "name": program.name,
        "image": _image(context, work, program.runs),
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "triton_converters"],
        "args": program.arguments,
        **({"workingDir": "/"} if _meets_strangers(work) else {}),
        "env": _environment(context, work, program.runs),
        "resources": pod.resources(context, context.job_pod, gpu=gpu),
        "securityContext": pod.CONTAINER_SECURITY,
        # If the stage could not write its message, the last lines of its log replace it.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": program.mounts,
    }


def _image(context: Context, work: AnyWork, runs: bool) -> str:
    """The image; the framework's by its digest if that is known, also where ours is the same."""
    own = context.images.converter
    match work.shape:
        case UserCode(image_id=image_id):
            name = context.framework_image if runs else own
            return server_image.image_by_digest(name, image_id) if name == context.framework_image else name
        case Pip(importing_image=importing_image, image=image):
            return importing_image if runs else image
        case Plain(image=image) | Replay(image=image):
            return image or own
        case _:
            return own


def _read_only(mount: Body) -> Body:
    return mount | {"readOnly": True}


def _copies_converters(context: Context, work: AnyWork) -> bool:
    """Whether `run` has our converters from `prepare`: the user's image has none, an older release's has older ones."""
    if isinstance(work.shape, UserCode):
        return bool(context.spec.conversion.image)
    return isinstance(work.shape, Pip)


def _meets_strangers(work: AnyWork) -> bool:
    """Whether containers of ours, and no code of the user's, run beside a server or read what strangers send."""
    match work.shape:
        case Pip() | Client():
            return True
        case Replay(boxed=boxed):
            return boxed
        case _:
            return False


def _box_volumes(context: Context) -> list[Body]:
    return [
        {"name": "incoming", "emptyDir": {"sizeLimit": claim_size(context)}},
        {"name": "own-tmp", "emptyDir": {"sizeLimit": pod.JOB_TEMPORARY}},
    ]


def _client_volume() -> Body:
    return {"name": CLIENT_TEMPORARY["name"], "emptyDir": {"sizeLimit": pod.JOB_TEMPORARY}}


def _converters_volume() -> Body:
    return {"name": "converters", "emptyDir": {"sizeLimit": pod.CONVERTERS_COPY}}


def _tensorrt_check(context: Context, work: AnyWork, attempt: Attempt) -> Body:
    """The container that ends with EXIT_FINAL if the server's TensorRT is not the one that built the engine."""
    return {
        "name": TENSORRT_CHECK,
        "image": private_image(context, attempt),
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "triton_converters.tensorrt_check"],
        "args": [work.stage, work.key, attempt.tensorrt_version],
        "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}, {"name": "PYTHONPATH", "value": COPIED_CONVERTERS}],
        # A quota asks for them on every container.
        "resources": pod.resources(context, context.job_pod, gpu=False),
        "securityContext": pod.CONTAINER_SECURITY,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [_read_only(CONVERTERS_MOUNT)],
    }


def _check_request(work: AnyWork, served: Attempt) -> CheckRequest:
    content = served.conversion.content if served.conversion else ""
    return CheckRequest(work.stage, work.key, served.key, content)


def _environment(context: Context, work: AnyWork, runs: bool) -> list[dict[str, str]]:
    """The variables of a container; the user's reach only the one that ``runs`` the user's code.

    What a download needs reaches only the container that makes it.
    """
    variables = {
        "HOME": "/tmp",  # noqa: S108 - an emptyDir of the pod's own
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        # torch then refuses a pickle that holds more than weights, whatever the user's code asks for.
        "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1",
        "GPU_PRODUCT": context.spec.gpu.product if context.spec.gpu else "",
        "TENSORRT_VERSION": _tensorrt_version(work),
    }
    if isinstance(work.shape, Download) or (isinstance(work.shape, Pip) and runs):
        settings = context.settings
        variables |= {
            "HTTPS_PROXY": settings.sources_proxy,
            "NO_PROXY": ",".join(settings.sources_no_proxy),
            "SOURCE_CA_BUNDLE": settings.sources_ca_bundle,
            "HF_ENDPOINT": settings.sources_hub,
            "PIP_INDEX_URL": settings.sources_package_index,
            "SOURCE_SERVICE_ACCOUNT": work.shape.service_account if isinstance(work.shape, Download) else "",
        }
    if cpus := amount(context.job_pod.resources.limits.get("cpu")):
        # torch would start a thread for each of the node's cores and be throttled.
        variables["OMP_NUM_THREADS"] = str(ceil(cpus))
    if runs and _copies_converters(context, work):
        variables["PYTHONPATH"] = COPIED_CONVERTERS
    if _meets_strangers(work):
        variables |= SAFE_PATH
    given = pod.variables(context.job_pod) if runs and isinstance(work.shape, UserCode) else []
    return [*({"name": name, "value": value} for name, value in variables.items() if value), *given]
