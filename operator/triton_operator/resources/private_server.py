"""The private server of a Job: it starts before the container that asks it, and ends with the pod."""

from typing import Any

from triton_operator.candidates import server_image
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.resources.server import FIXED_MODELS, server_container

LOOPBACK = "127.0.0.1"
"""An address, because `localhost` may resolve to ::1 first. A pod's loopback interface has it also without IPv4."""
PRIVATE = tuple(f"--{interface}-address={LOOPBACK}" for interface in ("http", "grpc", "metrics"))
"""The arguments of a private server. All are older than --grpc-max-connection-age, which the other servers get."""


def sidecar(context: Context, revision: Attempt) -> dict[str, Any]:
    """The serving container as a native sidecar: it starts before the client and ends with it.

    It listens on loopback, where the client alone reaches it and no probe of the kubelet: the client waits for it. Only
    a sidecar shares memory with its client, so only it gets the flag for that, if its release needs the flag. It
    never renews a connection: perf_analyzer ends if a request meets that.
    """
    container = server_container(context, revision)
    shared = server_image.wants_shared_memory_flag(context.images.server)
    flags = [*PRIVATE, *([server_image.CLIENT_SHARED_MEMORY_FLAG] if shared else [])]
    image = private_image(context, revision)
    return container | {"image": image, "args": [*container["args"], *flags], "restartPolicy": "Always"}


def private_image(context: Context, revision: Attempt) -> str:
    """The image of a private server: of an engine that was profiled, the very one of its profile.

    The tag may stand for another TensorRT since. Other Jobs have the tag, because a Job's name covers its template, and
    failures are recorded by that name.
    """
    image = context.images.server
    return server_image.image_by_digest(image, revision.image_id) if revision.tensorrt_version else image


def reloading_sidecar(context: Context, revision: Attempt) -> dict[str, Any]:
    """The sidecar of a search. Its server accepts new configurations of the model, which no other server does."""
    container = sidecar(context, revision)
    kept = [each for each in container["args"] if each != FIXED_MODELS]
    explicit = ["--model-control-mode=explicit", f"--load-model={context.spec.served_name}"]
    return container | {"args": [*kept, *explicit]}
