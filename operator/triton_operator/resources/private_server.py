"""The private server of a Job: it starts before the container that asks it, and ends with the pod."""

from triton_operator.candidates import server_image
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.names import Body
from triton_operator.resources.server import server_arguments, server_container

LOOPBACK = "127.0.0.1"
"""An address, because `localhost` may resolve to ::1 first. A pod's loopback interface has it also without IPv4."""
PRIVATE = tuple(f"--{interface}-address={LOOPBACK}" for interface in ("http", "grpc", "metrics"))
"""The arguments of a private server. All are older than --grpc-max-connection-age, which the other servers get."""


def sidecar(context: Context, revision: Attempt, *, reloads: bool = False) -> Body:
    """The serving container as a native sidecar: it starts before the client and ends with it.

    It listens on loopback, where the client alone reaches it and no probe of the kubelet: the client waits for it. Only
    a sidecar shares memory with its client, so only it gets the flag for that, if its release needs the flag. It
    never renews a connection: perf_analyzer ends if a request meets that. ``reloads``: whether its server accepts new
    configurations of the model, as that of a search does and no other.
    """
    shared = server_image.wants_shared_memory_flag(context.images.server)
    flags = [*PRIVATE, *([server_image.CLIENT_SHARED_MEMORY_FLAG] if shared else [])]
    if reloads:
        flags += ["--model-control-mode=explicit", f"--load-model={context.spec.served_name}"]
    arguments = [*server_arguments(context, revision.key, reloads=reloads), *flags]
    return server_container(context, revision, private_image(context, revision), arguments) | {
        "restartPolicy": "Always"
    }


def private_image(context: Context, revision: Attempt) -> str:
    """The image of a private server: of an engine that was profiled, the very one of its profile.

    The tag may stand for another TensorRT since. Other Jobs have the tag, because a Job's name covers its template, and
    failures are recorded by that name.
    """
    image = context.images.server
    return server_image.image_by_digest(image, revision.image_id) if revision.tensorrt_version else image
