"""What one request is made of: the model, or the models of an ensemble."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from triton_converters.claim_store.replay import read_reference
from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.results import Signature

CACHES = "caches"
"""Folder of INCOMING_MOUNT with the timing caches that are there already, by TensorRT version."""
TIMING_CACHE = "timing.cache"


def parts(request: ConvertRequest) -> tuple[ConvertRequest, ...]:
    """Return the requests for the models of an ensemble, or the request itself."""
    return request.members or (request,)


def signature(request: ConvertRequest) -> Signature:
    """Return the reference's signature; raises StageError(InputMissing)."""
    return read_reference(request.reference).signature


def document(conversion_key: str) -> str:
    """Return the name, in INCOMING_MOUNT, of the Converted that belongs to a conversion."""
    return f"{conversion_key}.json"


def gpu(request: ConvertRequest) -> str:
    """Return the name of the folder of the request's GPU product."""
    return request.gpu_product or "any"


def timing_cache(conversion_key: str) -> str:
    """Return the name, in INCOMING_MOUNT, of the timing cache that a conversion filled."""
    return f"{conversion_key}.{TIMING_CACHE}"


def known_timing_cache(incoming: Path, version: str) -> Path:
    """Return the path of the timing cache of a TensorRT version that is there already, if there is one."""
    return incoming / CACHES / version / TIMING_CACHE


@contextmanager
def named(request: ConvertRequest) -> Iterator[None]:
    """Let a failure of one model of an ensemble name the model; otherwise the candidate's name says enough.

    Raises the StageError of the failure, with the name of the model before its message.
    """
    try:
        yield
    except StageError as error:
        if request.candidate:
            raise
        raise StageError(error.reason, f"model {request.model_name}: {error.message}", final=error.final) from error
