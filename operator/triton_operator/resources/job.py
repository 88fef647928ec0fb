"""The Jobs, which have one of two shapes.

Some have one container, which does the stage's work and publishes the result on the claim. Those that run the user's
code, ask a server that does, or run pip have three, one after the other: `prepare` writes down what is to be done,
`run` meets that code, and may write to a volume of the pod but not to the claim, and the last one checks what it wrote
and publishes it. A private server starts between `prepare` and `run`, and ends with the pod.
"""

from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from triton_converters.contract import layout, uris
from triton_converters.contract.envelope import EXIT_FINAL
from triton_converters.contract.upkeep_requests import CheckRequest
from triton_operator import names
from triton_operator.api.pod import Pod
from triton_operator.api.quantity import amount
from triton_operator.candidates import server_image
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.observed.job_rules import BACKOFF_LIMIT
from triton_operator.observed.pod import CHECK, RUN
from triton_operator.resources import pod
from triton_operator.resources.claim import claim_size
from triton_operator.resources.server import FIXED_MODELS, check_container, server_container
from triton_operator.resources.work import AnyWork
from triton_operator.settings import Settings

LOOPBACK = "127.0.0.1"
"""An address, because tritonserver listens on IPv4 and `localhost` may resolve to ::1 first."""
CONVERTERS = "/opt/triton-operator/converters"
"""Path of the converters in the converter image."""
COPIED_CONVERTERS = str(layout.CONVERTERS_MOUNT)
CONVERTERS_MOUNT = {"name": "converters", "mountPath": COPIED_CONVERTERS}
"""The mount of the converters for an image that lacks them."""
TENSORRT_CHECK = "tensorrt"
"""Name of the container that compares TensorRT versions."""
PREPARE = "prepare"
"""Name of the container before `run`, which makes sure of its inputs."""
PRIVATE = tuple(f"--{interface}-address={LOOPBACK}" for interface in ("http", "grpc", "metrics"))
"""The arguments of a private server. All are older than --grpc-max-connection-age, which the other servers get."""
INCOMING_MOUNT = {"name": "incoming", "mountPath": str(layout.INCOMING_MOUNT)}
OWN_TEMPORARY = {"name": "own-tmp", "mountPath": pod.TEMPORARY["mountPath"]}
"""The /tmp of the other containers in a pod with `run`."""
CLIENT_TEMPORARY = {"name": "client-tmp", "mountPath": pod.TEMPORARY["mountPath"]}
"""The /tmp of the client of a private server. The server, whose model is a program too, has another."""
SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""Keeps Python from importing modules of the working directory, which in our images is /tmp."""


def job(context: Context, work: AnyWork) -> dict[str, Any]:
    """The Job that does the work. Its name contains a hash of its whole template."""
    settings = _unqueued(context.job_pod) if work.stage == "snapshot" else context.job_pod
    labels = {names.STAGE_LABEL: work.stage, names.KEY_LABEL: work.key}
    if work.candidate:
        labels[names.CANDIDATE_LABEL] = work.candidate
    if work.downloads:
        labels[names.DOWNLOADS_LABEL] = "true"
    spec = {
        # A failure that another try would repeat ends with EXIT_FINAL, and is not tried again.
        "backoffLimit": BACKOFF_LIMIT,
        "podFailurePolicy": _failure_policy(work),
        # A pod that still terminates holds the claim and the GPU.
        "podReplacementPolicy": "Failed",
        "template": {
            "metadata": _metadata(context, work, settings, labels),
            "spec": _pod(context, work),
        },
    }
    metadata = context.metadata(names.job(context.name, work.stage, [work.key, spec]), work.stage, **labels)
    metadata |= pod.pod_metadata(context, settings, work.stage, **labels)
    if retry := context.triton_deployment.retry:
        # The retry that the Job belongs to. One that is asked for later asks for another try of it too.
        metadata["annotations"] = metadata.get("annotations", {}) | {names.RETRY_ANNOTATION: retry}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _unqueued(settings: Pod) -> Pod:
    """The settings without a queue: counters that are read late say nothing, and reading them takes no GPU."""
    labels = {name: value for name, value in settings.labels.items() if name != names.QUEUE_LABEL}
    return settings.model_copy(update={"labels": labels})


def earlier_name(context: Context, work: AnyWork) -> str:
    """The name under which an operator that had the client share the server's /tmp recorded a failure of the work."""
    if work.boxed or work.sidecar is None:
        return ""
    return str(job(context, replace(work, shares_tmp=True))["metadata"]["name"])


