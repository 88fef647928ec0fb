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
from triton_operator.names import REPOSITORY, Body
from triton_operator.observed.pod import RUN
from triton_operator.resources import fixed_paths, pod, volumes
from triton_operator.resources.pod import PodContainers
from triton_operator.resources.private_server import private_image
from triton_operator.resources.volumes import read_only
from triton_operator.resources.work import AnyWork, Client, Download, Pip, Plain, Replay, UserCode
from triton_operator.settings import Settings

TENSORRT_CHECK = "tensorrt"
"""Name of the container that compares TensorRT versions."""
PREPARE = "prepare"
"""Name of the container before `run`, which makes sure of its inputs."""
SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""Keeps Python from importing modules of the working directory, which in our images is /tmp."""


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


def containers(context: Context, work: AnyWork) -> PodContainers:
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


def _alone(context: Context, work: AnyWork, shape: Plain | Download) -> PodContainers:
    mounts = [*([volumes.repository_mount()] if work.has_claim else []), volumes.TEMPORARY, *shape.mounts]
    main = _Program(work.stage, [work.stage, work.request.to_json()], mounts)
    return _of_job(context, work, [], _container(context, work, main), shape.volumes)


def _reads(context: Context, work: AnyWork, shape: Replay) -> PodContainers:
    command = ["publish"] if shape.boxed else []
    mounts = [volumes.repository_mount(), volumes.TEMPORARY]
    main = _Program(work.stage, [*command, work.stage, work.request.to_json()], mounts)
    return _of_job(context, work, [], _container(context, work, main), [])


def _around_code(context: Context, work: AnyWork, shape: UserCode | Pip) -> PodContainers:
    """The user's code, or pip: neither needs a server, and an image of another's gets our converters."""
    imports = [volumes.CONVERTERS_MOUNT] if _copies_converters(context, work) else []
    # The workers of PyTorch's DataLoader hand their batches over in /dev/shm.
    shares = isinstance(shape, UserCode)
    inputs = shape.inputs if isinstance(shape, UserCode) else ()
    run = [
        *map(volumes.input_mount, inputs),
        volumes.INCOMING_MOUNT,
        volumes.TEMPORARY,
        *shape.mounts,
        *map(read_only, imports),
        *([volumes.SHARED_MEMORY] if shares else []),
    ]
    first = [_prepare(context, work, imports), _container(context, work, _Program(RUN, [RUN, work.stage], run))]
    pod_volumes = [
        *shape.volumes,
        *volumes.box(context),
        *([_converters_volume()] if imports else []),
        *([volumes.shared_memory(context)] if shares else []),
    ]
    return _of_job(context, work, first, _publish(context, work), pod_volumes)


def _around_client(context: Context, work: AnyWork, shape: Client) -> PodContainers:
    """A client, and the private server that it asks, if it has one."""
    attempt, server = shape.attempt, shape.server
    copied = [volumes.CONVERTERS_MOUNT] if checks_engine(work) else []
    engines = attempt.engine_cache if server is not None else ""
    check = [_check_request(work, attempt).to_json()] if server is not None else []
    own = [volumes.CLIENT_TEMPORARY, volumes.SHARED_MEMORY] if server is not None else [volumes.TEMPORARY]
    built = [read_only(volumes.engines_mount(engines))] if engines else []
    run = [*map(volumes.input_mount, shape.inputs), *built, volumes.INCOMING_MOUNT, *own]
    first = [
        _prepare(context, work, copied, *check),
        *([_tensorrt_check(context, work, attempt)] if copied else []),
        *([server] if server is not None else []),
        _container(context, work, _Program(RUN, [RUN, work.stage], run)),
    ]
    pod_volumes = [*volumes.box(context), *([_converters_volume()] if copied else [])]
    if server is not None:
        client = volumes.empty_directory(volumes.CLIENT_TEMPORARY["name"], volumes.JOB_TEMPORARY)
        pod_volumes += [client, volumes.shared_memory(context)]
        pod_volumes += [volumes.ENGINES] if engines else []
        pod_volumes += fixed_paths.scratch_volumes(context.spec, volumes.SERVER_TEMPORARY)
    return _of_job(context, work, first, _publish(context, work), pod_volumes)


def _of_job(context: Context, work: AnyWork, first: Sequence[Body], main: Body, more: Sequence[Body]) -> PodContainers:
    """The containers of a Job's pod; a claim that any of them has can be written to, unless the stage only reads it.

    ``more``: the volumes that not every Job has.
    """
    temporary = volumes.empty_directory(volumes.TEMPORARY["name"], volumes.JOB_TEMPORARY)
    mounted = {mount["name"] for each in (*first, main) for mount in each["volumeMounts"]}
    claim = [volumes.repository(context, writes=work.writes_claim)] if REPOSITORY in mounted else []
    return PodContainers(first, main, [*claim, temporary, *more])


def _prepare(context: Context, work: AnyWork, more: list[Body], *check: str) -> Body:
    """The container before `run`. It fails if an input is missing, so the kubelet never makes an empty directory.

    ``more``: its further mounts. ``check``: what it is to check of the revision.
    """
    mounts = [read_only(volumes.repository_mount()), volumes.INCOMING_MOUNT, volumes.OWN_TEMPORARY, *more]
    if dataset := _dataset(context, work):
        mounts += volumes.claim_volume(context, "data", dataset, layout.DATA_MOUNT)[1]
    return _container(context, work, _Program(PREPARE, [PREPARE, work.stage, work.request.to_json(), *check], mounts))


def _dataset(context: Context, work: AnyWork) -> str:
    """URI of the data that user code reads where it lies; empty: it reads none, or a copy of it."""
    dataset = context.spec.mounted_dataset if isinstance(work.shape, UserCode) else None
    return dataset.uri if dataset is not None else ""


def _publish(context: Context, work: AnyWork) -> Body:
    """The container after `run`, which checks what that wrote, and publishes it."""
    mounts = [volumes.repository_mount(), read_only(volumes.INCOMING_MOUNT), volumes.OWN_TEMPORARY]
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
        "env": _environment(context, work, program),
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
        case Plain(image=image) | Download(image=image) | Replay(image=image):
            return image or own
        case _:
            return own


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


def _converters_volume() -> Body:
    return volumes.empty_directory(volumes.CONVERTERS_MOUNT["name"], volumes.CONVERTERS_COPY)


def _tensorrt_check(context: Context, work: AnyWork, attempt: Attempt) -> Body:
    """The container that ends with EXIT_FINAL if the server's TensorRT is not the one that built the engine."""
    return {
        "name": TENSORRT_CHECK,
        "image": private_image(context, attempt),
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "triton_converters.tensorrt_check"],
        "args": [work.stage, work.key, attempt.tensorrt_version],
        "env": [
            {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
            {"name": "PYTHONPATH", "value": str(layout.CONVERTERS_MOUNT)},
        ],
        # A quota asks for them on every container.
        "resources": pod.resources(context, context.job_pod, gpu=False),
        "securityContext": pod.CONTAINER_SECURITY,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [read_only(volumes.CONVERTERS_MOUNT)],
    }


