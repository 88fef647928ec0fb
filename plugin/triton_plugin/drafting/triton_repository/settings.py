"""The settings of a Python model's config.pbtxt, as a spec has them. Pure."""

import json
from collections.abc import Iterator
from typing import Any

from triton_converters.contract import overrides
from triton_operator.api.duration import written
from triton_plugin.drafting.triton_repository import pbtxt
from triton_plugin.drafting.triton_repository.pbtxt import Fields


def settings(config: Fields, largest: int) -> dict[str, Any]:
    """Return spec.models[].config. Raises PbtxtError for a number that is none."""
    found: dict[str, Any] = {"maxBatchSize": largest}
    instances = sum(max(pbtxt.number(each, "count"), 1) for each in pbtxt.messages(config, "instance_group"))
    if instances > 1:
        found["instances"] = instances
    for batching in [] if batches_nothing(config, largest) else pbtxt.messages(config, "dynamic_batching")[-1:]:
        said: dict[str, Any] = {}
        if sizes := [
            pbtxt.whole(each, "preferred_batch_size") for each in pbtxt.words(batching, "preferred_batch_size")
        ]:
            said["preferredBatchSizes"] = sizes
        if delay := pbtxt.number(batching, "max_queue_delay_microseconds"):
            said["maxQueueDelay"] = written(delay, "us")
        found["dynamicBatching"] = said
    if text := " ".join(_overrides(config, "")):
        found["overrides"] = text
    return found


def batches_nothing(config: Fields, largest: int) -> bool:
    """Whether the dynamic batcher is on for a model without a batch dimension, where it only passes requests on."""
    batching = pbtxt.messages(config, "dynamic_batching")[-1:]
    return not largest and any(each.keys() <= {"max_queue_delay_microseconds"} for each in batching)


def _overrides(fields: Fields, above: str) -> Iterator[str]:
    """Yield the fields that ``contract.overrides`` allows, as text."""
    for name, values in fields.items():
        path = f"{above}{name}"
        if not overrides.is_allowed(path):
            continue
        kind = overrides.ALLOWED.get(path)
        for each in values:
            if isinstance(each, str):
                if kind is not None:
                    yield f"{name}: {_written(each, kind)}"
            elif inner := " ".join(_overrides(each, f"{path}.")):
                yield f"{name} {{ {inner} }}"


def _written(value: str, kind: overrides.ValueKind) -> str:
    if kind is overrides.NAME:
        return json.dumps(value)
    return value.lower() if kind is overrides.SWITCH else value