def sidecar(context: Context, revision: Attempt) -> dict[str, Any]:
    """The serving container as a native sidecar: it starts before the client and ends with it.

    It listens on loopback, where the client alone reaches it and no probe of the kubelet: the client waits for it. Only
    a sidecar shares memory with its client, so only it gets the flag for that, if its release needs the flag. It
    never renews a connection: perf_analyzer ends if a request meets that.
    """
    container = server_container(context, revision)
    shared = server_image.wants_shared_memory_flag(context.images.server)
    flags = [*PRIVATE, *([server_image.CLIENT_SHARED_MEMORY_FLAG] if shared else [])]
    return container | {"args": [*container["args"], *flags], "restartPolicy": "Always"}


def reloading_sidecar(context: Context, revision: Attempt) -> dict[str, Any]:
    """The sidecar of a search. Its server accepts new configurations of the model, which no other server does."""
    container = sidecar(context, revision)
    kept = [each for each in container["args"] if each != FIXED_MODELS]
    explicit = ["--model-control-mode=explicit", f"--load-model={context.spec.served_name}"]
    return container | {"args": [*kept, *explicit]}


def claim_volume(name: str, uri: str, mount_path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Volume and read-only mount of the whole claim or ConfigMap that a URI names.

    A subPath would hide errors: the kubelet makes an empty directory if it is missing.
    """
    named = uris.split(uri)
    volume = (
        {"configMap": {"name": named.host}}
        if named.scheme == "configmap"
        else {"persistentVolumeClaim": {"claimName": named.host, "readOnly": True}}
    )
    return {"name": name} | volume, {"name": name, "mountPath": str(mount_path), "readOnly": True}


def secret_volume(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Volume and read-only mount of a Secret, a file for each key, which the pod's group may read."""
    volume = {"name": "credentials", "secret": {"secretName": name, "defaultMode": 0o440}}
    return volume, {"name": "credentials", "mountPath": str(layout.CREDENTIALS_MOUNT), "readOnly": True}


def _metadata(context: Context, work: AnyWork, settings: Pod, labels: dict[str, str]) -> dict[str, Any]:
    metadata = pod.pod_metadata(context, settings, work.stage, **labels)
    if _in_a_box(work):
        # What a user looks for in a Job's log is the user's own traceback, or the figures.
        metadata["annotations"] = metadata.get("annotations", {}) | {names.LOGGED_CONTAINER: RUN}
    return metadata


def _failure_policy(work: AnyWork) -> dict[str, Any]:
    engine = [TENSORRT_CHECK] if _checks_engine(work) else []
    if _in_a_box(work):
        containers = [PREPARE, *engine, work.stage]
    else:
        containers = [work.stage, *([CHECK, *engine] if work.sidecar is not None else [])]
    return {
        "rules": [
            *(
                {"action": "FailJob", "onExitCodes": {"containerName": each, "operator": "In", "values": [EXIT_FINAL]}}
                for each in containers
            ),
            # An eviction or a drained node says nothing about the work.
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        ]
    }


def _pod(context: Context, work: AnyWork) -> dict[str, Any]:
    init, container, volumes = _in_three(context, work) if _in_a_box(work) else _in_one(context, work)
    spec = pod.pod_spec(context, _placement(context, work), work.stage, gpu=work.gpu or work.sidecar is not None)
    if work.user_code:
        spec |= _isolation(context.settings)
    if work.service_account:
        # No token of the cluster is mounted, nor for any other pod: a cloud mounts its own, or knows the pod.
        spec["serviceAccountName"] = work.service_account
    spec |= {
        "restartPolicy": "Never",
        # The Job's own deadline would also count the time in which no node takes the pod.
        "activeDeadlineSeconds": work.deadline_seconds,
        "terminationGracePeriodSeconds": 5,
        "containers": [container],
        "volumes": [
            pod.repository_volume(context, read_only=False),
            pod.temporary_volume(pod.JOB_TEMPORARY),
            *work.volumes,
            *volumes,
        ],
    }
    return pod.finished(context, spec | {"initContainers": init} if init else spec)


def _in_a_box(work: AnyWork) -> bool:
    return work.boxed and not work.reads


def _checks_engine(work: AnyWork) -> bool:
    return bool(work.tensorrt_version) and (work.sidecar is not None or not work.boxed)


def _isolation(settings: Settings) -> dict[str, Any]:
    """What the installation demands of a pod that runs the user's code, whatever the spec says."""
    runtime, host_users = settings.user_code_runtime_class, settings.user_code_host_users
    demanded: dict[str, Any] = {"runtimeClassName": runtime} if runtime else {}
    return demanded if host_users is None else demanded | {"hostUsers": host_users}


Containers = tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]]]
"""The init containers, the main container, and the volumes that they need."""


