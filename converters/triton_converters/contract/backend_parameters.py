"""The parameters of Triton's backends that a config.pbtxt may have, from a spec or from the user's own file.

It is an allow-list, because a parameter may name a file or directory, and what a server loads from there is code: a
library of batching (`TRITON_BATCH_STRATEGY_PATH`), or a Python environment (`EXECUTION_ENV_PATH`). A parameter of a
later Triton is added here once it is known to do none of that. Standard library only.

Sources: the READMEs of onnxruntime_backend, pytorch_backend, tensorflow_backend and tensorrt_backend, and
hps_backend/src/model_state.cpp of hugectr_backend.
"""

from collections.abc import Mapping

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "onnxruntime": (
        "intra_op_thread_count",
        "inter_op_thread_count",
        "execution_mode",
        "enable_mem_arena",
        "enable_mem_pattern",
        "memory.enable_memory_arena_shrinkage",
        "session.use_device_allocator_for_initializers",
        "cudnn_conv_algo_search",
        "gpu_mem_limit",
        "arena_extend_strategy",
        "do_copy_in_default_stream",
    ),
    "pytorch": (
        "INTRA_OP_THREAD_COUNT",
        "INTER_OP_THREAD_COUNT",
        "NUM_THREADS",
        "NUM_INTEROP_THREADS",
        "DISABLE_OPTIMIZED_EXECUTION",
        "INFERENCE_MODE",
        "DISABLE_CUDNN",
        "ENABLE_WEIGHT_SHARING",
        "ENABLE_CACHE_CLEANING",
        "ENABLE_JIT_EXECUTOR",
        "ENABLE_JIT_PROFILING",
        "ENABLE_TENSOR_FUSER",
    ),
    "tensorflow": (
        "TF_NUM_INTRA_THREADS",
        "TF_NUM_INTER_THREADS",
        "TF_USE_PER_SESSION_THREADS",
        "MAX_SESSION_SHARE_COUNT",
    ),
    "tensorrt": ("execution_context_allocation_strategy",),
    "hps": ("refresh_interval", "refresh_delay", "freeze_sparse"),
    "python": ("intra_op_thread_count",),
}
"""Keys of models[].config.parameters, by the backend that reads them."""
THREADS: Mapping[str, tuple[str, ...]] = {
    "onnxruntime": ("intra_op_thread_count",),
    "pytorch": ("INTRA_OP_THREAD_COUNT", "NUM_THREADS"),
    "tensorflow": ("TF_NUM_INTRA_THREADS",),
    "python": ("intra_op_thread_count",),
}
"""Keys of the parameters that say how many threads an instance computes with, by backend; the first is written."""


def threads(cpus: int, instances: int) -> str:
    """Return the value of such a parameter: the CPUs, divided among the instances, and at least one thread each."""
    return str(max(1, cpus // instances))


VALUE = r"^[A-Za-z0-9_.:;,+-]*$"
"""The pattern of a value: a number, flag or word, but never a path or a program."""
LONGEST_VALUE = 128
MOST = 32
"""Most parameters of one model."""
