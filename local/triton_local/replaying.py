"""An image from a registry, served on this machine: whether it still answers as its signed report says."""

from dataclasses import replace

from triton_converters.contract import layout
from triton_converters.contract.document import DocumentError
from triton_converters.contract.predicate import Predicate
from triton_converters.contract.replaying import IMAGE, PREDICATE, ReplayRequest, ReplayResult
from triton_local import alone
from triton_local.publishing import Place
from triton_operator.names import Body
from triton_operator.resources.private_server import LOOPBACK, PRIVATE
from triton_operator.resources.server import COMPLETE, FIXED_MODELS, GRPC_PORT, HTTP_PORT
from triton_operator.settings import Settings

KEY = "cosign.pub"
"""The file of the Secret with the public key."""
WORK, FETCH, ASK = "work", "fetch", "ask"
SERVED = "/models"
"""Where the server finds the image's models."""
DEADLINE_SECONDS = 3600
"""How long the server and the samples may take: a server that never gets ready would be waited for."""


def replay(request: ReplayRequest, key: bytes, place: Place) -> tuple[ReplayResult, Predicate | None]:
    """Return what came of it, with the report that the key signed; None: it signed none that can be replayed.

    ``key``: the public key in PEM. The folder of ``place`` is an empty one. Raises PodError, OSError.
    """
    work = place.folder / WORK
    work.mkdir(parents=True)
    # Containers of a pod may have other users.
    work.chmod(0o777)
    claims, where = {WORK: work}, (place.folder, place.runtime, place.image)
    with alone.secrets(request.host, {KEY: key}) as secret:
        pod = _fetching(request, place.settings)
        said = alone.run(*where, alone.storage(claims, secret), pod, downloads=True)
    fetched = _result(said)
    if not fetched.repeats:
        return fetched, None
    predicate = Predicate.from_json((work / PREDICATE).read_text(encoding="utf-8"))
    asked = replace(request, grpc=f"{LOOPBACK}:{GRPC_PORT}", http=f"{LOOPBACK}:{HTTP_PORT}")
    said = alone.run(*where, alone.storage(claims), _asking(asked, place.settings), downloads=False)
    return replace(_result(said), reports=fetched.reports), predicate


def _result(said: str) -> ReplayResult:
    try:
        return ReplayResult.from_json(said)
    except DocumentError as error:
        raise alone.PodError(f"the pod left something else than an answer: {error}") from error


def _fetching(request: ReplayRequest, settings: Settings) -> Body:
    """The pod that fetches what the key signed; it has the network, and runs nothing of it."""
    mounts = {
        WORK: str(layout.INCOMING_MOUNT),
        alone.REGISTRY: f"{layout.CREDENTIALS_MOUNT}!",
        alone.SIGNING: f"{layout.SIGNING_MOUNT}!",
        "tmp": "/tmp",  # noqa: S108 - the pod's own
    }
    main = alone.container(FETCH, settings.converter_image, _command(request), mounts, env=alone.variables(settings))
    secrets = ({"name": each, "secret": {"secretName": each}} for each in (alone.REGISTRY, alone.SIGNING))
    return _pod([], main, [_work(read_only=False), *secrets, {"name": "tmp", "emptyDir": {}}])


def _asking(request: ReplayRequest, settings: Settings) -> Body:
    """The pod with a server of the image and the program that asks it; it has no network."""
    flags = [*PRIVATE, FIXED_MODELS, COMPLETE, "--exit-on-error=true", "--strict-readiness=true", "--log-info=false"]
    shared = {"dshm": "/dev/shm"}  # noqa: S108 - the pod's own
    mounts = {WORK: f"{SERVED}!", **shared, "tmp": "/tmp"}  # noqa: S108 - the pod's own
    server = alone.container("tritonserver", settings.server_image, [], mounts, restartPolicy="Always")
    server["volumeMounts"][0]["subPath"] = f"{IMAGE}/models"
    server["args"] = ["tritonserver", f"--model-repository={SERVED}", *flags]
    asks = {WORK: f"{layout.INCOMING_MOUNT}!", **shared, "own-tmp": "/tmp"}  # noqa: S108 - the pod's own
    main = alone.container(ASK, settings.converter_image, _command(request), asks)
    empty: list[Body] = [{"name": each, "emptyDir": {}} for each in ("tmp", "own-tmp")]
    memory = {"name": "dshm", "emptyDir": {"medium": "Memory"}}
    return _pod([server], main, [_work(read_only=True), *empty, memory])


def _command(request: ReplayRequest) -> list[str]:
    return ["python3", "-m", "triton_converters.replay", request.to_json()]


def _work(*, read_only: bool) -> Body:
    return {"name": WORK, "persistentVolumeClaim": {"claimName": WORK, "readOnly": read_only}}


def _pod(init: list[Body], main: Body, volumes: list[Body]) -> Body:
    return {
        "securityContext": {"runAsUser": 1000},
        "activeDeadlineSeconds": DEADLINE_SECONDS,
        "terminationGracePeriodSeconds": 5,
        "initContainers": init,
        "containers": [main],
        "volumes": volumes,
    }
