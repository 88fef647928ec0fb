"""Measuring again: figures that stalled the object are measured anew when the user asks for a retry. Pure.

Figures that are comparable with no others are measured anew by themselves: their failure names no retry of the user's.

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

AGAIN = " by itself"
"""What follows the retry in the failure of figures that are measured again by themselves."""
D = TypeVar("D", bound=Document)


def key_measurement(context: Context, stage: str, request: D, *others: Any) -> tuple[tuple[str, ...], D]:
    """Return the request with the key that counts now, and before it the earlier keys of its figures, oldest first."""
    keys = [names.result_key(stage, request, *others)]
    while (failure := context.observed.failures.get(record_name(stage, keys[-1]))) is not None:
        next_key = names.result_key(stage, request, *others, len(keys))
        # An annotation that is taken back does not bring back what was measured before.
        is_this_retry = failure.retry == context.triton_deployment.retry
        if is_this_retry and record_name(stage, next_key) not in context.observed.records:
            break
        keys.append(next_key)
    return tuple(keys[:-1]), names.with_key(request, keys[-1])


def record_odd_figures(context: Context, troubles: Mapping[str, Trouble]) -> Effects:
    """Record that figures are comparable with no others, so that the next pass measures them again."""
    retry = f"{context.triton_deployment.retry}{AGAIN}"
    return Effects(
        failures={name: Failure("", trouble.reason, trouble.message, retry) for name, trouble in troubles.items()}
    )


def is_odd(context: Context, failure: Failure) -> bool:
    """Whether figures were measured again by themselves, since the user last asked for a retry."""
    return failure.retry == f"{context.triton_deployment.retry}{AGAIN}"


def record_unmet_figures(context: Context, troubles: Mapping[str, Trouble]) -> Effects:
    """Record that figures stall the object, so that a retry measures them again.

    ``troubles``: what is wrong with them, by the names of their records.
    """
    retry = context.triton_deployment.retry
    return Effects(
        failures={name: Failure("", trouble.reason, trouble.message, retry) for name, trouble in troubles.items()}
    )
