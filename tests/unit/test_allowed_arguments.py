"""Arguments of tritonserver in a spec: the table, and what is refused where there is no API server."""

import pytest

from triton_operator.api.backend_settings import OPTIONS
from triton_operator.api.schema import cel_list
from triton_operator.api.server_arguments import ARGUMENTS, ONLY_ALLOWED, PATTERN, is_allowed

SET_BY_US = ("model-", "log-", "trace-", "http-address", "grpc-max-connection-age", "exit-", "strict-", "backend-")
"""How flags begin that the operator sets; those in the table that begin so are safe in what they may say."""
TAKEN = {
    "--http-thread-count": ("1", "999"),
    "--grpc-infer-allocation-pool-size": ("0", "9999"),
    "--grpc-infer-response-compression-level": ("none", "high"),
    "--buffer-manager-thread-count": ("0", "999"),
    "--model-load-thread-count": ("1", "999"),
    "--metrics-interval-ms": ("100", "99999"),
    "--rate-limit": ("off", "execution_count"),
    "--pinned-memory-pool-byte-size": ("0", "1099511627776"),
    "--cuda-memory-pool-byte-size": ("0:0", "63:1099511627776"),
    "--backend-config": ("default-max-batch-size=4", "tensorflow,gpu-memory-fraction=0.5"),
    "--log-verbose": ("0", "4"),
    "--trace-config": ("rate=1", "rate=1000000"),
}
"""The least and the most that each argument may say."""


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_is_taken_within_its_bounds(name: str) -> None:
    assert all(is_allowed(f"{name}={value}") for value in TAKEN[name])
    words = ("", "-1", " 8", "8 ", "8\n", "0x8", "1e1", "\u0661", "9" * 20, "NONE", "rate=0", "plugins=a.so", "0:x")
    assert [value for value in words if is_allowed(f"{name}={value}")] == []


def test_every_setting_of_a_backend_is_taken() -> None:
    given = [f"{backend},{name}" if backend else name for backend, names in OPTIONS.items() for name in names]
    assert all(is_allowed(f"--backend-config={each}=1") for each in given)


@pytest.mark.parametrize(
    "argument", ["--log-file=/tmp/x", "http-thread-count=8", "--HTTP-thread-count=8", "--http-thread-count", "", "--"]
)
def test_another_argument_is_refused(argument: str) -> None:
    assert not is_allowed(argument)


def test_a_refusal_lists_what_is_allowed() -> None:
    assert all(f"{name}={values.words}" in ONLY_ALLOWED for name, values in ARGUMENTS.items())


def test_no_argument_takes_back_what_the_operator_sets() -> None:
    ours = {name for name in ARGUMENTS if name.startswith(tuple(f"--{each}" for each in SET_BY_US))}
    assert ours == {"--model-load-thread-count", "--log-verbose", "--trace-config", "--backend-config"}


def test_the_pattern_is_a_text_of_cel() -> None:
    assert cel_list([PATTERN]).count("'") == 2
    assert "\\" not in PATTERN
