"""Stage ``look``: ask the server of a source which version it has now. See docs/source.md."""

from triton_converters.contract.look import LookRequest, LookResult
from triton_converters.fetch import scheme


def run(request: LookRequest) -> LookResult:
    """Return the version that the server has now. Raises StageError, for what a download may fail with too."""
    module, remote = scheme.of(request.source, scheme.uri_of(request.source))
    result: LookResult = module.look(remote)
    print(f"{request.source.uri}: {result.label}", flush=True)
    return result
