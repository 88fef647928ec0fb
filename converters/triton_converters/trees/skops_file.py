"""What a file of skops holds, checked before skops loads it: a zip with arrays, and schema.json, which names types."""

import json
import re
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy
from numpy.lib import format as npy

from triton_converters.claim_store.dump import Array
from triton_converters.trees.forest import DEEPEST, BrokenError, UnsupportedError
from triton_converters.trees.skops_types import ADVICE, ALLOWED, CHECK, OTHERWISE, PREDICTOR

SCHEMA = "schema.json"
ARRAY = re.compile(r"[0-9]{1,20}\.npy")
MOST_ENTRIES = 200_000
"""Files in the zip: a forest has four for each tree."""
MOST_BYTES = 2**29
"""Bytes of all of them, unpacked."""
MOST_RATIO = 100
"""How many times as long as the zip they may be. 266 kB were seen to become 684 MiB."""
MOST_SCHEMA_BYTES = 2**26
"""Bytes of schema.json, which takes some ten times as much memory: 5,000 trees have half of it."""
MOST_NESTED = 100
"""Objects inside each other: skops descends once for each. A pipeline in a pipeline in a forest has some 30."""
PROTOCOLS = (1, 2)
"""Versions of the file format that are read."""
KINDS = "biufUSV"
"""NumPy's kinds of arrays: numbers, texts, and the nodes of trees."""
Node = Mapping[str, Any]


