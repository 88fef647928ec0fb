"""What is taken of a config.pbtxt that the user wrote for a server of their own. Pure.

Whatever is not known to be harmless and measurable is refused, with a reason: a field may name a library, another
backend or an environment, and a server would run it. Triton's own message parses the text, which is hostile until then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from triton_converters.contract import overrides
from triton_converters.contract.formats import PYTORCH
from triton_converters.contract.repository_config import (
    BACKENDS,
    LEFT_OUT,
    LONGEST,
    OTHER_BACKENDS,
    REFUSED,
    TAKEN,
    UNBATCHED,
    paths,
)
from triton_converters.contract.results import RepositoryModel
from triton_converters.contract.text import printable
from triton_converters.model_config import given_values

LONGEST_OVERRIDES = 4096
"""The limit of the spec's field."""
NAMED = 8
"""The most fields that one message names."""


class RefusedError(ValueError):
    """A config.pbtxt that is not taken; the text says why, and what to do."""


@dataclass(frozen=True)
class UserConfig:
    """A config.pbtxt whose fields may all be taken."""

    backend: str
    """A key of PARAMETERS; empty: the model's file tells."""
    file: str
    """Name of the model's file in a version's folder; empty: the backend's default."""
    versions: tuple[int, ...]
    """The versions that may be served; empty: all."""
    overrides: str
    """The fields that ``contract.overrides`` allows, as text."""
    message: Any

    def repository_model(self, file: str, backend: str) -> RepositoryModel:
        """Return what is taken for the model's file, with its backend. Raises RefusedError."""
        message = self.message
        batching = self.message.dynamic_batching
        batched = bool(message.input) or message.max_batch_size != 0
        faults = [] if self.backend else list(given_values.of_parameters(message.parameters, backend))
        if not message.input and backend == PYTORCH:
            faults.append("a TorchScript file does not name its tensors: list input and output")
        _raise(faults)
        return RepositoryModel(
            file=file,
            max_batch_size=message.max_batch_size if batched else None,
            inputs=tuple(map(given_values.tensor, message.input)),
            outputs=tuple(map(given_values.tensor, message.output)),
            instances=(message.instance_group[0].count or None) if message.instance_group else None,
            dynamic_batching=message.HasField("dynamic_batching") and not given_values.batches_nothing(message),
            preferred_batch_sizes=tuple(batching.preferred_batch_size),
            max_queue_delay_microseconds=batching.max_queue_delay_microseconds,
            cuda_graphs=message.optimization.cuda.graphs,
            parameters=given_values.parameters(message.parameters, backend),
            overrides=self.overrides,
            left_out=tuple(_left_out(message, backend)),
        )


def read(text: bytes) -> UserConfig:
    """Return the configuration. Raises RefusedError: no config.pbtxt, or one with anything that is not taken."""
    if len(text) > LONGEST:
        raise RefusedError(f"it is longer than {LONGEST} bytes")
    message = model_config_pb2.ModelConfig()
    try:
        text_format.Parse(text.decode(), message)
    except (text_format.ParseError, ValueError, RecursionError) as error:
        words = printable(" ".join(str(error).split()))[:300]
        raise RefusedError(f"it is no config.pbtxt that this version knows: {words}") from error
    backend = next((BACKENDS.get(each, "") for each in (message.backend, message.platform) if each), "")
    wrong = (path for path in paths(message) if _is_wrong(path))
    allowed, fault = _overrides(message)
    fields = [*_backend_faults(message), *dict.fromkeys(map(_fault, wrong))]
    _raise([*fields, *given_values.faults(message, backend), *([fault] if fault else [])])
    return UserConfig(
        backend, message.default_model_filename, tuple(message.version_policy.specific.versions), allowed, message
    )


def _raise(faults: Sequence[str]) -> None:
    """Raise RefusedError with all faults, if there are any."""
    if faults:
        more = f"; and {len(faults) - NAMED} more" if len(faults) > NAMED else ""
        raise RefusedError("; ".join(faults[:NAMED]) + more)


def _is_wrong(path: str) -> bool:
    return path not in TAKEN and not _notice(path) and not overrides.is_allowed(path)


def _notice(path: str) -> str:
    """Return the field of LEFT_OUT that a path belongs to; empty: none."""
    return next((each for each in LEFT_OUT if f"{path}.".startswith(f"{each}.")), "")


def _left_out(message: Any, backend: str) -> Iterator[str]:
    """Yield each field that is left out although it may matter to somebody, with the reason."""
    for field in dict.fromkeys(filter(None, map(_notice, paths(message)))):
        yield f"{field}: {LEFT_OUT[field]}"
    if given_values.batches_nothing(message):
        yield f"dynamic_batching: {UNBATCHED}"
    if names := given_values.unread(message.parameters, backend):
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"parameters {', '.join(names[:NAMED])}{more}: the backend does not read them"


def _fault(path: str) -> str:
    """Return why a field is refused, by the longest beginning of its path that is known."""
    known = max((each for each in REFUSED if f"{path}.".startswith(f"{each}.")), key=len, default="")
    return f"{known} is not supported: {REFUSED[known]}; remove it" if known else f"{path} is not supported: remove it"


def _backend_faults(message: Any) -> Iterator[str]:
    for field, name in (("backend", message.backend), ("platform", message.platform)):
        if name and name not in BACKENDS:
            instead = OTHER_BACKENDS.get(name, f"the operator serves {', '.join(dict.fromkeys(BACKENDS.values()))}")
            yield f"{field} {printable(name)[:60]!r} is not supported: {instead}"
    if len({BACKENDS.get(each, each) for each in (message.backend, message.platform) if each}) > 1:
        yield "backend and platform differ: remove one"


def _overrides(message: Any) -> tuple[str, str]:
    """Return the fields that ``contract.overrides`` allows, as text, and what is wrong with them; empty: nothing."""
    kept = model_config_pb2.ModelConfig()
    kept.CopyFrom(message)
    overrides.prune(kept)
    text = str(text_format.MessageToString(kept))
    if len(text) > LONGEST_OVERRIDES:
        return "", f"its queue policies and resources are longer than {LONGEST_OVERRIDES} characters as text"
    try:
        overrides.checked(text)
    except ValueError as error:
        return "", str(error)
    return text, ""