def _in_one(context: Context, work: AnyWork) -> Containers:
    """One container of ours; beside a private server, in an object whose images are older than the box for that."""
    own = pod.TEMPORARY if work.sidecar is None or work.shares_tmp else CLIENT_TEMPORARY
    mounts = [pod.repository_mount(read_only=False), own, *work.mounts]
    init: list[dict[str, Any]] = []
    volumes: list[dict[str, Any]] = []
    if _checks_engine(work):
        init += [_copy(context), _tensorrt_check(context, work)]
        volumes.append(_converters_volume())
    if work.sidecar is not None and work.served is not None:
        init += [_check(context, work, work.served), work.sidecar]
        mounts.append(pod.SHARED_MEMORY)
        volumes.append(pod.shared_memory_volume(context))
        if not work.shares_tmp:
            volumes.append(_client_volume())
    command = ["publish"] if work.boxed else []
    arguments = [*command, work.stage, work.request.to_json()]
    return init, _container(context, work, work.stage, arguments, mounts), volumes


def _in_three(context: Context, work: AnyWork) -> Containers:
    """The container `run`, between one that prepares and one that publishes.

    `prepare` fails if an input is missing. So the kubelet never makes an empty directory in its place.
    """
    imports = [CONVERTERS_MOUNT] if _copies_converters(context, work) else []
    converters = [CONVERTERS_MOUNT] if imports or _checks_engine(work) else []
    request = work.request.to_json()
    served = work.served if work.sidecar is not None else None
    own = [CLIENT_TEMPORARY, pod.SHARED_MEMORY] if served else [pod.TEMPORARY]
    reads = [*map(pod.input_mount, work.inputs)]
    # It makes the directory that the server writes engines to.
    makes = served is not None and bool(served.engine_cache)
    mounts = {
        PREPARE: [pod.repository_mount(read_only=not makes), INCOMING_MOUNT, OWN_TEMPORARY, *converters],
        RUN: [*reads, INCOMING_MOUNT, *own, *work.mounts, *map(_read_only, imports)],
        work.stage: [pod.repository_mount(read_only=False), _read_only(INCOMING_MOUNT), OWN_TEMPORARY],
    }
    check = [_check_request(work, served).to_json()] if served else []
    init = [_container(context, work, PREPARE, [PREPARE, work.stage, request, *check], mounts[PREPARE])]
    if _checks_engine(work):
        init.append(_tensorrt_check(context, work))
    if work.sidecar is not None:
        init.append(work.sidecar)
    init.append(_container(context, work, RUN, [RUN, work.stage], mounts[RUN]))
    publish = _container(context, work, work.stage, ["publish", work.stage, request], mounts[work.stage])
    volumes = [
        {"name": "incoming", "emptyDir": {"sizeLimit": claim_size(context)}},
        {"name": "own-tmp", "emptyDir": {"sizeLimit": pod.JOB_TEMPORARY}},
        *([_converters_volume()] if converters else []),
        *([_client_volume(), pod.shared_memory_volume(context)] if served else []),
    ]
    return init, publish, volumes


def _container(
    context: Context, work: AnyWork, name: str, arguments: list[str], mounts: list[dict[str, Any]]
) -> dict[str, Any]:
    """A container that runs the converters."""
    runs = name == RUN
    return {
        "name": name,
        "image": _image(context, work, runs),
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "triton_converters"],
        "args": arguments,
        **({"workingDir": "/"} if _meets_strangers(work) else {}),
        "env": _environment(context, work, runs),
        "resources": pod.resources(context, context.job_pod, gpu=runs and work.gpu),
        "securityContext": pod.CONTAINER_SECURITY,
        # If the stage could not write its message, the last lines of its log replace it.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _image(context: Context, work: AnyWork, runs: bool) -> str:
    """The image; the framework's by its digest if that is known, also where ours is the same.

    pip runs in the image that will import the packages, but never in the user's. A client runs in the converter's.
    """
    framework = context.framework_image if work.user_code else context.own_framework_image
    name = framework if runs and _runs_framework(work) else work.image or context.images.converter
    return server_image.image_by_digest(name, work.image_id) if name == context.framework_image else name


