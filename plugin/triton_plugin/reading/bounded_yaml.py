"""YAML that somebody else wrote: read only if it is small when all of its aliases are written out."""

from collections.abc import Iterator
from typing import Any, TextIO

import yaml

LONGEST = 16 * 2**20
"""Characters of a file: ten times what the API server stores of one object."""
MOST_VALUES = 500_000
"""Values of a document with its aliases written out; a large object with its results has some ten thousand."""
DEEPEST = 100
"""Levels of lists and objects; the deepest field of the spec has about a dozen."""

LONGEST_NUMBER = 1000
"""Characters of a number; Python prints none of more than 4300 digits."""


def text_of(file: TextIO) -> str:
    """Return the text of an open file. Raises OSError, UnicodeDecodeError, and yaml.YAMLError if it is too long."""
    text = file.read(LONGEST + 1)
    if len(text) > LONGEST:
        raise yaml.YAMLError(f"it has more than {LONGEST} characters")
    return text


def documents(text: str, loader_type: type[yaml.SafeLoader] = yaml.SafeLoader) -> Iterator[Any]:
    """Yield the documents.

    Raises yaml.YAMLError for what is no YAML, for a value that is not of its type, such as the date 2026-13-45, and for
    what is too deep or too large, or contains itself.
    """
    loader = loader_type(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            _count(node, {}, 0)
            yield _constructed(loader, node)
    except RecursionError as error:
        raise _too_deep() from error
    finally:
        loader.dispose()


def _constructed(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    try:
        return loader.construct_document(node)
    except (yaml.YAMLError, RecursionError):
        raise
    # What PyYAML's constructors raise depends on the type: ValueError, KeyError, IndexError, AttributeError.
    except Exception as error:
        place = _wrong_value(loader, node) or node.start_mark
        message = f"a value is not of its type ({error}); correct it, or put it into quotation marks if it is text"
        raise yaml.constructor.ConstructorError(None, None, message, place) from error


def _wrong_value(loader: yaml.SafeLoader, document: yaml.Node) -> yaml.Mark | None:
    """Return the place of the first value that cannot be constructed."""
    pending, seen = [document], {id(document)}
    while pending:
        node = pending.pop()
        if isinstance(node, yaml.ScalarNode):
            try:
                loader.construct_object(node)
            except Exception:  # noqa: BLE001 - as above
                return node.start_mark
            continue
        below = [each for pair in node.value for each in (pair if isinstance(pair, tuple) else (pair,))]
        pending += [each for each in reversed(below) if id(each) not in seen]
        seen |= set(map(id, below))
    return None


def _count(node: yaml.Node, counted: dict[int, int], level: int) -> int:
    """Return the number of values in a node with its aliases written out; a node in ``counted`` is not entered."""
    if level > DEEPEST:
        raise _too_deep()
    is_text = node.tag == "tag:yaml.org,2002:str"
    if isinstance(node, yaml.ScalarNode) and not is_text and len(node.value) > LONGEST_NUMBER:
        message = f"a number or a time has more than {LONGEST_NUMBER} characters"
        raise yaml.constructor.ConstructorError(None, None, message, node.start_mark)
    place = id(node)
    if place not in counted:
        # An alias of a node above leads back here.
        counted[place] = MOST_VALUES
        children = node.value if isinstance(node, yaml.CollectionNode) else ()
        pairs = (each if isinstance(each, tuple) else (each,) for each in children)
        counted[place] = 1 + sum(_count(each, counted, level + 1) for pair in pairs for each in pair)
    if counted[place] >= MOST_VALUES:
        raise yaml.YAMLError(f"it has more than {MOST_VALUES} values, or contains itself, by its aliases")
    return counted[place]


def _too_deep() -> yaml.YAMLError:
    return yaml.YAMLError(f"lists and objects are nested more than {DEEPEST} levels deep")
