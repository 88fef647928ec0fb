"""Check that the spec fits the formats and batch dimensions that were found in the source.

The CRD's rules cannot do that, because they see only the spec. A candidate that a found format rules out is skipped,
and stops no other one.
"""

from collections.abc import Iterator
from itertools import chain

from triton_converters.contract.formats import AS_GIVEN, DECLARING, REPOSITORY, SOURCE_FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SourceResult
from triton_operator.api.backend_settings import refused_parameters
from triton_operator.api.format_rules import MIXED, NO_INPUTS
from triton_operator.api.model import Model
from triton_operator.api.resolved import ModelOfRepository
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.context import Context
from triton_operator.effects import Statement
from triton_operator.stages.source import Sourced


def check(context: Context, progress: Sourced) -> Sourced:
    """Wait if the spec asks for something that its models cannot do."""
    formats = _misfits(context, progress.source) if context.sought_models else iter(())
    misfit = next(chain(formats, _batch_misfits(context)), None)
    if misfit is None:
        return progress
    reason, message = misfit
    return progress.wait_with(Statement("Converted", False, reason, message), stalled=True)


def asks_for_batches(spec: TritonDeploymentSpec) -> bool:
    """Whether the spec has settings that only a batch dimension fulfils, although it may leave `maxBatchSize` out."""
    batcher = any(model.config.dynamic_batching is not None for model in spec.models)
    return batcher or _largest_request(spec) > 1


def _largest_request(spec: TritonDeploymentSpec) -> int:
    """Return the largest number of samples in a request that the spec has measured."""
    offline, online = spec.performance.offline, spec.performance.online
    return max([*(offline.batch_sizes if offline else []), online.batch_size if online else 1])


def _misfits(context: Context, source_result: SourceResult) -> Iterator[tuple[Reason, str]]:
    """Yield reasons and messages; the messages are those of the CRD's rules where it has one."""
    spec = context.spec
    for model in spec.models:
        if model.is_sought:
            yield Reason.FORMAT_NOT_FOUND, _format_message(model, source_result)
            return
        assert model.format is not None
        if names := refused_parameters(model.config.parameters, SOURCE_FORMATS[model.format].converters):
            message = f"config.parameters of model {model.name}, whose format is {model.format}, must not have"
            yield Reason.INVALID_SPEC, f"{message} {', '.join(names)}: docs/formats.md lists what may be set"
    formats = {model.format or "" for model in spec.models}
    if spec.dataloader is None and not all(each.format in DECLARING or each.declared for each in spec.models):
        yield Reason.INVALID_SPEC, f"{NO_INPUTS}; found is {', '.join(sorted(formats))}"
    if len({SOURCE_FORMATS[each].is_tensorflow for each in formats - set(AS_GIVEN)}) > 1:
        yield Reason.INVALID_SPEC, f"{MIXED}; found are {', '.join(sorted(formats))}"


def _format_message(model: Model, source_result: SourceResult) -> str:
    if model.format is None:
        return f"the source's record does not tell the format of model {model.name}: set models[].format"
    return (
        f"{model.path} is no model's folder of a Triton repository, which has a config.pbtxt (found is"
        f" {', '.join(source_result.formats)}): correct path, or remove the format {REPOSITORY} of model {model.name}"
    )


def _batch_misfits(context: Context) -> Iterator[tuple[Reason, str]]:
    """Yield reasons and messages of batch sizes that the models do not have, where the spec leaves them out."""
    for model in context.spec.models:
        batching, largest = model.config.dynamic_batching, model.config.largest_batch
        of_model = f"of model {model.name}"
        file_value = model.repository.config.max_batch_size if isinstance(model, ModelOfRepository) else None
        if file_value is not None and bool(file_value) != bool(largest):
            message = f"config.maxBatchSize {of_model} is {largest}, but config.pbtxt has {file_value}"
            yield Reason.INVALID_SPEC, f"{message}, and its dims are without or with a batch dimension: set one like it"
        if batching and not largest:
            message = f"config.dynamicBatching {of_model} needs a batch dimension, but the graph has none: remove it"
            yield Reason.INVALID_SPEC, message
        if batching and max(batching.preferred_batch_sizes, default=0) > largest:
            message = f"config.dynamicBatching.preferredBatchSizes {of_model} must not exceed maxBatchSize"
            yield Reason.INVALID_SPEC, f"{message}, which is {largest}: lower them, or set maxBatchSize"
    largest = context.spec.max_batch_size
    if largest and _largest_request(context.spec) > largest:
        message = "performance.offline.batchSizes and online.batchSize must not exceed maxBatchSize"
        yield Reason.INVALID_SPEC, f"{message}, which is {largest}: lower them, or set config.maxBatchSize"
