"""What a Job does, as the stages ask for it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from triton_converters.contract.document import Document
from triton_converters.contract.stages import STAGES
from triton_operator.candidates.attempt import Attempt


class Request(Protocol):
    """What a Job is asked."""

    @property
    def key(self) -> str:
        """The key of the Job's result."""

    def to_json(self) -> str:
        """Return it as the Job's argument."""


Asked = TypeVar("Asked", bound=Request, covariant=True)
Answered = TypeVar("Answered", bound=Document, covariant=True)


@dataclass(frozen=True)
class Work(Generic[Asked, Answered]):
    """What a Job does: its stage, its request and what its pod needs besides the claim."""

    stage: str
    request: Asked
    deadline_seconds: int
    """How long a pod of it may take, from when a node takes the pod."""
    candidate: str = ""
    volumes: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()
    boxed: bool = False
    """Whether what the Job runs is kept apart from the claim, and from what publishes."""
    gpu: bool = False
    """Whether the user's code runs the model, and so has the GPU."""
    image_id: str = ""
    """ID of the image in which the reference's framework ran. The user's code runs in the same one, though its tag may
    have moved. Empty: the image that the tag stands for."""
    image: str = ""
    """The image of the containers of ours, if it is not the converter's that the object is pinned to."""
    inputs: tuple[Path, ...] = ()
    """The directories of the claim that the container `run` reads. It sees nothing else of the claim."""
    sidecar: dict[str, Any] | None = field(default=None)
    """A private tritonserver, which then has the GPU."""
    served: Attempt | None = None
    """The candidate whose revision the private server serves."""
    downloads: bool = False
    """Whether the Job downloads a source or packages, and so may reach the network as the installation says."""
    service_account: str = ""
    """The ServiceAccount whose identity a cloud gives to the pod; empty: the namespace's default, which has none."""
    tensorrt_version: str = ""
    """TensorRT version of the engine, which is compared with the server's before it starts. Empty: no engine."""
    reads: bool = False
    """Whether the Job answers again what is on the claim: the kubelet cut the answer in a pod of many containers."""
    shares_tmp: bool = False
    """Whether the client has the server's /tmp, as in Jobs of operators that did not pin
    `status.images.commandsVersion`. Such a Job is never made any more; a failure may be recorded under its name."""
    replaces: tuple[str, ...] = ()
    """Keys of the results that this work measures again; they are kept with its own."""

    @property
    def key(self) -> str:
        """The key of the Job's result."""
        return self.request.key

    @property
    def result(self) -> type[Document]:
        """The type of the Job's answer; ``Answered`` is the same for the type checker."""
        return STAGES[self.stage].result

    @property
    def user_code(self) -> bool:
        """Whether the Job runs the user's code: in the framework's image, isolated, and with the user's variables."""
        return STAGES[self.stage].user_code and not self.reads


AnyWork = Work[Request, Document]
"""The work of any stage."""


def reader(work: AnyWork) -> AnyWork:
    """The work of a Job that answers once more what the work's own Job has published, from one container."""
    first = (work.stage, work.request, work.deadline_seconds, work.candidate)
    return Work(*first, boxed=work.boxed, image=work.image, reads=True)
