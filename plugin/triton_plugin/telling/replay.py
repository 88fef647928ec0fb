"""What a replay found, in words."""

from collections.abc import Iterator

from triton_converters.contract.predicate import Predicate
from triton_converters.contract.replaying import ReplayResult


def told(what: str, predicate: Predicate, result: ReplayResult) -> Iterator[str]:
    """Yield what the report says, whether the answers repeat it, and what is otherwise here."""
    gates, identity = predicate.gates, predicate.identity
    made_from = f"{identity.source.uri}{f' ({identity.source.version})' if identity.source.version else ''}"
    yield f"{what} is candidate {predicate.revision.candidate} of {identity.namespace}/{identity.name}, of {made_from}"
    if result.reports > 1:
        yield f"The key signed {result.reports} reports on it; this is the newest one"
    yield f"Its report: {gates.message}"
    if not result.repeats:
        yield f"Here it does not repeat: {result.message}"
    else:
        yield f"Here it repeats: {result.message}"
    for name, then, now in _differences(predicate, result):
        yield f"Another {name} than then: {now}, and the report is of {then}"


def _differences(predicate: Predicate, result: ReplayResult) -> Iterator[tuple[str, str, str]]:
    where = predicate.figures.environment
    if result.server_version and result.server_version != where.server_version:
        yield "version of tritonserver", where.server_version, result.server_version
    if result.cpu and result.cpu != where.cpu:
        yield "processor", where.cpu, result.cpu
    if where.device != "cpu":
        yield "device", where.gpu_product or where.device, "cpu"
