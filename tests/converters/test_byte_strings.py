"""Byte strings that are no text, such as a picture's file: each place that keeps or sends them gives them back."""

import base64
import io
import json
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper
from tritonclient.grpc import InferInput, InferResult, service_pb2

from tests.converters.sources import WriteSource
from tests.converters.test_dataloader import items, load, refusal
from triton_converters.claim_store import served_outputs
from triton_converters.claim_store.dump import Array, Batch, read_batches, read_inputs, write_batch
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Tolerance
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.gates import answers, exact
from triton_converters.gates.outputs import check_outputs
from triton_converters.incoming import arrays
from triton_converters.incoming.documents import Names
from triton_converters.load import onnx as onnx_loader
from triton_converters.measuring import load_input, perf_input
from triton_converters.measuring.server import Server
from triton_converters.model_config.data_types import alike, strings, triton_type, wire, wire_bytes
from triton_converters.stages.reference import soundness
from triton_converters.user import metrics

STRINGS: dict[str, list[bytes]] = {
    "empty": [b"", b""],
    "text": ["é".encode(), b"a longer one"],
    "zeros at an end": [b"a\0", b"b\0\0"],
    "nothing but zeros": [b"\0", b"\0\0\0"],
    "zeros inside": [b"a\0b", b"\0c"],
    "no text": [b"\xff\xd8\xff\xe0", b"\x80"],
    "text and no text": [b"a", b"\xff"],
    "5 MB and nothing": [b"\xff\xd8" + bytes(5_000_000), b""],
}
EACH = pytest.mark.parametrize("items_", STRINGS.values(), ids=STRINGS.keys())
SIGNATURE = Signature((Tensor("x", "BYTES", (1,)),), (Tensor("y", "BYTES", (1,)),), 2)
NAMES = Names(("x",), ("y",))
EXACT = Tolerance(0.0, 0.0)


def objects(given: list[Any]) -> Array:
    """[samples, 1], as a dataloader gives them."""
    return numpy.array([*given, None], dtype=object)[:-1, None]


def kept(given: list[bytes]) -> Array:
    return strings(objects(given))


def read(array: Array) -> list[bytes]:
    """The elements, as bytes."""
    assert triton_type(array.dtype) == "BYTES"
    return [each if type(each) is bytes else str(each).encode() for each in array.ravel()]


@EACH
def test_nothing_is_lost_and_text_stays_text(items_: list[bytes]) -> None:
    array = kept(items_)
    assert read(array) == items_
    is_text = items_ in (STRINGS["empty"], STRINGS["text"], STRINGS["zeros inside"])
    assert array.dtype.kind == ("U" if is_text else "O")
    assert wire(array) == b"".join(len(each).to_bytes(4, "little") + each for each in items_)
    assert wire_bytes(array) == len(wire(array))


LONG = 1_000_000
UNEVEN_TEXTS = [b"short", "länger".encode()] * 127 + [b"x" * LONG]
"""As text of a fixed width they take 1 GB."""


