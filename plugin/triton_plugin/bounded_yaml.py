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


def text_of(file: TextIO) -> str:
    """Return the text of an open file. Raises OSError, UnicodeDecodeError, and yaml.YAMLError if it is too long."""
    text = file.read(LONGEST + 1)
    if len(text) > LONGEST:
        raise yaml.YAMLError(f"it has more than {LONGEST} characters")
    return text


def documents(text: str, loader_type: type[yaml.SafeLoader] = yaml.SafeLoader) -> Iterator[Any]:
    """Yield the documents.

    Raises yaml.YAMLError for what is no YAML, and for what is too deep or too large, or contains itself.
    """
    loader = loader_type(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            _count(node, {}, 0)
            yield loader.construct_document(node)
    except RecursionError as error:
        raise _too_deep() from error
    finally:
        loader.dispose()


def _count(node: yaml.Node, counted: dict[int, int], level: int) -> int:
    """Return the number of values in a node with its aliases written out; a node in ``counted`` is not entered."""
    if level > DEEPEST:
        raise _too_deep()
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
