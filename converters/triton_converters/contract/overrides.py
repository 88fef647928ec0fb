"""The part of config.pbtxt that a spec may write as text, and its check before any Job. Standard library only.

It is an allow-list: queues, priorities, rate limits and optimization. Everything else is left out because the operator
or a search sets it, because a sweep would measure something else (a response cache) or could not (sequences), or
because it names files, backends or environments. Whoever writes config.pbtxt parses the text with Triton's own message
and takes the same list.

Source: model_config.proto of Triton 2.51.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple


class ValueKind(NamedTuple):
    """What values a field takes."""

    words: str
    pattern: str


NUMBER = ValueKind("a whole number of at most 9 digits", "0|[1-9][0-9]{0,8}")
SWITCH = ValueKind("true or false", "true|false")
NAME = ValueKind("a name in quotes", '"[A-Za-z0-9_.-]{1,63}"')
LEVEL = ValueKind("-1, 0 or 1", "-1|0|1")
_QUEUE_POLICY = {
    "timeout_action": ValueKind("REJECT or DELAY", "REJECT|DELAY"),
    "default_timeout_microseconds": NUMBER,
    "allow_timeout_override": SWITCH,
    "max_queue_size": NUMBER,
}
ALLOWED = {
    "dynamic_batching.preserve_ordering": SWITCH,
    "dynamic_batching.priority_levels": NUMBER,
    "dynamic_batching.default_priority_level": NUMBER,
    **{f"dynamic_batching.default_queue_policy.{name}": kind for name, kind in _QUEUE_POLICY.items()},
    "dynamic_batching.priority_queue_policy.key": NUMBER,
    **{f"dynamic_batching.priority_queue_policy.value.{name}": kind for name, kind in _QUEUE_POLICY.items()},
    "instance_group.rate_limiter.priority": NUMBER,
    "instance_group.rate_limiter.resources.name": NAME,
    "instance_group.rate_limiter.resources.global": SWITCH,
    "instance_group.rate_limiter.resources.count": NUMBER,
    "optimization.priority": ValueKind(
        "PRIORITY_DEFAULT, PRIORITY_MAX or PRIORITY_MIN", "PRIORITY_DEFAULT|PRIORITY_MAX|PRIORITY_MIN"
    ),
    "optimization.graph.level": LEVEL,
    "optimization.cuda.busy_wait_events": SWITCH,
    "optimization.cuda.output_copy_stream": SWITCH,
    "optimization.input_pinned_memory.enable": SWITCH,
    "optimization.output_pinned_memory.enable": SWITCH,
    "optimization.gather_kernel_buffer_threshold": NUMBER,
    "optimization.eager_batching": SWITCH,
}
"""The fields, by their path, and what each takes."""
BATCHING = "dynamic_batching"
"""The message that only a configuration with dynamic batching has."""
SAYING = ("optimization.input_pinned_memory", "optimization.output_pinned_memory")
"""Messages that say something although they are empty: pinned memory is not used."""
_REPEATED = ("dynamic_batching.priority_queue_policy", "instance_group.rate_limiter.resources")
_IGNORED = r"(?:\s|#[^\n]*(?:\n|\Z))*"
_ITEM = re.compile(
    _IGNORED
    + r"(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*(?::?\s*(?P<open>\{)|:\s*(?P<value>\"[^\"\\\n]*\"|[A-Za-z0-9_.+-]+))"
    + r"|(?P<close>\})|(?P<end>\Z))\s*[,;]?"
)


def is_allowed(path: str) -> bool:
    """Whether a field may be overridden, or is a message with a field that may be."""
    return any(each == path or each.startswith(f"{path}.") for each in ALLOWED)


def prune(message: Any, above: str = "") -> None:
    """Remove what is no override from Triton's message, and messages within it of which nothing is left."""
    for field, value in message.ListFields():
        path = f"{above}{field.name}"
        messages = messages_of(field, value)
        for each in messages:
            prune(each, f"{path}.")
        is_empty = messages and path not in SAYING and not any(each.ListFields() for each in messages)
        if is_empty or not is_allowed(path):
            message.ClearField(field.name)


def messages_of(field: Any, value: Any) -> list[Any]:
    """Return the messages that a field of Triton's message holds; empty: it holds values, or a map."""
    if field.message_type is None or field.message_type.GetOptions().map_entry:
        return []
    return [value] if hasattr(value, "ListFields") else list(value)


def checked(text: str) -> frozenset[str]:
    """Return the names of the outermost fields. Raises ValueError with a sentence that names the field at fault."""
    found = set()
    for path, value in _fields(text):
        if not is_allowed(path):
            raise ValueError(f"{path} must not be overridden: remove it; docs/formats.md lists what may be")
        kind = ALLOWED.get(path)
        if (kind is None) != (value is None) or (kind and value and not re.fullmatch(kind.pattern, value)):
            raise ValueError(f"{path} must be {kind.words if kind else 'fields in braces'}: correct it")
        found.add(path.partition(".")[0])
    return frozenset(found)


def _fields(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the path and the value of each field, in order; a message's value is None, and its fields follow."""
    opened: list[str] = []
    given: list[set[str]] = [set()]
    position = 0
    while item := _ITEM.match(text, position):
        position = item.end()
        if item["name"]:
            path = ".".join([*opened, item["name"]])
            if path in given[-1] and path not in _REPEATED:
                raise ValueError(f"{path} is given twice: remove one")
            given[-1].add(path)
            yield path, item["value"]
            if item["open"]:
                opened.append(item["name"])
                given.append(set())
        elif item["close"] and opened:
            opened.pop()
            given.pop()
        elif item["close"]:
            break
        elif opened:
            raise ValueError(f"{'.'.join(opened)} is not closed: add a }}")
        else:
            return
    line = text.count("\n", 0, len(text) - len(text[position:].lstrip())) + 1
    raise ValueError(f"line {line} has no field in the form `name: value` or `name {{ ... }}`: correct it")
