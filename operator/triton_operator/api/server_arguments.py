"""The arguments of tritonserver that a spec may set, and the CEL rule that refuses all others.

This is an allow-list, because an argument may name a file, a port, an address or a library, open an interface, or take
back what the operator sets. Each here only tunes or tells, and exists in every server that the operator supports. One
of a later server is added once all of them know it: a server that does not know an argument ends at once.

Sources: `tritonserver --help` of 2.51, and src/command_line_parser.cc of triton-inference-server/server.
"""

import re
from collections.abc import Mapping
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field, StringConstraints

from triton_converters.contract.backend_parameters import VALUE
from triton_operator.api.backend_settings import OPTIONS, option
from triton_operator.api.schema import rules


class Values(NamedTuple):
    """What an argument may be set to."""

    pattern: str
    """A regular expression without `^` and `$`."""
    words: str


_OPTIONS = [option(backend, name) for backend, names in OPTIONS.items() for name in names]
_COUNT = Values("[1-9][0-9]{0,2}", "1 to 999")
VERBOSITY, TRACES = "--log-verbose", "--trace-config"
ARGUMENTS: Mapping[str, Values] = {
    "--http-thread-count": _COUNT,
    "--grpc-infer-allocation-pool-size": Values("[0-9]{1,4}", "0 to 9999"),
    "--grpc-infer-response-compression-level": Values("none|low|medium|high", "none, low, medium or high"),
    "--buffer-manager-thread-count": Values("[0-9]{1,3}", "0 to 999"),
    "--model-load-thread-count": _COUNT,
    "--metrics-interval-ms": Values("[1-9][0-9]{2,4}", "100 to 99999"),
    "--rate-limit": Values("off|execution_count", "off or execution_count"),
    "--pinned-memory-pool-byte-size": Values("[0-9]{1,13}", "BYTES"),
    "--cuda-memory-pool-byte-size": Values("[0-9]{1,2}:[0-9]{1,13}", "GPU:BYTES"),
    "--backend-config": Values(f"({'|'.join(_OPTIONS)})={VALUE.strip('^$')}", f"NAME=VALUE of {', '.join(_OPTIONS)}"),
    VERBOSITY: Values("[0-4]", "0 to 4"),
    TRACES: Values("rate=[1-9][0-9]{0,6}", "rate=1 to rate=9999999"),
}
"""The arguments, and their values."""
PATTERN = f"({'|'.join(f'{name}=({values.pattern})' for name, values in ARGUMENTS.items())})"
ONLY_ALLOWED = (
    "must be an allowed argument of tritonserver: remove or correct it. Allowed are"
    f" {'; '.join(f'{name}={values.words}' for name, values in ARGUMENTS.items())}"
)
"""The words of a refusal of any other argument."""


def is_allowed(argument: str) -> bool:
    """Whether a spec may have the argument."""
    return re.fullmatch(PATTERN, argument) is not None


def tells(argument: str) -> bool:
    """Whether an argument only has the server tell of its requests, which costs time and changes no answer."""
    return argument.partition("=")[0] in (VERBOSITY, TRACES)


def _checked(argument: str) -> str:
    """Refuse what the CRD's rule refuses where there is no API server."""
    if not is_allowed(argument):
        raise ValueError(ONLY_ALLOWED)
    return argument


ServerArgument = Annotated[
    str,
    StringConstraints(max_length=256),
    AfterValidator(_checked),
    Field(json_schema_extra=rules((f"self.matches('^{PATTERN}$')", ONLY_ALLOWED))),
]
"""An argument of tritonserver, as its command line has it."""
