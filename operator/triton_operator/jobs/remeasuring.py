"""Measuring again: figures that stalled the object are measured anew when the user asks for a retry. Pure.

The results ConfigMap has a failure under the name of their record. Once the retry annotation differs from the one of
that time, the work has the next key, so it is done as if for the first time. What serves stays until then.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from triton_converters.contract.document import Document
from triton_converters.contract.records import record_name
from triton_operator import names
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.observed.failures import Failure
from triton_operator.observed.trouble import Trouble

D = TypeVar("D", bound=Document)


def key_measurement(context: Context, stage: str, request: D, *others: Any) -> tuple[tuple[str, ...], D]:
    """Return the keys that figures were measured under, oldest first, and the request with the one that counts."""
    keys = [names.result_key(stage, request, *others)]
    while (known := context.observed.failures.get(record_name(stage, keys[-1]))) is not None:
        following = names.result_key(stage, request, *others, len(keys))
        # An annotation that is taken back does not bring back what was measured before.
        is_this_retry = known.retry == context.triton_deployment.retry
        if is_this_retry and record_name(stage, following) not in context.observed.records:
            break
        keys.append(following)
    return tuple(keys[:-1]), names.with_key(request, keys[-1])


def record_unmet_figures(context: Context, figures: Mapping[str, Trouble]) -> Effects:
    """Record what is wrong with the figures that stalled the object, by the names of their records."""
    retry = context.triton_deployment.retry
    return Effects(failures={name: Failure("", each.reason, each.message, retry) for name, each in figures.items()})
