"""The settings of a Python model's config.pbtxt, as a spec has them. Pure."""

from typing import Any

from triton_operator.api.duration import written
from triton_plugin.drafting.triton_repository import pbtxt
from triton_plugin.drafting.triton_repository.pbtxt import Config


def settings(config: Config, largest: int) -> dict[str, Any]:
    """Return spec.models[].config."""
    found: dict[str, Any] = {"maxBatchSize": largest}
    instances = sum(max(each.count, 1) for each in config.instance_group)
    if instances > 1:
        found["instances"] = instances
    if config.HasField("dynamic_batching") and not batches_nothing(config, largest):
        batching, dynamic = config.dynamic_batching, found.setdefault("dynamicBatching", {})
        if batching.preferred_batch_size:
            dynamic["preferredBatchSizes"] = list(batching.preferred_batch_size)
        if batching.max_queue_delay_microseconds:
            dynamic["maxQueueDelay"] = written(batching.max_queue_delay_microseconds, "us")
    if text := pbtxt.allowed_overrides(config):
        found["overrides"] = text
    return found


def batches_nothing(config: Config, largest: int) -> bool:
    """Whether the dynamic batcher is on for a model without a batch dimension, where it only passes requests on."""
    fields = {field.name for field, _ in config.dynamic_batching.ListFields()}
    return not largest and config.HasField("dynamic_batching") and fields <= {"max_queue_delay_microseconds"}
