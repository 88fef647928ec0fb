"""Whether the spec fits the formats that were found in the source, which the CRD's rules cannot judge."""

from collections.abc import Iterator

from triton_converters.contract.formats import CONVERTER_TENSORFLOW, DECLARING, HPS, SOURCES, refusal
from triton_converters.contract.reasons import Reason
from triton_operator.api.backend_settings import refused_parameters
from triton_operator.api.routes import MIXED, NO_INPUTS
from triton_operator.context import Context
from triton_operator.stages.source import Sourced
from triton_operator.stages.step import Verdict


def check(context: Context, progress: Sourced) -> Sourced:
    """Wait if the spec asks for what the formats of its models do not have."""
    misfit = next(_misfits(context), None) if context.sought else None
    if misfit is None:
        return progress
    reason, message = misfit
    return progress.waiting(Verdict("Converted", False, reason, message), stalled=True)


def _misfits(context: Context) -> Iterator[tuple[Reason, str]]:
    """Yield reasons and messages; the messages are those of the CRD's rules where it has one."""
    spec = context.spec
    for model in spec.models:
        if model.format is None:
            message = f"the source's record does not tell the format of model {model.name}: set models[].format"
            yield Reason.FORMAT_NOT_FOUND, message
            return
        for candidate in model.candidates:
            if found := refusal(model.format, candidate.format, candidate.accelerator):
                reason, words = found
                yield reason, f"candidate {candidate.name} of model {model.name}: {words}"
        if names := refused_parameters(model.config.parameters, SOURCES[model.format].converters):
            message = f"config.parameters of model {model.name}, whose format is {model.format}, must not have"
            yield Reason.INVALID_SPEC, f"{message} {', '.join(names)}: docs/formats.md lists what may be set"
    formats = {model.format or "" for model in spec.models}
    if spec.dataloader is None and not formats <= set(DECLARING):
        yield Reason.INVALID_SPEC, f"{NO_INPUTS}; found is {', '.join(sorted(formats))}"
    if len({SOURCES[each].image == CONVERTER_TENSORFLOW for each in formats - {HPS}}) > 1:
        yield Reason.INVALID_SPEC, f"{MIXED}; found are {', '.join(sorted(formats))}"
