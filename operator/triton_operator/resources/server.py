"""The tritonserver container, which serves and is profiled, and the pods of a revision's Deployment."""

from collections.abc import Mapping, Sequence
from typing import Any

from triton_converters.contract import layout
from triton_converters.contract.formats import HPS
from triton_converters.contract.upkeep_requests import CheckRequest
from triton_operator import names
from triton_operator.api.pod import CommonPod
from triton_operator.api.server_arguments import VERBOSITY, tells
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.names import Body
from triton_operator.observed.pod import CHECK, SERVE, SERVER
from triton_operator.resources import fixed_paths, pod, volumes
from triton_operator.resources.deployment import Parts
from triton_operator.resources.pod import PodContainers
from triton_operator.resources.start_probe import start_probe

HTTP_PORT, GRPC_PORT, METRICS_PORT = 8000, 8001, 8002
PORTS = {"http": HTTP_PORT, "grpc": GRPC_PORT, "metrics": METRICS_PORT}
FIXED_MODELS = "--model-control-mode=none"
"""The server loads the repository once; no client can change what it serves."""
COMPLETE = "--disable-auto-complete-config"
"""Has the server take config.pbtxt as it is: the convert Job writes all of it. Else Triton's TensorRT and ONNX Runtime
backends add dynamic batching where it is left out, so a search measures with it what it takes to be without; the
TensorRT backend hides its own words about a plan that does not load; and a Python backend starts one process more for
each model, which takes 1.2 to 2.6 seconds."""
ON_IPV6 = ("--http-address=ipv6:::", "--metrics-address=ipv6:::")
"""Where a server listens in a cluster whose Services have IPv6 addresses; `ipv6:` is a prefix of libevhtp, which
answers HTTP in tritonserver. gRPC listens on both families by itself. Tried with server 2.51 alone."""
DRAIN_SECONDS = 10
"""The pause before SIGTERM, on which tritonserver unloads models at once though endpoints still point to it."""
RECONNECTING = "--grpc-max-connection-age=7000"
"""In milliseconds. The flag exists since server 2.42 (24.01). The age is less than the drain, even with the tenth that
gRPC may add and a second for endpoints. So a client reconnects to another pod before this one unloads its models.
Without the flag, a client that keeps its connection gets "unknown model" at every rollout; over HTTP, which has no such
flag, it may."""
EXIT_TIMEOUT_SECONDS = 30
"""How long tritonserver waits for requests in flight; its own default."""
RESTRICTED = "model-repository,shared-memory,logging,trace"
"""Interfaces that change the server or the node's memory. The key is the pod's uid, which clients do not know; both
flags exist since server 2.39 (23.10)."""
RESTRICTIONS = tuple(
    f"--{flag}={RESTRICTED}:triton-operator=$(POD_UID)" for flag in ("http-restricted-api", "grpc-restricted-protocol")
)
TRACES = "--trace-config=mode=opentelemetry"
"""Has the server send traces to a collector."""
CHECK_COMMAND = ["python3", "-m", "triton_converters.revision_check"]
UNWRITTEN = {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}
POD_UID = {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
GRACE_SECONDS = DRAIN_SECONDS + EXIT_TIMEOUT_SECONDS + 5
"""terminationGracePeriodSeconds: the drain, the server's own time to end, and five seconds for its processes to go."""


def server_arguments(
    context: Context, revision_key: str, first: Sequence[str] = (), *, reloads: bool = False
) -> list[str]:
    """The argv of tritonserver for one revision. What follows it wins.

    ``first``: arguments that the installation's may replace. ``reloads``: whether a client can change what is served.
    """
    serving = context.spec.serving
    return [
        SERVER,
        *first,
        f"--model-repository={layout.model_repository(revision_key)}",
        *([] if reloads else [FIXED_MODELS]),
        "--exit-on-error=true",
        "--strict-readiness=true",
        COMPLETE,
        # A termination message holds 2 KiB, and the tables of the info log would push the model's error out.
        "--log-info=false",
        f"--exit-timeout-secs={EXIT_TIMEOUT_SECONDS}",
        *_parameter_server(context, revision_key),
        # The installation's come last, and win.
        *(each for each in serving.arguments if not tells(each)),
        *context.images.server_arguments,
    ]


def serving_inputs(context: Context) -> list[Any]:
    """The parts of the spec and the images that shape a server's pod; with the revision's key they name the Deployment.

    The number of replicas, its autoscaling, the soak, the route, who is let in and the progress deadline are not among
    them: they change no pod.
    """
    return _inputs(context, {})


def private_inputs(context: Context) -> list[Any]:
    """The parts of the spec and the images that shape the server in a profile's pod: neither its traces nor its log."""
    asked = [each for each in context.spec.serving.arguments if not tells(each)]
    return _inputs(context, {"tracing": False, "arguments": asked})


def _inputs(context: Context, others: Mapping[str, Any]) -> list[Any]:
    """``others``: fields of spec.serving that shape nothing here either, as they are by default."""
    spec, images = context.spec, context.images
    fixed = {"pod": spec.server_pod, "mode": "Serve", "replicas": 1, "progress_deadline_seconds": 10}
    absent = dict.fromkeys(("autoscaling", "soak", "route", "network_policy"))
    serving = spec.serving.model_copy(update={**fixed, **absent, **others})
    user = CommonPod(run_as_user=spec.pod.run_as_user, fs_group=spec.pod.fs_group)
    rare = [*([] if user == CommonPod() else [user]), *_box_inputs(context)]
    return [serving, spec.gpu, images.server, images.server_arguments, context.claim_name, *rare]


def _box_inputs(context: Context) -> list[Any]:
    """What the installation demands of a server with a Python step; empty: no server of the object has one.

    Another class makes another server: it is measured again, and no pod of the earlier one is changed.
    """
    if not context.spec.has_steps:
        return []
    return [{"box": pod.isolation(context.settings), "annotated": not context.settings.allowed_annotations}]


def _check_container(context: Context, request: CheckRequest, mount: Body) -> Body:
    """The container of ours that runs before a server and looks at the revision."""
    return {
        "name": CHECK,
        "image": context.images.converter,
        "imagePullPolicy": "IfNotPresent",
        "command": CHECK_COMMAND,
        "args": [request.to_json()],
        "env": [UNWRITTEN],
        # A quota asks for them on every container; no more is reserved, because it ends before the server starts.
        "resources": pod.resources(context, context.server_pod, gpu=False),
        "securityContext": pod.CONTAINER_SECURITY,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount],
    }


