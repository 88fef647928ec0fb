"""What a dataloader may yield."""

from collections.abc import Mapping
from pathlib import Path

import numpy
import pytest

from tests.converters.sources import WriteSource
from triton_converters.claim_store.dump import Batch, read_batches, write_batch
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.user.dataloader import NO_TYPES, batches

HEADER = "import numpy as np\n"
GOOD = """
def get_dataloader_fn(batch_size: int = 1, precision: str = "fp16"):
    assert precision == "fp32"
    def batches():
        for start in range(0, 10, batch_size):
            ids = list(range(start, min(10, start + batch_size)))
            x = np.arange(len(ids) * 2, dtype=np.float32).reshape(-1, 2)
            yield ids, {"x": x}, {"y": np.zeros(len(ids), np.int64)}
    return batches
"""


def items(*texts: str) -> str:
    """A dataloader of these items."""
    return f"def get_dataloader_fn():\n    return lambda: iter([{', '.join(texts)}])"


def load(
    source: Path,
    max_batch_size: int = 4,
    max_samples: int = 256,
    needs_labels: bool = False,
    types: Mapping[str, str] = NO_TYPES,
    **arguments: str,
) -> list[Batch]:
    code = ModelCode("pyt", Entrypoint("model.py", {}), max_batch_size)
    loader = Entrypoint("loader.py", arguments)
    request = ReferenceRequest("k" * 16, "d" * 64, code, loader, max_samples, needs_labels)
    return list(batches(request, source, ("x",), types=types))


def refusal(source: Path, max_batch_size: int = 4, needs_labels: bool = False) -> StageError:
    with pytest.raises(StageError) as caught:
        load(source, max_batch_size, needs_labels=needs_labels)
    return caught.value


def test_batches_have_the_models_maximum_size(write_source: WriteSource) -> None:
    got = load(write_source({"loader.py": HEADER + GOOD}))
    assert [len(batch.ids) for batch in got] == [4, 4, 2]
    assert got[0].inputs["x"].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert got[0].labels["y"].dtype == numpy.int64


def test_the_last_batch_is_cut_to_max_samples(write_source: WriteSource) -> None:
    source = write_source({"loader.py": HEADER + GOOD})
    got = load(source, max_samples=5)
    assert [(len(batch.ids), len(batch.inputs["x"]), len(batch.labels["y"])) for batch in got] == [(4, 4, 4), (1, 1, 1)]
    assert [len(batch.ids) for batch in load(source, max_batch_size=64, max_samples=3)] == [3]


def test_an_endless_dataloader_ends_at_max_samples(write_source: WriteSource) -> None:
    endless = (
        "import itertools\ndef get_dataloader_fn():\n    item = ([0], {'x': np.zeros((1, 2), np.float32)}, None)\n"
    )
    source = write_source({"loader.py": HEADER + endless + "    return lambda: itertools.repeat(item)"})
    assert len(load(source, max_samples=7)) == 7


def test_without_batch_dimension_each_item_is_one_request(write_source: WriteSource) -> None:
    one = "('only', {'x': np.float32(3)}, None)"
    two = "(['a', 'b', 'c'], {'x': np.float32(4)}, {})"
    got = load(write_source({"loader.py": HEADER + items(one, two)}), max_batch_size=0)
    assert [batch.inputs["x"].shape for batch in got] == [(1,), (1,)]
    assert [batch.ids.tolist() for batch in got] == [["only"], ["a", "b", "c"]]