@contextmanager
def little_memory() -> Iterator[None]:
    """Fails if what is done takes much more than the text itself."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 40 * LONG
    finally:
        tracemalloc.stop()


def test_memory_is_that_of_the_text() -> None:
    with little_memory():
        array = kept(UNEVEN_TEXTS)
    assert read(array) == UNEVEN_TEXTS
    with little_memory():
        assert read(strings(objects([each.decode() for each in UNEVEN_TEXTS]))) == UNEVEN_TEXTS


def test_a_wide_array_of_the_dataloader_is_packed(write_source: WriteSource) -> None:
    given = "(list(range(16)), {'x': np.array([['a']] * 15 + [['x' * 1_000_000]])}, {})"
    (batch,) = load(write_source({"loader.py": "import numpy as np\n" + items(given)}))
    assert batch.inputs["x"].dtype.hasobject
    assert read(batch.inputs["x"]) == [b"a"] * 15 + [b"x" * LONG]


def test_a_list_of_text_takes_the_memory_of_the_text(write_source: WriteSource) -> None:
    given = "(['a'] * 255 + ['x' * 1_000_000], {'x': [['a']] * 255 + [['x' * 1_000_000]]}, {})"
    source = write_source({"loader.py": items(given)})
    with little_memory():
        (batch,) = load(source)
    assert read(batch.inputs["x"])[-1] == read(batch.ids)[-1] == b"x" * LONG


def test_joined_texts_take_the_memory_of_the_text() -> None:
    batches = [
        Batch(kept([b"1"] * 255)[:, 0], {}, {}, {"y": kept([b"short"] * 255)}),
        Batch(kept([b"2"])[:, 0], {}, {}, {"y": kept([b"x" * LONG])}),
    ]
    with little_memory():
        data = metrics.gather(batches, batched=True)
        assert {type(each) for each in data.y_pred["y"].ravel()} == {str}
    with little_memory():
        joined = numpy.concatenate(alike(*[each.outputs["y"] for each in batches]))
    assert joined.dtype.hasobject
    wide = Batch(numpy.arange(1), {}, {}, {"y": numpy.array([[["a"] * 255]])})
    tall = Batch(numpy.arange(1), {}, {}, {"y": numpy.array([[["x" * LONG]]])})
    with little_memory():
        padded = metrics.gather([wide, tall], batched=True).y_pred["y"]
    assert (padded.shape, padded[1, 0, :2].tolist()) == ((2, 1, 255), ["x" * LONG, ""])


def test_metrics_get_text_of_a_fixed_width_while_it_is_small() -> None:
    batch = Batch(numpy.arange(20), {}, {}, {"y": kept([b"a"] * 19 + [b"b" * 10_000])})
    assert batch.outputs["y"].dtype.hasobject
    assert metrics.gather([batch], batched=True).y_pred["y"].dtype.kind == "U"


def test_what_perf_analyzer_is_given_takes_the_memory_of_the_text() -> None:
    step = {"x": {"content": ["a"] * 255 + ["x" * LONG], "shape": [256]}}
    signature = Signature((Tensor("x", "BYTES", (256,)),), (), 2)
    document = perf_input.to_json([step])
    with little_memory():
        assert read(load_input.first_request(document, signature)["x"])[-1] == b"x" * LONG


def test_one_answer_in_two_forms_is_constant() -> None:
    row = [b"a", b"b" * 2_000]
    one, many = kept(row).reshape(1, 2), numpy.repeat(objects(row).reshape(1, 2), 9, axis=0)
    found = soundness.Variety(batched=True)
    for each in (one, many):
        found.add(Batch(numpy.arange(len(each)), {}, {}, {"y": each}))
    assert found.constant == {"y": True}


@EACH
def test_a_dataloader_may_give(write_source: WriteSource, items_: list[bytes]) -> None:
    if max(map(len, items_)) > 100:
        items_ = [b"\xff\xd8" + bytes(100), b""]
    given = f"([0, 1], {{'x': np.array({[*items_, None]!r}, object)[:-1, None]}}, {{'y': {[*items_]!r}}})"
    (batch,) = load(write_source({"loader.py": "import numpy as np\n" + items(given)}))
    assert read(batch.inputs["x"]) == items_
    listed = f"([0, 1], {{'x': {[[each] for each in items_]!r}}}, {{}})"
    (batch,) = load(write_source({"loader.py": items(listed)}))
    assert read(batch.inputs["x"]) == items_, "a list has no zeros that NumPy drops"


def test_an_array_that_has_lost_zeros_is_refused(write_source: WriteSource) -> None:
    given = "([0, 1], {'x': np.array([[b'a'], [b'b']])}, {})"
    error = refusal(write_source({"loader.py": "import numpy as np\n" + items(given)}))
    assert error.reason is Reason.DATALOADER_INVALID
    assert "give bytes as dtype=object" in error.message


@EACH
def test_the_reference_keeps_them(tmp_path: Path, items_: list[bytes]) -> None:
    batch = Batch(kept(items_)[:, 0], {"x": kept(items_)}, {"l": kept(items_)}, {"y": kept(items_)})
    write_batch(tmp_path, 0, batch)
    (path,) = (tmp_path / "batches").iterdir()
    assert path.stat().st_size < 5 * (sum(map(len, items_)) + 4096), "no element is as long as the longest"
    (own,), (inputs,) = read_batches(tmp_path), read_inputs(tmp_path)
    (incoming,) = arrays.read_batches(tmp_path, ".", NAMES, tmp_path, 9)
    for found in (own, incoming):
        every = (found.ids, found.inputs["x"], found.labels["l"], found.outputs["y"])
        assert [read(each) for each in every] == [items_] * 4
        assert [each.shape for each in every] == [(2,), (2, 1), (2, 1), (2, 1)]
    assert read(inputs["x"]) == items_
    folder = tmp_path / "served"
    folder.mkdir()
    served_outputs.write_chunk(folder, 0, [{"y": each} for each in batch.outputs["y"]])
    assert [read(each["y"]) for each in served_outputs.read_outputs(folder)] == [[each] for each in items_]
    read_again = arrays.read_arrays(tmp_path, "served/000000.npz", tmp_path, 4)
    assert [read(read_again[f"{index}/y"]) for index in (0, 1)] == [[each] for each in items_]


def test_text_is_stored_as_before(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, Batch(numpy.arange(2), {"x": kept([b"a", b"bc"])}, {}, {"y": numpy.zeros((2, 1))}))
    with numpy.load(tmp_path / "batches" / "00000.npz", allow_pickle=False) as file:
        assert sorted(file.files) == ["ids", "inputs/x", "outputs/y"]
        assert file["inputs/x"].dtype == "<U2"


def file_of(**members: Array) -> bytes:
    buffer = io.BytesIO()
    every = {"ids": numpy.arange(2), "outputs/y": numpy.zeros((2, 1)), **members}
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in every.items():
            content = io.BytesIO()
            numpy.save(content, array, allow_pickle=False)
            archive.writestr(f"{name}.npy", content.getvalue())
    return buffer.getvalue()


LENGTHS = numpy.array([[3], [1]])
CONTENT = numpy.frombuffer(b"abcd", numpy.uint8)


@pytest.mark.parametrize(
    ("lengths", "content"),
    [
        (numpy.array([[3], [2]]), CONTENT),
        (numpy.array([[3], [0]]), CONTENT),
        (numpy.array([[5], [-1]]), CONTENT),
        (numpy.array([[2**62], [2**62]]), CONTENT),
        (numpy.array([[2**63 - 1], [2**63 - 1], [6]]), CONTENT),
        (LENGTHS.astype(numpy.uint64), CONTENT),
        (LENGTHS.astype(numpy.float64), CONTENT),
        (LENGTHS, CONTENT.astype(numpy.uint16)),
        (LENGTHS, CONTENT.reshape(2, 2)),
        (None, CONTENT),
    ],
    ids=["long", "short", "negative", "vast", "round", "unsigned", "floats", "wide", "table", "alone"],
)
def test_lengths_that_do_not_fit_are_not_read(tmp_path: Path, lengths: Array | None, content: Array) -> None:
    (tmp_path / "batches").mkdir()
    members = {"bytes/inputs/x": content} | ({} if lengths is None else {"inputs/x": lengths})
    (tmp_path / "batches" / "00000.npz").write_bytes(file_of(**members))
    with pytest.raises(StageError) as error:
        arrays.read_batch(tmp_path, "batches/00000.npz", NAMES, tmp_path)
    assert error.value.reason is Reason.CRASHED
    assert "inputs/x" in error.value.message


@EACH
def test_perf_analyzer_is_given_them(tmp_path: Path, items_: list[bytes]) -> None:
    made = perf_input.PerfInput(batched=True)
    made.add({"x": kept(items_)})
    document = json.loads(made.to_json())
    for step, item in zip(document["data"], items_, strict=True):
        content = step["x"]["content"]
        if isinstance(content, dict):
            assert base64.b64decode(content["b64"]) == len(item).to_bytes(4, "little") + item
        else:
            assert b"\0" not in item, "perf_analyzer ends text there"
            assert content == [item.decode()]
    request = load_input.first_request(made.to_json(), SIGNATURE)
    assert read(request["x"]) == items_[:1]
    shape = load_input.InputShape("x", (3,))
    again = load_input.reshape(made.to_json(), [shape], SIGNATURE)
    assert read(load_input.first_request(again, SIGNATURE)["x"]) == items_[:1] * 3


@EACH
def test_a_server_gets_them_and_answers_them(monkeypatch: pytest.MonkeyPatch, items_: list[bytes]) -> None:
    def infer(model: str, inputs: list[InferInput], outputs: Any, client_timeout: float) -> InferResult:
        sent = inputs[0]._get_content()
        answer = service_pb2.ModelInferResponse(raw_output_contents=[sent])
        answer.outputs.add(name="y", datatype="BYTES", shape=[2, 1])
        return InferResult(answer)

    server = Server.__new__(Server)
    server.model = "m"
    monkeypatch.setattr(server, "_client", SimpleNamespace(infer=infer), raising=False)
    assert read(server.infer({"x": kept(items_)}, ("y",))["y"]) == items_


def served(given: list[bytes], answered: list[bytes]) -> None:
    """Raises StageError if the gates refuse what a server answers."""
    known = dict(zip(given, answered, strict=True))

    def infer(inputs: Any, outputs: Any) -> dict[str, Array]:
        return {"y": kept([known[each] for each in read(inputs["x"])])}

    reference = [Batch(numpy.arange(2), {"x": kept(given[at : at + 2])}, {}, {"y": kept(given[at : at + 2])})
                 for at in range(0, len(given), 2)]  # fmt: skip
    found = answers.collect(infer, reference, SIGNATURE, EXACT, {}, keep_outputs=True)
    check_outputs(found, "fp32", EXACT)
    assert [read(each["y"]) for each in found.outputs] == [[each] for each in answered]


@EACH
def test_the_gates_compare_them(items_: list[bytes]) -> None:
    given = [*items_, b"word", b"\xfe", b"other", b"more"]
    served(given, given)
    with pytest.raises(StageError) as error:
        served(given, [b"\xfe" if each == b"other" else each + b"\0" for each in given])
    assert error.value.reason is Reason.OUTPUTS_DIFFER
    assert len(error.value.message) < 1000


def test_the_gates_see_one_constant() -> None:
    with pytest.raises(StageError) as error:
        served([*STRINGS["no text"], b"a", b"b"], [b"\xff"] * 4)
    assert error.value.reason is Reason.OUTPUTS_DIFFER


def test_background_is_told_by_whole_strings() -> None:
    wanted = objects([b"\xff\0", b"\xff"] + [b"\xff\0"] * 8).reshape(1, 10)
    got = objects([b"\xff\0", b"\xff\0"] + [b"\xff\0"] * 8).reshape(1, 10)
    assert exact.counted(wanted, got).tolist() == [[False, True, *[False] * 8]]


def test_samples_of_a_batch_are_compared_with_those_alone() -> None:
    batch = Batch(numpy.arange(2), {}, {}, {"y": kept([b"a", b"\xff"])})
    soundness.check_outputs(batch, batched=True, halves=False)
    soundness.check_alone([{"y": kept([b"a"])}, {"y": kept([b"\xff"])}], batch)
    with pytest.raises(StageError):
        soundness.check_alone([{"y": kept([b"b"])}, {"y": kept([b"\xff"])}], batch)


def test_metrics_get_them_joined_and_padded() -> None:
    def batch(given: list[bytes], width: int) -> Batch:
        array = numpy.repeat(kept(given), width, axis=1)
        return Batch(numpy.arange(len(given)), {"x": array}, {}, {"y": array})

    data = metrics.gather([batch([b"a", b"b"], 1), batch([b"\xff", b"c\0"], 2)], batched=True)
    wanted = [[b"a", b""], [b"b", b""], [b"\xff", b"\xff"], [b"c\0", b"c\0"]]
    assert data.y_pred["y"].tolist() == wanted
    assert {type(each) for each in data.y_pred["y"].ravel()} == {bytes}


@pytest.fixture
def identity(tmp_path: Path) -> Any:
    """An ONNX model that answers its strings."""
    sides = [helper.make_tensor_value_info(name, TensorProto.STRING, ["batch", 1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", sides[:1], sides[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    return onnx_loader.load(tmp_path, ModelCode("onnx", Entrypoint("m.onnx", {}), 2), "onnx")


@EACH
def test_onnx_runtime_takes_all_text_and_nothing_else(identity: Any, items_: list[bytes]) -> None:
    try:
        [each.decode() for each in items_]
    except UnicodeDecodeError:
        with pytest.raises(StageError, match="input x holds bytes that are no text in UTF-8") as error:
            identity({"x": kept(items_)})
        assert error.value.reason is Reason.FRAMEWORK_FAILED
    else:
        assert read(identity({"x": kept(items_)})["y"]) == items_