def server_container(context: Context, revision: Attempt, image: str, arguments: list[str]) -> Body:
    """The container of tritonserver; a profile Job has it as its sidecar.

    Of the claim it sees its revision. If it compiles engines, it writes them to a volume of its pod.
    """
    steps = fixed_paths.mounts(context.spec, lambda model: layout.step_folder(revision.key, model.name, model.code))
    mounts = [_revision_mount(revision), volumes.SHARED_MEMORY, volumes.TEMPORARY, *steps]
    if cache := revision.engine_cache:
        mounts.append(volumes.engines_mount(cache))
    return {
        "name": SERVER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": [*fixed_paths.emptying(context.spec), *arguments],
        "env": pod.variables(context.server_pod),
        "resources": pod.resources(context, context.server_pod, gpu=True),
        "securityContext": pod.CONTAINER_SECURITY,
        # tritonserver writes no termination message, so the last lines of its log replace it, unless the probe does.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "startupProbe": start_probe(_ready_path(context), HTTP_PORT),
        "volumeMounts": mounts,
    }


def serving_container(context: Context, revision: Attempt, image: str) -> Body:
    """The server's container with what only a pod behind a Service needs: closed interfaces, probes, drain."""
    addresses = ON_IPV6 if context.settings.ipv6 else ()
    arguments = server_arguments(context, revision.key, [RECONNECTING, *addresses])
    container = server_container(context, revision, image, [*arguments, *RESTRICTIONS, *_observation(context)])
    return container | {
        "env": [*container["env"], POD_UID],
        "ports": [{"name": name, "containerPort": port} for name, port in PORTS.items()],
        "readinessProbe": {"httpGet": {"path": _ready_path(context), "port": "http"}, "periodSeconds": 2},
        "livenessProbe": {
            "httpGet": {"path": "/v2/health/live", "port": "http"},
            "periodSeconds": 10,
            "timeoutSeconds": 5,
        },
        "lifecycle": {"preStop": {"sleep": {"seconds": DRAIN_SECONDS}}},
    }


