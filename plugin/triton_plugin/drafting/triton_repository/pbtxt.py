"""Reads a config.pbtxt by Triton's own message. Pure.

Whatever an object gets of it is judged by the CRD, and the text itself by the source Job, or by the server.
"""

from typing import Any

from triton_converters.contract import overrides
from triton_converters.contract.repository_config import LONGEST
from triton_converters.contract.text import printable

Config = Any
"""Triton's ``ModelConfig``, or a message within it; its package has no types."""
LONGEST_FAULT = 300
"""Characters of what the parser says."""


class PbtxtError(ValueError):
    """A text that is no config.pbtxt; the words say where."""


def read(content: bytes) -> Config:
    """Return the file's message. Raises PbtxtError, also for a field that this version of the message lacks."""
    # They take a fifth of a second, and not every folder has such a file.
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    if len(content) > LONGEST:
        raise PbtxtError(f"it is longer than {LONGEST} bytes")
    message = model_config_pb2.ModelConfig()
    try:
        text_format.Parse(content.decode(), message)
    except (text_format.ParseError, ValueError, RecursionError) as error:
        words = printable(" ".join(str(error).split()))[:LONGEST_FAULT]
        raise PbtxtError(f"it is no config.pbtxt that this version knows: {words}") from error
    return message


def word(message: Config, field: str) -> str:
    """Return the word of an enumeration that a field has; of a number that this version does not know, the number."""
    number = getattr(message, field)
    words = message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number
    return str(words[number].name if number in words else number)


def allowed_overrides(config: Config) -> str:
    """Return the fields that ``contract.overrides`` allows, as text on one line."""
    from google.protobuf import text_format

    kept = type(config)()
    kept.CopyFrom(config)
    overrides.prune(kept)
    return str(text_format.MessageToString(kept, as_one_line=True))
