"""What passed on this machine, as a signed image: the stage `publish` in a pod by itself."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from triton_converters.contract import layout
from triton_converters.contract.document import DocumentError
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.publishing import KEY, PASSWORD, PublishRequest, PublishResult, target
from triton_local import alone
from triton_local.runtime import Image, Runtime
from triton_operator import names
from triton_operator.jobs.attestation import Passed, predicate
from triton_operator.settings import Settings

STAGE, CLAIM = "publish", "claim"


@dataclass(frozen=True)
class Signing:
    """The key that signs; its words appear nowhere."""

    key: bytes
    password: bytes

    def __repr__(self) -> str:
        """Tell nothing of it."""
        return "Signing()"


@dataclass(frozen=True)
class Publishing:
    """What the user asks to be published."""

    uri: str
    signing: Signing | None
    """None: it is not signed."""
    samples: bool

    def request(self, passed: Passed) -> PublishRequest:
        """Return what the stage is asked. Raises NotPassedError."""
        told, signs = predicate(passed), self.signing is not None
        revision = passed.candidate.revision
        key = names.digest([STAGE, self.uri, revision, told, signs, self.samples], 16)
        return PublishRequest(key, self.uri, revision, told, signs, self.samples)


@dataclass(frozen=True)
class Place:
    """Where a pod runs."""

    folder: Path
    """Keeps its log."""
    runtime: Runtime
    image: Callable[[str], Image]
    settings: Settings


def publish(request: PublishRequest, claim: Path, signing: Signing | None, place: Place) -> PublishResult:
    """Push a revision of a claim, whose folder is named, and sign it. Raises PodError, OSError."""
    keys = {KEY: signing.key, PASSWORD: signing.password} if signing is not None else {}
    mounts = {
        CLAIM: f"{layout.MOUNT}!",
        alone.REGISTRY: f"{layout.CREDENTIALS_MOUNT}!",
        alone.SIGNING: f"{layout.SIGNING_MOUNT}!",
        "tmp": "/tmp",  # noqa: S108 - the pod's own
    }
    command = ["python3", "-m", "triton_converters", STAGE, request.to_json()]
    main = alone.container(STAGE, place.settings.converter_image, command, mounts, env=alone.variables(place.settings))
    pod = {
        "securityContext": {"runAsUser": 1000},
        "containers": [main],
        "volumes": [
            {"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM, "readOnly": True}},
            *({"name": each, "secret": {"secretName": each}} for each in (alone.REGISTRY, alone.SIGNING)),
            {"name": "tmp", "emptyDir": {}},
        ],
    }
    with alone.secrets(target(request.uri).host, keys) as secret:
        volumes = alone.storage({CLAIM: claim}, secret)
        said = alone.run(place.folder, place.runtime, place.image, volumes, pod, downloads=True)
    try:
        outcome = Outcome.from_json(said)
    except DocumentError as error:
        raise alone.PodError(f"the pod left something else than an answer: {error}") from error
    if not isinstance(outcome.result, PublishResult):
        raise alone.PodError(f"{outcome.reason}: {outcome.message}")
    return outcome.result
