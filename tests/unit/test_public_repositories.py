"""The runner of public repositories: its list is that of the page, and its graphs are what configurations declare."""

import re
from pathlib import Path

import numpy
import onnxruntime

from tests.triton_repositories import made
from tests.triton_repositories.repositories import REPOSITORIES
from triton_plugin.triton_repository import pbtxt

PAGE = Path(__file__).parents[2] / "docs/triton-repositories.md"
CONFIG = """
max_batch_size: 8
input [ { name: "ids" data_type: TYPE_INT64 dims: [ -1 ] }, { name: "mask" data_type: TYPE_INT64 dims: [ -1 ] } ]
output [ { name: "vector" data_type: TYPE_FP32 dims: [ 5 ] }, { name: "each" data_type: TYPE_FP32 dims: [ -1, 1 ] } ]
"""


def test_the_list_is_that_of_the_page() -> None:
    rows = re.findall(r"^\| ([\w.-]+/[\w.-]+) \| ([0-9a-f]{12}) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(each.name, each.commit) for each in REPOSITORIES]
    assert len(rows) == 12


def test_a_made_graph_has_the_declared_tensors_and_varies_with_its_input() -> None:
    session = onnxruntime.InferenceSession(made.graph(pbtxt.read(CONFIG.encode())))
    ids = numpy.arange(14).reshape(2, 7)
    vector, each = session.run(["vector", "each"], {"ids": ids, "mask": ids})
    assert (vector.shape, each.shape) == ((2, 5), (2, 7, 1))
    assert not numpy.array_equal(vector[0], vector[1])
