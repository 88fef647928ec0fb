"""How the chosen revision serves."""

from typing import Annotated

from pydantic import Field, StringConstraints

from triton_operator.api.pod import Pod
from triton_operator.api.schema import ApiType, Image, Quantity


class BackendConfig(ApiType):
    """tritonserver's --backend-config=BACKEND,NAME=VALUE."""

    backend: Annotated[str, StringConstraints(max_length=63, pattern=r"^[a-z0-9_]*$")] = ""
    """Empty: for all backends."""
    name: Annotated[str, StringConstraints(max_length=63, pattern=r"^[a-zA-Z0-9_-]+$")]
    """Setting's name."""
    value: Annotated[str, StringConstraints(max_length=512, pattern=r"^[A-Za-z0-9_.:,=/-]*$")]
    """Setting's value."""


class CudaMemoryPool(ApiType):
    """tritonserver's --cuda-memory-pool-byte-size=DEVICE:BYTES."""

    device: Annotated[int, Field(ge=0, le=63)]
    """GPU number inside the pod."""
    bytes: Annotated[int, Field(ge=0, le=2**40)]
    """Pool size."""


class Serving(ApiType):
    """How the chosen revision serves."""

    replicas: Annotated[int, Field(ge=0, le=100)] = 1
    """Server pods. Default 1."""
    image: Image = ""
    """tritonserver's image. Default: the operator's settings, pinned in status."""
    backend_config: Annotated[list[BackendConfig], Field(max_length=16)] = Field(default_factory=list)
    """Backend settings."""
    pinned_memory_pool_bytes: Annotated[int, Field(ge=0, le=2**40)] = 268435456
    """Default 256 MiB, tritonserver's own."""
    cuda_memory_pool_bytes: Annotated[list[CudaMemoryPool], Field(max_length=64)] = Field(default_factory=list)
    """Default: tritonserver's own, 64 MiB a GPU."""
    shared_memory_size: Quantity = "1Gi"
    """Of /dev/shm. Default 1Gi: the container runtime's 64 MiB is too small for Python backends and shared memory."""
    progress_deadline_seconds: Annotated[int, Field(ge=10, le=86400)] = 600
    """How long a server may take to load its model. Default 600."""
    pod: Pod = Field(default_factory=Pod)
    """Of server pods, and of the server that a profile Job holds; that Job's pod runs where server pods do."""