def check(file: Path) -> None:
    """Raise BrokenError unless the file is what skops writes, UnsupportedError if it holds another type than ALLOWED.

    All bounds hold before anything of that length is read. The nodes of trees are trees, whose children exist.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            _check_entries(archive, file.stat().st_size)
            _Checked(archive).check(json.loads(archive.read(SCHEMA)))
    except (BrokenError, UnsupportedError):
        raise
    except Exception as error:
        raise BrokenError(f"is not a model as skops saves it ({type(error).__name__}: {error})") from None


def _check_entries(archive: zipfile.ZipFile, size: int) -> None:
    entries = archive.infolist()
    if len(entries) > MOST_ENTRIES or len({each.filename for each in entries}) < len(entries):
        raise BrokenError(f"has {len(entries)} entries, of which {MOST_ENTRIES} with different names are read")
    for each in entries:
        if each.filename != SCHEMA and not ARRAY.fullmatch(each.filename):
            raise BrokenError(f"has an entry that skops does not write: {each.filename[:100]!r}")
        if stat.S_ISLNK(each.external_attr >> 16):
            raise BrokenError(f"has a link in place of {each.filename}")
    total = sum(each.file_size for each in entries)
    if total > min(MOST_BYTES, MOST_RATIO * size):
        raise BrokenError(f"has {total} bytes unpacked, more than {MOST_BYTES} or {MOST_RATIO} times those of the file")
    if archive.getinfo(SCHEMA).file_size > MOST_SCHEMA_BYTES:
        raise BrokenError(f"has a {SCHEMA} of more than {MOST_SCHEMA_BYTES} bytes")


class _Checked:
    """What is known of one file so far."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._relied: list[Node] = []
        """Nodes of which not only the type was checked, but what they hold, or their place."""

    def check(self, schema: Node) -> None:
        """Check all that skops reads."""
        if type(schema["protocol"]) is not int or schema["protocol"] not in PROTOCOLS:
            raise UnsupportedError(
                f"is of skops' protocol {schema['protocol']!r:.20}, not of {' or '.join(map(str, PROTOCOLS))}: save it"
                " with skops 0.16"
            )
        left: list[tuple[Node, int]] = [(schema, 0)]
        by_number: dict[int, list[Node]] = {}
        while left:
            node, depth = left.pop()
            if depth > MOST_NESTED:
                raise BrokenError(f"has more than {MOST_NESTED} objects inside each other")
            by_number.setdefault(node["__id__"], []).append(node)
            left.extend((each, depth + 1) for each in self._inner(node))
        # skops loads a number once, and takes that for each node with it.
        for node in self._relied:
            if any({**other, "key_types": None} != {**node, "key_types": None} for other in by_number[node["__id__"]]):
                raise BrokenError(f"has two objects with the number {node['__id__']!r:.30}")

    def _inner(self, node: Node) -> Iterator[Node]:
        """Check one node; yield those inside it."""
        kind, name = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
        if name not in ALLOWED.get(kind, ()):
            advice = next((words for begin, words in ADVICE.items() if name.startswith(begin)), OTHERWISE)
            raise UnsupportedError(f"holds {name[:200]}, which is not converted: {advice}")
        yield from self._kinds[kind](self, node)

    def _json(self, node: Node) -> Iterator[Node]:
        if isinstance(json.loads(_text(node["content"])), dict | list):
            raise BrokenError("has a value that is no text, number or truth value")
        yield from ()

    def _slice(self, node: Node) -> Iterator[Node]:
        if not all(each is None or type(each) is int for each in node["content"].values()):
            raise BrokenError("has a slice of something else than numbers")
        yield from ()

    def _dict(self, node: Node) -> Iterator[Node]:
        yield node["key_types"]
        yield from node["content"].values()

    def _list(self, node: Node) -> Iterator[Node]:
        yield from node["content"]

    def _other(self, node: Node) -> Iterator[Node]:
        if (content := node.get("content")) is not None:
            yield content

    def _object(self, node: Node) -> Iterator[Node]:
        yield from self._other(node)
        if f"{node['__module__']}.{node['__class__']}" == PREDICTOR:
            nodes = node["content"]["content"]["nodes"]
            self._relied += (node["content"], nodes)
            check_nodes(self._file(nodes), "left", "right", "is_leaf")

    def _generator(self, node: Node) -> Iterator[Node]:
        state = node["content"]["bit_generator"]
        name = state["content"]["bit_generator"]
        self._relied += (state, name)
        if json.loads(name["content"]) != "PCG64":
            raise BrokenError("has random numbers of another generator than PCG64")
        yield from (state, node["content"]["seed_seq"])

    def _partial(self, node: Node) -> Iterator[Node]:
        """Check that a partial is the check of numbers with data alone."""
        content = node["content"]
        function, arguments, options = content["func"], content["args"], content["kwds"]
        self._relied += content.values()
        name = f"{function['__module__']}.{function['__class__']}"
        if name != CHECK or arguments["content"] or not set(options["content"]) <= {"dtype", "ensure_all_finite"}:
            raise UnsupportedError(f"holds functools.partial of {name[:200]}, which is not converted: {OTHERWISE}")
        yield from content.values()

    def _reduced(self, node: Node) -> Iterator[Node]:
        yield from (node["__reduce__"]["args"], node["content"])

    def _tree(self, node: Node) -> Iterator[Node]:
        arguments, state = self._reduced(node)
        self._relied += (arguments, state, *arguments["content"], *state["content"].values())
        self._check_tree(arguments["content"], state["content"])
        yield from (arguments, state)

    def _array(self, node: Node) -> Iterator[Node]:
        if node["type"] == "json":
            yield from (*node["content"], node["shape"])
            return
        if node["type"] != "numpy":
            raise BrokenError(f"has an array of the type {node['type']!r:.20}")
        info = self._archive.getinfo(_text(node["file"]))
        with self._archive.open(info) as file:
            shape, kind = _header(file)
            begin = file.tell()
        if kind.hasobject or kind.kind not in KINDS:
            raise BrokenError(f"has an array of {kind}")
        if begin + prod(shape) * kind.itemsize != info.file_size or (not kind.itemsize and 0 not in shape):
            raise BrokenError(f"has an array of {list(shape)} in {info.file_size} bytes")

    def _file(self, node: Node) -> Array:
        """Return an array."""
        if (node["__loader__"], node["type"]) != ("NdArrayNode", "numpy"):
            raise BrokenError("has nodes of a tree that are no array")
        self._array(node)
        with self._archive.open(node["file"]) as file:
            array: Array = npy.read_array(file, allow_pickle=False)
        return array

    def _check_tree(self, arguments: list[Node], state: Mapping[str, Node]) -> None:
        """Check what scikit-learn's Tree is made of: compiled code that trusts it."""
        features, classes, outputs = arguments
        count, targets = _number(features), _number(outputs)
        sizes, nodes, values = self._file(classes), self._file(state["nodes"]), self._file(state["values"])
        check_nodes(nodes, "left_child", "right_child")
        inner = nodes["left_child"] >= 0
        if type(count) is not int or ((nodes["feature"][inner] < 0) | (nodes["feature"][inner] >= count)).any():
            raise BrokenError("has a tree that splits by a feature that it does not have")
        if sizes.shape != (targets,) or sizes.dtype != numpy.int64 or not targets or not (sizes > 0).all():
            raise BrokenError("has a tree without its numbers of classes")
        if values.shape != (len(nodes), targets, sizes.max()) or values.dtype != numpy.float64:
            raise BrokenError("has a tree whose values are not those of its nodes")
        depth, number = _number(state["max_depth"]), _number(state["node_count"])
        if number != len(nodes) or type(depth) is not int or not 0 <= depth <= DEEPEST:
            raise BrokenError(f"has a tree of {len(nodes)} nodes that tells of {number!r:.20}, {depth!r:.20} deep")

    _kinds: ClassVar[Mapping[str, Callable[[Any, Node], Iterator[Node]]]] = {
        "DictNode": _dict,
        **dict.fromkeys(("ListNode", "SetNode", "TupleNode"), _list),
        "JsonNode": _json,
        "SliceNode": _slice,
        "NdArrayNode": _array,
        "ObjectNode": _object,
        "RandomGeneratorNode": _generator,
        "PartialNode": _partial,
        "LossNode": _reduced,
        "TreeNode": _tree,
        **dict.fromkeys(("DTypeNode", "FunctionNode", "RandomStateNode", "TypeNode"), _other),
    }
    """Checks what a kind of node holds, and yields the nodes inside."""


def check_nodes(nodes: Array, left: str, right: str, is_leaf: str = "") -> None:
    """Raise BrokenError unless each node but the first is the child of one before it, and of no other.

    ``left``, ``right``: the columns of the children. ``is_leaf``: that of leaves, if no child is not a negative one.
    """
    if nodes.ndim != 1 or not len(nodes):
        raise BrokenError("has a tree without nodes")
    inner = numpy.flatnonzero(nodes[is_leaf] == 0 if is_leaf else nodes[left] >= 0)
    children = numpy.concatenate([nodes[name][inner].astype(numpy.int64) for name in (left, right)])
    if (children <= numpy.tile(inner, 2)).any() or (numpy.sort(children) != numpy.arange(1, len(nodes))).any():
        raise BrokenError("has a broken tree: a child of it does not exist, or is reached twice")


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], numpy.dtype[Any]]:
    """Return the shape and the type of an array."""
    version = npy.read_magic(file)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
    shape, _, kind = read(file)
    return shape, kind


def _number(node: Node) -> Any:
    """Return a value that skops takes from the schema, and from no file."""
    if node["__loader__"] != "JsonNode":
        raise BrokenError("has a tree that keeps a number in its own file")
    return json.loads(node["content"])


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise BrokenError("has something else in place of a text")
    return value
