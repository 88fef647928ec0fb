"""The runner of public repositories: its list is that of the page, and its graphs are what configurations declare."""

import json
import math
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy
import onnxruntime
import pytest

from hack.deploy.command import ROOT
from tests.converters.test_python_ensemble import STEPS
from tests.triton_repositories import fixed_paths, hub_models, made
from tests.triton_repositories.repositories import REPOSITORIES
from triton_converters.contract.conversion_requests import Entrypoint, ReferenceRequest
from triton_plugin.drafting.triton_repository import pbtxt

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


def test_a_job_sees_the_paths_that_its_steps_name_and_leaves_none(tmp_path: Path) -> None:
    source = tmp_path / "repository/.triton-operator/sources" / ("d" * 64)
    (source / "steps").mkdir(parents=True)
    (source / "steps/words.txt").write_text("found")
    code = replace(STEPS[0].code, entrypoint=Entrypoint("steps/one.py", {}))
    named = replace(code, mount_path="/fixed-models/one/1", scratch_paths=("/fixed-cache",))
    request = ReferenceRequest("0" * 16, "d" * 64, named, None, 1, needs_labels=False)
    mounts = fixed_paths.mounts(tmp_path, "reference", request)
    reading = (
        "cp /fixed-models/one/1/words.txt /fixed-cache/copy; touch /fixed-models/one/1/x /fixed; cat /fixed-cache/*"
    )
    seen = fixed_paths.seeing(tmp_path, mounts, ["/bin/sh", "-c", reading])
    ran = subprocess.run(seen, capture_output=True, text=True, check=True, cwd=ROOT)
    assert (ran.stdout, ran.stderr.count("Read-only file system")) == ("found", 2)
    assert [each.name for each in Path("/").iterdir() if each.name.startswith("fixed")] == []
    assert fixed_paths.mounts(tmp_path, "packages", None) == []
    assert fixed_paths.seeing(tmp_path, [], ["true"]) == ["true"]


@pytest.mark.parametrize("make", [hub_models.distilbert, hub_models.bert, hub_models.bart])
def test_a_made_model_of_the_hub_has_all_the_weights_that_its_file_tells(make: Callable[[], hub_models.Files]) -> None:
    files = make()
    content = files["model.safetensors"]
    assert isinstance(content, bytes)
    end = 8 + int.from_bytes(content[:8], "little")
    tensors = {name: told for name, told in json.loads(content[8:end]).items() if name != "__metadata__"}
    assert sum(4 * math.prod(each["shape"]) for each in tensors.values()) == len(content) - end
    assert max(each["data_offsets"][1] for each in tensors.values()) == len(content) - end
    config = json.loads(files["config.json"])
    tokens = json.loads(files["vocab.json"]) if "vocab.json" in files else str(files["vocab.txt"]).split("\n")
    (words,) = (told for name, told in tensors.items() if "word_embeddings" in name or "shared" in name)
    assert len(set(tokens)) == config["vocab_size"] == words["shape"][0]
    assert files == make()


def test_a_made_graph_has_the_declared_tensors_and_varies_with_its_input() -> None:
    session = onnxruntime.InferenceSession(made.graph(pbtxt.read(CONFIG.encode())))
    ids = numpy.arange(14).reshape(2, 7)
    vector, each = session.run(["vector", "each"], {"ids": ids, "mask": ids})
    assert (vector.shape, each.shape) == ((2, 5), (2, 7, 1))
    assert not numpy.array_equal(vector[0], vector[1])
