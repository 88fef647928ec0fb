"""The overrides of a spec, put into Triton's own message."""

from collections.abc import Iterator

from google.protobuf import text_format
from google.protobuf.message import Message
from tritonclient.grpc import model_config_pb2

from triton_converters.contract.failure import StageError
from triton_converters.contract.overrides import BATCHING, is_allowed
from triton_converters.contract.reasons import Reason


def override(message: model_config_pb2.ModelConfig, text: str) -> None:
    """Put the fields of the text into the message: a repeated field replaces the message's, and a message is merged.

    The rate limiter applies to the message's own instances. Settings of a dynamic batcher apply if there is one. Raises
    StageError(InvalidSpec) for what the operator should have refused.
    """
    given = model_config_pb2.ModelConfig()
    try:
        text_format.Parse(text, given)
    except text_format.ParseError as error:
        raise StageError(Reason.INVALID_SPEC, f"config.overrides are no part of a config.pbtxt: {error}") from error
    if refused := [path for path in _paths(given) if not is_allowed(path)]:
        raise StageError(Reason.INVALID_SPEC, f"config.overrides must not have {', '.join(refused)}: remove it")
    for instances in given.instance_group:
        for own in message.instance_group:
            _merge(own, instances)
    given.ClearField("instance_group")
    if not message.HasField(BATCHING):
        given.ClearField(BATCHING)
    _merge(message, given)


def _merge(target: Message, source: Message) -> None:
    for field, value in source.ListFields():
        own = getattr(target, field.name)
        if isinstance(value, Message):
            # An empty message says something too: `input_pinned_memory {}` turns pinned memory off.
            own.SetInParent()
            _merge(own, value)
        elif hasattr(value, "MergeFrom"):
            target.ClearField(field.name)
            getattr(target, field.name).MergeFrom(value)
        else:
            setattr(target, field.name, value)


def _paths(message: Message, above: str = "") -> Iterator[str]:
    """Yield the path of each field that is set, except below repeated fields other than instance groups."""
    for field, value in message.ListFields():
        path = f"{above}{field.name}"
        yield path
        if isinstance(value, Message):
            yield from _paths(value, f"{path}.")
        elif field.name == "instance_group":
            for each in value:
                yield from _paths(each, f"{path}.")
