"""How many threads each instance of a model computes with, if the spec says how much CPU its server has. Pure.

By default a runtime starts a thread for each core of the node, whatever the container's limit is, and for each instance
again: where nodes are large, most of them wait for the kernel to let the container run.
"""

from collections.abc import Mapping
from math import ceil

from triton_converters.contract.backend_parameters import THREADS, threads
from triton_operator.api.model import Model
from triton_operator.api.quantity import amount
from triton_operator.context import Context

OF_ALL_MODELS = tuple(
    f"--backend-config=onnxruntime,{name}=" for name in ("enable-global-threadpool", "intra_op_thread_count")
)
"""How arguments of the server begin by which the spec decides about the threads of all models."""


def shared_cpus(context: Context, model: Model, backend: str) -> int:
    """The whole CPUs that the model's instances share, rounded up; 0: threads are left to the spec or the backend.

    So they are on a GPU, where the CPU does little, and without a limit, which would be the node's to know.
    """
    limit = amount(context.server_pod.resources.limits.get("cpu"))
    is_of_model = any(key in model.config.parameters for key in THREADS.get(backend, ()))
    is_of_all = any(each.startswith(OF_ALL_MODELS) for each in context.spec.serving.arguments)
    is_bound = backend in THREADS and not (is_of_model or is_of_all)
    if limit is None or context.spec.gpu_count > 0 or not is_bound:
        return 0
    return ceil(limit)


def thread_parameters(context: Context, model: Model, backend: str, instances: int) -> Mapping[str, str]:
    """The parameters of config.pbtxt that bound the threads of each instance; empty: none does."""
    cpus = shared_cpus(context, model, backend)
    return {THREADS[backend][0]: threads(cpus, instances)} if cpus else {}