def server(context: Context, revision: Attempt, image: str) -> Parts:
    """The Deployment of a revision, by its parts.

    ``image``: the server's image, by the digest that was profiled if that is known.
    """
    name = names.server(context.name, revision.key, serving_inputs(context))
    labels = names.server_labels(name, revision.key)
    settings, has_steps = context.server_pod, context.spec.has_steps
    free = pod.user_code_settings(context, settings) if has_steps else settings
    others = {"terminationGracePeriodSeconds": GRACE_SECONDS}
    purpose = pod.PodPurpose("server", settings, gpu=True, runs_user_code=has_steps, others=others)
    template = {
        "metadata": pod.pod_metadata(context, free, "server", {"labels": labels}),
        "spec": pod.pod_spec(context, purpose, _containers(context, revision, image)),
    }
    return Parts(name, revision.key, template, context.spec.serving.replicas)


def _containers(context: Context, revision: Attempt, image: str) -> PodContainers:
    check = CheckRequest(
        SERVE,
        revision.key,
        revision.key,
        content=revision.conversion.content if revision.conversion else "",
        stat_digest=revision.profile.stat_digest if revision.profile else "",
        verification=context.settings.verification,
    )
    return PodContainers(
        [_check_container(context, check, _revision_mount(revision))],
        serving_container(context, revision, image),
        [
            volumes.repository(context, writes=False),
            volumes.shared_memory(context),
            volumes.empty_directory(volumes.TEMPORARY["name"], volumes.SERVER_TEMPORARY),
            *([volumes.ENGINES] if revision.engine_cache else []),
            *fixed_paths.scratch_volumes(context.spec, volumes.SERVER_TEMPORARY),
        ],
    )


def _revision_mount(revision: Attempt) -> Body:
    return volumes.input_mount(layout.revision_directory(revision.key))


def _parameter_server(context: Context, revision_key: str) -> list[str]:
    """The argument with the hps backend's configuration, which the convert Job wrote."""
    if not any(model.format == HPS for model in context.spec.models):
        return []
    return [f"--backend-config={HPS},ps={layout.parameter_server(revision_key)}"]


def _observation(context: Context) -> list[str]:
    """The arguments by which a server tells of its requests. A private server has none of them: they cost time."""
    serving = context.spec.serving
    asked = [each for each in serving.arguments if tells(each)]
    dated = ["--log-format=ISO8601"] if any(each.startswith(VERBOSITY) for each in asked) else []
    if not serving.tracing:
        return [*asked, *dated]
    collector = {
        "url": context.settings.tracing_endpoint,
        "resource=service.name": context.name,
        "resource=service.namespace": context.namespace,
    }
    return [
        *asked,
        *dated,
        TRACES,
        "--trace-config=level=TIMESTAMPS",
        *(f"--trace-config=opentelemetry,{name}={value}" for name, value in collector.items()),
    ]


def sends_traces(deployment: Mapping[str, Any]) -> bool:
    """Whether the server of a Deployment sends traces. ``deployment``: as the API server returns it."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return any(TRACES in each.get("args", ()) for each in containers)


def _ready_path(context: Context) -> str:
    """Path of the model's readiness; the server's readiness answers 200 for an empty repository too."""
    return f"/v2/models/{context.spec.served_name}/ready"
