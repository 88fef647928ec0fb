"""The reason of a condition or a candidate in a status, which another version of the operator may have written."""

from typing import Annotated, Any, NewType

from pydantic import Field, PlainValidator, WithJsonSchema

from triton_converters.contract.reasons import Reason, known_reason

LONGEST_REASON = 63
"""The limit in characters, far above the longest reason. Kubernetes allows 1024."""
OtherReason = NewType("OtherReason", str)
"""A reason that this version does not know."""


def _read(text: Any) -> Reason | OtherReason:
    if not isinstance(text, str) or len(text) > LONGEST_REASON:
        raise ValueError(f"a reason is a text of at most {LONGEST_REASON} characters: correct it")
    return known_reason(text) or OtherReason(text)


StatusReason = Annotated[
    Reason | OtherReason,
    PlainValidator(_read),
    Field(max_length=LONGEST_REASON),
    WithJsonSchema({"type": "string", "maxLength": LONGEST_REASON}),
]
"""A member of `Reason`. A text that is none is kept as it is: a newer or an older operator wrote it."""
