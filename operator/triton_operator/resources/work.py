"""What a Job does, as the stages ask for it, and the shape of the pod that does it.

| Shape | Stages | Containers of ours |
|---|---|---|
| `Plain`, `Download` | look, source, publish, snapshot, clean | one, which does the work and publishes its result |
| `UserCode` | reference, convert, metrics, comparison | `prepare`, `run`, the stage |
| `Pip` | packages | the same |
| `Client` | profile, search, measure | the same, and a private server for the first two |
| `Replay` | any whose answer the kubelet cut | one, which reads the answer from the claim |
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from triton_converters.contract.document import Document
from triton_converters.contract.stages import STAGES
from triton_operator.candidates.attempt import Attempt
from triton_operator.names import Body


class Request(Protocol):
    """What a Job is asked."""

    @property
    def key(self) -> str:
        """The key of the Job's result."""

    def to_json(self) -> str:
        """Return it as the Job's argument."""


RequestT = TypeVar("RequestT", bound=Request, covariant=True)
ResultT = TypeVar("ResultT", bound=Document, covariant=True)


@dataclass(frozen=True)
class Plain:
    """One container of ours, which meets nothing that strangers wrote as a program."""

    volumes: tuple[Body, ...] = ()
    mounts: tuple[Body, ...] = ()
    image: str = ""
    """The container's image, if it is not the converter's that the object is pinned to."""


@dataclass(frozen=True)
class Download:
    """One container of ours that downloads, looks or pushes, and so may reach the network as the installation says."""

    volumes: tuple[Body, ...] = ()
    """The volumes with the Secrets that it needs, if it needs any."""
    mounts: tuple[Body, ...] = ()
    service_account: str = ""
    """The ServiceAccount whose identity a cloud gives to the pod; empty: the namespace's default, which has none."""
    image: str = ""
    """`Plain.image`."""


@dataclass(frozen=True)
class UserCode:
    """Three containers, of which `run` has the user's code: in the framework's image, and with the user's variables."""

    inputs: tuple[Path, ...]
    """The directories of the claim that `run` reads. It sees nothing else of the claim."""
    volumes: tuple[Body, ...]
    mounts: tuple[Body, ...]
    gpu: bool = True
    """Whether the code runs the model, and so has the GPU."""
    image_id: str = ""
    """ID of the image in which the reference's framework ran. The user's code runs in the same one, though its tag may
    have moved. Empty: the image that the tag stands for."""


@dataclass(frozen=True)
class Pip:
    """Three containers, of which `run` has pip: in the image that will import the packages, but never in the user's."""

    importing_image: str
    """The image of `run`."""

    volumes: tuple[Body, ...]
    """The volume with the credentials of an index, if there are any."""
    mounts: tuple[Body, ...]
    image: str
    """The image of the other two."""
    served: bool = False
    """Whether the importing image is the server's, whose pull secrets the pod then has too."""


@dataclass(frozen=True)
class Client:
    """Three containers, of which `run` asks a server."""

    attempt: Attempt
    """The candidate whose revision the server serves."""
    inputs: tuple[Path, ...]
    """The directories of the claim that `run` reads. It sees nothing else of the claim."""
    server: Body | None
    """The container of a private server, which has the GPU; None: the client asks the one behind the preview."""


@dataclass(frozen=True)
class Replay:
    """One container that answers again what is on the claim: the kubelet cut the answer in a pod of many containers."""

    image: str
    """The image of the work's own Job, if it is not the converter's that the object is pinned to."""
    boxed: bool
    """Whether a container of its own published the answer, and so the same program reads it."""


Shape = Plain | Download | UserCode | Pip | Client | Replay
"""What a Job's pod may look like, each with what it needs besides the claim."""


@dataclass(frozen=True)
class Work(Generic[RequestT, ResultT]):
    """What a Job does: its stage, its request and the shape of its pod."""

    stage: str
    request: RequestT
    deadline_seconds: int
    """How long a pod of it may take, from when a node takes the pod."""
    shape: Shape
    candidate: str = ""
    replaces: tuple[str, ...] = ()
    """Keys of the results that this work measures again; they are kept with its own."""

    @property
    def key(self) -> str:
        """The key of the Job's result."""
        return self.request.key

    @property
    def result(self) -> type[Document]:
        """The type of the Job's answer; ``ResultT`` is the same for the type checker."""
        return STAGES[self.stage].result

    @property
    def boxed(self) -> bool:
        """Whether what the Job runs is kept apart from the claim, and from what publishes, in a container `run`."""
        return isinstance(self.shape, UserCode | Pip | Client)

    @property
    def downloads(self) -> bool:
        """Whether the Job talks to a server of files or packages, as far as the installation lets it."""
        return isinstance(self.shape, Download | Pip)

    @property
    def has_claim(self) -> bool:
        """Whether the Job's pod has the repository claim."""
        return STAGES[self.stage].has_claim

    @property
    def writes_claim(self) -> bool:
        """Whether that claim is mounted so that the Job can write to it."""
        return not STAGES[self.stage].reads_claim

    @property
    def server(self) -> Body | None:
        """The container of the pod's private server; None: it has none."""
        return self.shape.server if isinstance(self.shape, Client) else None


AnyWork = Work[Request, Document]
"""The work of any stage."""


def reader(work: AnyWork) -> AnyWork:
    """The work of a Job that answers once more what the work's own Job has published, from one container."""
    image = work.shape.image if isinstance(work.shape, Plain | Download | Pip) else ""
    return Work(work.stage, work.request, work.deadline_seconds, Replay(image, work.boxed), work.candidate)
