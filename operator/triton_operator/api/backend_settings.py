"""The settings of Triton's backends that a spec may have, and the CEL rule that refuses all other parameters.

These are allow-lists, because a setting may name a file or directory, and what a server loads from there is code: a
library of backends (`backend-directory`), of batching (`TRITON_BATCH_STRATEGY_PATH`) or of plugins, a Python
environment (`EXECUTION_ENV_PATH`), or a runtime inside an engine (`version-compatible`). A setting of a later Triton is
added here once it is known to do none of that.

Sources: the READMEs of onnxruntime_backend, pytorch_backend, tensorflow_backend and tensorrt_backend, and
hps_backend/src/model_state.cpp of hugectr_backend.
"""

from collections.abc import Iterable, Mapping

from triton_converters.contract.backend_parameters import PARAMETERS
from triton_converters.contract.formats import FORMATS, SOURCE_FORMATS
from triton_operator.api.schema import cel_list

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "": ("default-max-batch-size",),
    "onnxruntime": (
        "default-max-batch-size",
        "enable-global-threadpool",
        "intra_op_thread_count",
        "inter_op_thread_count",
    ),
    "tensorflow": ("default-max-batch-size", "allow-soft-placement", "gpu-memory-fraction"),
    "tensorrt": ("coalesce-request-input", "execution-policy"),
}
"""Names in arguments `--backend-config`, by backend; an empty backend stands for all backends."""

_ALLOWED_PARAMETERS = "; ".join(f"{backend}: {', '.join(keys)}" for backend, keys in PARAMETERS.items())


def option(backend: str, name: str) -> str:
    """Return a setting as tritonserver's command line has it, without a value; it refuses an empty backend's name."""
    return f"{backend},{name}" if backend else name


def parameter_rule() -> tuple[str, str]:
    """Return the rule of a model: each parameter is known to a backend that serves the model."""
    known = " || ".join(f"(k in {cel_list(keys)} && {_served_by(backend)})" for backend, keys in PARAMETERS.items())
    return (
        f"!has(self.config) || !has(self.config.parameters) || self.config.parameters.all(k, {known})",
        "config.parameters must be parameters of the backends that serve the model's candidates: remove or correct the"
        f" others. Allowed are, by backend, {_ALLOWED_PARAMETERS}",
    )


def refused_parameters(parameters: Iterable[str], formats: Iterable[str]) -> list[str]:
    """Return the parameters that are allowed for no backend of these formats."""
    allowed = {key for form in formats for key in PARAMETERS[FORMATS[form].backend]}
    return [key for key in parameters if key not in allowed]


def _served_by(backend: str) -> str:
    """Return the CEL expression on a model: whether the backend serves one of its candidates, or may do so."""
    formats = [name for name, form in FORMATS.items() if form.backend == backend]
    sources = [name for name, source in SOURCE_FORMATS.items() if any(each in formats for each in source.converters)]
    listed = "has(self.candidates) && self.candidates.size() > 0"
    of_candidate = f"self.candidates.exists(c, c.format in {cel_list(formats)})"
    return f"({listed} ? {of_candidate} : !has(self.format) || self.format in {cel_list(sources)})"
