"""The files with weights that ONNX graphs name: graphs of over 2 GiB, and many smaller, have some."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import count
from posixpath import dirname, join, normpath
from typing import BinaryIO

from triton_converters.found.protobuf import Message


def named(files: Iterable[tuple[str, BinaryIO]]) -> set[str]:
    """Return the paths of weights that the graphs among the files name; closes the files.

    ``files``: each with its path. Raises OSError.
    """
    found: set[str] = set()
    for path, file in files:
        # What is no graph, or too large for one, names no more than was read of it.
        with file, suppress(ValueError, RecursionError):
            for graph in Message(file, 0, file.seek(0, os.SEEK_END), count()).inner(7):
                found.update(normpath(join(dirname(path), each)) for each in _locations(graph))
    return found


def _locations(graph: Message) -> Iterator[str]:
    """Yield the ``location`` among the external_data (13) of each tensor: its keys (1) and values (2)."""
    for tensor in _tensors(graph):
        yield from (entry.text(2) for entry in tensor.inner(13) if entry.text(1) == "location")


def _tensors(graph: Message) -> Iterator[Message]:
    """Yield each initializer (5), and of the attributes (5) of nodes (1) t (5), tensors (10), and those of graphs."""
    yield from graph.inner(5)
    for attribute in (each for node in graph.inner(1) for each in node.inner(5)):
        yield from (*attribute.inner(5), *attribute.inner(10))
        for inner in (*attribute.inner(6), *attribute.inner(11)):
            yield from _tensors(inner)