X = "np.zeros((2, 3), np.float32)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"([0, 1], {{'y': {X}}}, None)", ["['y']", "['x']"]),
        (f"([0, 1], {{'x': {X}, 'y': {X}}}, None)", ["['x', 'y']", "['x']"]),
        (f"([0, 1], {X}, None)", ["dicts of arrays by name, but inputs are float32[2, 3]"]),
        (f"([0, 1], {{'x': {X}}}, {X})", ["dicts of arrays by name, but labels are float32[2, 3]"]),
        (
            "([0, 1], {'x': type('T', (), {'__array__': lambda *_, **__: exec('raise RuntimeError(7)')})()}, None)",
            ["input x: T cannot be turned into an array: 7"],
        ),
        (f"({{'x': {X}}}, None)", ["(ids, inputs, labels)"]),
        (f"([0], {{'x': {X}}}, None)", ["ids 1", "input x 2"]),
        (f"([0, 1], {{'x': {X}}}, {{'y': np.zeros(3)}})", ["input x 2", "label y 3"]),
        ("([0, 1], {'x': np.zeros((2, 3))}, None)", ["float64", "astype(numpy.float32)"]),
        ("([0, 1], {'x': np.zeros((2, 3), np.float16)}, None)", ["float16", "astype(numpy.float32)"]),
        ("([0, 1], {'x': np.zeros((2, 3), complex)}, None)", ["complex128"]),
        ("([0, 1], {'x': np.array([b'a', b'b'])}, None)", ["S1", "give bytes as dtype=object"]),
        ("([0, 1], {'x': [{}, {}]}, None)", ["input x", "of the types dict", "as text"]),
        ("([0, 1], {'x': [[1], [1, 2]]}, None)", ["input x", "cannot be turned into an array"]),
        ("([0], {'x': np.float32(1)}, None)", ["no batch dimension", "maxBatchSize to 0"]),
        ("([], {'x': np.zeros((0, 3), np.float32)}, None)", ["holds no sample"]),
        (f"([0, object()], {{'x': {X}}}, None)", ["ids", "of the types int, object", "as text"]),
        (f"([0, 1], {{'x': {X}}}, None), None, ([2, 3], {{'x': {X}}}, None)", ["(ids, inputs, labels), not NoneType"]),
    ],
)
def test_a_wrong_item_says_what_is_wrong(write_source: WriteSource, text: str, words: list[str]) -> None:
    error = refusal(write_source({"loader.py": HEADER + items(text)}))
    assert error.reason is Reason.DATALOADER_INVALID
    assert error.message.startswith("loader.py: ")
    assert all(word in error.message for word in words), error.message


@pytest.mark.parametrize("kind", ["float16", "float64"])
def test_another_floating_point_type_is_taken_where_it_is_declared(write_source: WriteSource, kind: str) -> None:
    source = write_source({"loader.py": HEADER + items(f"([0, 1], {{'x': np.zeros((2, 3), np.{kind})}}, None)")})
    assert [batch.inputs["x"].dtype.name for batch in load(source, types={"x": kind})] == [kind]


@pytest.mark.parametrize("kind", ["float16", "float64"])
def test_single_precision_is_refused_where_another_type_is_declared(write_source: WriteSource, kind: str) -> None:
    source = write_source({"loader.py": HEADER + items(f"([0, 1], {{'x': {X}}}, None)")})
    with pytest.raises(StageError, match=rf"is float32, but the model takes {kind}; add \.astype\(numpy\.{kind}\)"):
        load(source, types={"x": kind})


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ("([2], {'x': np.zeros((1, 3), np.int32)}, None)", ["int32[1, 3] after float32[2, 3]"]),
        ("([2], {'x': np.zeros((1, 3, 1), np.float32)}, None)", ["float32[1, 3, 1] after float32[2, 3]"]),
        ("([2], {'x': np.zeros((1, 3), np.float32)}, {'y': [1]})", ["labels ['y'], but the first had []"]),
    ],
)
def test_batches_are_alike(write_source: WriteSource, second: str, words: list[str]) -> None:
    error = refusal(write_source({"loader.py": HEADER + items(f"([0, 1], {{'x': {X}}}, None)", second)}))
    assert error.reason is Reason.DATALOADER_INVALID
    assert all(word in error.message for word in words), error.message