def _check_request(work: AnyWork, served: Attempt) -> CheckRequest:
    content = served.conversion.content if served.conversion else ""
    return CheckRequest(work.stage, work.key, served.key, content)


def connection_variables(settings: Settings) -> dict[str, str]:
    """Return the variables by which a container reaches servers, and which authorities it trusts."""
    return {
        "HTTPS_PROXY": settings.sources_proxy,
        "NO_PROXY": ",".join(settings.sources_no_proxy),
        "SOURCE_CA_BUNDLE": settings.sources_ca_bundle,
    }


def _environment(context: Context, work: AnyWork, program: _Program) -> list[dict[str, str]]:
    """The variables of a container; the user's reach only the one that runs the user's code.

    What a download needs reaches only the container that makes it.
    """
    runs = program.runs
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
        variables |= connection_variables(settings) | {
            "HF_ENDPOINT": settings.sources_hub,
            "PIP_INDEX_URL": settings.sources_package_index,
            "SOURCE_SERVICE_ACCOUNT": work.shape.service_account if isinstance(work.shape, Download) else "",
        }
    if cpus := amount(context.job_pod.resources.limits.get("cpu")):
        # torch would start a thread for each of the node's cores and be throttled.
        variables["OMP_NUM_THREADS"] = str(ceil(cpus))
    if runs and _copies_converters(context, work):
        variables["PYTHONPATH"] = str(layout.CONVERTERS_MOUNT)
    if _meets_strangers(work):
        variables |= SAFE_PATH
    if program.name == PREPARE:
        variables[layout.DATASET] = _dataset(context, work)
    given = pod.variables(context.job_pod) if runs and isinstance(work.shape, UserCode) else []
    return [*({"name": name, "value": value} for name, value in variables.items() if value), *given]