def _read_only(mount: dict[str, Any]) -> dict[str, Any]:
    return mount | {"readOnly": True}


def _runs_framework(work: AnyWork) -> bool:
    """Whether the container `run` has the framework's image: for the user's code, or for packages that it imports."""
    return work.user_code or (work.boxed and work.downloads)


def _copies_converters(context: Context, work: AnyWork) -> bool:
    """Whether `run` has our converters from `prepare`: the user's image has none, an older release's has older ones."""
    return _runs_framework(work) and (bool(context.spec.conversion.image) or not work.user_code)


def _meets_strangers(work: AnyWork) -> bool:
    """Whether containers of ours, and no code of the user's, run beside a server or read what strangers send."""
    return not work.user_code and not work.shares_tmp and (work.boxed or work.sidecar is not None)


def _client_volume() -> dict[str, Any]:
    return {"name": CLIENT_TEMPORARY["name"], "emptyDir": {"sizeLimit": pod.JOB_TEMPORARY}}


def _converters_volume() -> dict[str, Any]:
    return {"name": "converters", "emptyDir": {"sizeLimit": pod.CONVERTERS_COPY}}


def _placement(context: Context, work: AnyWork) -> Pod:
    """The settings for the pod's node. A pod with a server runs where servers run, so that its figures hold there."""
    own, serving = context.job_pod, context.server_pod
    if work.sidecar is None:
        return context.follower_pod if pod.follows_servers(context) else own
    secrets = {each.name: each for each in [*serving.image_pull_secrets, *own.image_pull_secrets]}
    return serving.model_copy(update={"image_pull_secrets": list(secrets.values())})


def _copy(context: Context) -> dict[str, Any]:
    return {
        "name": "converters",
        "image": context.images.converter,
        "imagePullPolicy": "IfNotPresent",
        "command": ["cp", "-r", f"{CONVERTERS}/.", COPIED_CONVERTERS],
        "securityContext": pod.CONTAINER_SECURITY,
        "volumeMounts": [CONVERTERS_MOUNT],
    }


def _tensorrt_check(context: Context, work: AnyWork) -> dict[str, Any]:
    """The container that ends with EXIT_FINAL if the server's TensorRT is not the one that built the engine."""
    return {
        "name": TENSORRT_CHECK,
        "image": context.images.server,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "triton_converters.tensorrt_check"],
        "args": [work.stage, work.key, work.tensorrt_version],
        "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}, {"name": "PYTHONPATH", "value": COPIED_CONVERTERS}],
        "securityContext": pod.CONTAINER_SECURITY,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [_read_only(CONVERTERS_MOUNT)],
    }


def _check(context: Context, work: AnyWork, served: Attempt) -> dict[str, Any]:
    """The container that looks at the revision, and makes the directory that the server writes to.

    It sees the whole claim, so that the kubelet makes neither directory in its place.
    """
    return check_container(
        context, _check_request(work, served), [pod.repository_mount(read_only=not served.engine_cache)]
    )


def _check_request(work: AnyWork, served: Attempt) -> CheckRequest:
    content = served.conversion.content if served.conversion else ""
    return CheckRequest(work.stage, work.key, served.key, served.engine_cache, content)


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
        "TENSORRT_VERSION": work.tensorrt_version,
    }
    if work.downloads and runs is work.boxed:
        settings = context.settings
        variables |= {
            "HTTPS_PROXY": settings.sources_proxy,
            "NO_PROXY": ",".join(settings.sources_no_proxy),
            "SOURCE_CA_BUNDLE": settings.sources_ca_bundle,
            "HF_ENDPOINT": settings.sources_hub,
            "PIP_INDEX_URL": settings.sources_package_index,
            "SOURCE_SERVICE_ACCOUNT": work.service_account,
        }
    if cpus := amount(context.job_pod.resources.limits.get("cpu")):
        # torch would start a thread for each of the node's cores and be throttled.
        variables["OMP_NUM_THREADS"] = str(ceil(cpus))
    if runs and _copies_converters(context, work):
        variables["PYTHONPATH"] = COPIED_CONVERTERS
    if _meets_strangers(work):
        variables |= SAFE_PATH
    given = pod.variables(context.job_pod) if runs and work.user_code else []
    return [*({"name": name, "value": value} for name, value in variables.items() if value), *given]