@pytest.mark.parametrize("size", [1, 2])
def test_a_dataloader_may_use_one_buffer_for_all_batches(write_source: WriteSource, size: int) -> None:
    text = f"""{HEADER}def get_dataloader_fn():
    ids, x, y = np.zeros({size}, np.int64), np.zeros(({size}, 2), np.float32), np.zeros({size}, np.int64)
    def batches():
        for number in range(3):
            for array in (ids, x, y):
                array[...] = number
            yield ids, {{'x': x}}, {{'y': y}}
    return batches
"""
    got = load(write_source({"loader.py": text}))
    assert [(b.ids[0], b.inputs["x"][0, 0], b.labels["y"][0]) for b in got] == [(0, 0, 0), (1, 1, 1), (2, 2, 2)]


def test_other_lengths_are_no_difference(write_source: WriteSource) -> None:
    second = "([2], {'x': np.zeros((1, 8), np.float32)}, None)"
    got = load(write_source({"loader.py": HEADER + items(f"([0, 1], {{'x': {X}}}, None)", second)}))
    assert [batch.inputs["x"].shape for batch in got] == [(2, 3), (1, 8)]


def test_no_batch_is_an_error(write_source: WriteSource) -> None:
    assert refusal(write_source({"loader.py": items()})).reason is Reason.DATALOADER_INVALID


def test_labels_are_needed_where_a_threshold_is_set(write_source: WriteSource) -> None:
    source = write_source({"loader.py": HEADER + items(f"([0, 1], {{'x': {X}}}, {{}})")})
    assert refusal(source, needs_labels=True).reason is Reason.DATALOADER_INVALID


def test_a_scalar_gets_the_dimension_that_a_server_needs(write_source: WriteSource) -> None:
    source = write_source({"loader.py": HEADER + items("([7], {'x': np.array(0.5, np.float32)}, None)")})
    (batch,) = load(source, max_batch_size=0)
    assert batch.inputs["x"].tolist() == [0.5]


@pytest.mark.parametrize("returned", ["[]", "None"])
def test_a_dataloader_returns_a_function(write_source: WriteSource, returned: str) -> None:
    error = refusal(write_source({"loader.py": f"def get_dataloader_fn(): return {returned}"}))
    assert error.reason is Reason.ENTRYPOINT_INVALID


def test_an_exception_while_iterating_names_the_line(write_source: WriteSource) -> None:
    text = f"""{HEADER}def get_dataloader_fn():
    def batches():
        yield [0, 1], {{'x': {X}}}, None
        {{}}['file']
    return batches
"""
    error = refusal(write_source({"loader.py": text}))
    assert (error.reason, error.message) == (Reason.USER_CODE_FAILED, "loader.py:5: KeyError: 'file'")


@pytest.mark.parametrize("ids", [["img_1", "img_22"], [7, 8], numpy.array(["a", "b"], dtype=object)])
def test_the_dump_is_read_back_without_pickle(tmp_path: Path, ids: object) -> None:
    labels = {"classes": numpy.array(["cat", "dog"])}
    arrays: Mapping[str, numpy.ndarray] = {"a/b": numpy.ones((2, 3), numpy.float32), "x.npy": numpy.zeros(2, bool)}
    batch = Batch(numpy.asarray(ids).astype(str), arrays, labels, {"OUTPUT__0": numpy.zeros((2, 0), numpy.float32)})
    write_batch(tmp_path, 0, batch)
    write_batch(tmp_path, 1, batch)
    first, second = read_batches(tmp_path)
    for got in (first, second):
        assert got.ids.tolist() == [str(each) for each in numpy.asarray(ids)]
        assert {name: array.tolist() for name, array in got.inputs.items()} == {
            "a/b": [[1, 1, 1], [1, 1, 1]],
            "x.npy": [False, False],
        }
        assert got.labels["classes"].tolist() == ["cat", "dog"]
        assert got.outputs["OUTPUT__0"].shape == (2, 0)


def test_a_dump_without_batches_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no batches"):
        next(read_batches(tmp_path))
