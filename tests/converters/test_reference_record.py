"""What a reference must be worth; the framework here is a NumPy function."""

import base64
import json
import re
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy
import pytest

from tests.converters.sources import WriteSource
from triton_converters.claim_store.dump import Array, Arrays, Batch, read_batches
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.incoming.documents import Names
from triton_converters.measuring.perf_input import PerfInput
from triton_converters.stages.reference import produce, progress, publish
from triton_converters.stages.reference.soundness import check_alone, check_joined, disagreement
from triton_plugin.reading.job_log import latest_line

REUSED = """
import numpy as np
def get_dataloader_fn(shapes: str):
    def batches():
        x = np.zeros((1, 3), np.float32)
        for number in range(3):
            x[...] = number + np.arange(3)
            yield [number], {"x": x}, None
    return batches
"""
LABELLED = """
import datetime, numpy as np
def get_dataloader_fn(shapes: str):
    def batches():
        for number in range(2):
            x = np.random.default_rng(number).normal(size=(2, 3)).astype(np.float32)
            yield {ids}, {{"x": x}}, {labels}
    return batches
"""
LOADER = """
import numpy as np
def get_dataloader_fn(shapes: str, labels: bool = False, kind: str = "float32", constant: bool = False):
    random = np.random.default_rng(0)
    def batches():
        for number, shape in enumerate(eval(shapes)):
            x = np.ones(shape) if constant else random.normal(size=shape) * 10
            ids = [f"{number}-{i}" for i in range(shape[0])]
            x = x > 0 if kind == "bool" else np.asarray(x, kind)
            yield ids, {"x": x}, {"y": np.arange(shape[0])} if labels else None
    return batches
"""
Forward = Callable[[Array], dict[str, Array]]


class Numpy:
    """A model that is a function of one array."""

    inputs = ("x",)

    def __init__(self, forward: Forward) -> None:
        self.forward = forward
        self.outputs = tuple(forward(numpy.ones((2, 3), numpy.float32)))
        self.calls: list[int] = []

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        self.calls.append(len(inputs["x"]))
        return self.forward(inputs["x"])


def total(x: Array) -> dict[str, Array]:
    return {"y": x.sum(axis=-1, dtype=x.dtype), "z": x * 2}


Record = Callable[..., tuple[Signature, int, int, tuple[str, ...]]]
Dump = Callable[..., tuple[Signature, int, int]]


@pytest.fixture
def record(write_source: WriteSource, tmp_path: Path) -> Record:
    """Makes the reference, and returns the signature, the numbers of samples and batches, and the warnings."""

    def run(
        forward: Forward, shapes: str, max_batch_size: int = 4, loader_text: str = LOADER, **arguments: str
    ) -> tuple[Signature, int, int, tuple[str, ...]]:
        code = ModelCode("pyt", Entrypoint("model.py", {}), max_batch_size)
        loader = Entrypoint("loader.py", {"shapes": shapes, **arguments})
        request = ReferenceRequest("k" * 16, "d" * 64, code, loader, 256, needs_labels=False)
        incoming, directory = tmp_path / "incoming", tmp_path / "dump"
        incoming.mkdir()
        directory.mkdir()
        model = Numpy(forward)
        produce.record(model, request, write_source({"loader.py": loader_text}), incoming)
        return publish.record(request, Names(model.inputs, model.outputs), incoming, directory)

    return run


@pytest.fixture
def dump(record: Record) -> Dump:
    """As ``record``, without the warnings."""
    return lambda *asked, **arguments: record(*asked, **arguments)[:3]


def refusal(dump: Dump, forward: Forward, shapes: str, **arguments: str) -> StageError:
    with pytest.raises(StageError) as caught:
        dump(forward, shapes, **arguments)
    return caught.value


def test_the_dump_holds_every_batch_and_its_outputs(dump: Dump, tmp_path: Path) -> None:
    signature, samples, batches = dump(total, "[(4, 3), (2, 3)]", labels="true")
    assert signature == Signature(
        (Tensor("x", "FP32", (3,)),), (Tensor("y", "FP32", ()), Tensor("z", "FP32", (3,))), max_batch_size=4
    )
    assert (samples, batches) == (6, 2)
    first, second = read_batches(tmp_path / "dump")
    assert first.ids.tolist() == ["0-0", "0-1", "0-2", "0-3"]
    assert second.labels["y"].tolist() == [0, 1]
    assert numpy.array_equal(first.outputs["z"], first.inputs["x"] * 2)


def test_the_log_tells_how_many_samples_are_answered(
    dump: Dump, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    dump(total, "[(4, 3), (2, 3)]")
    seconds = r"samples answered in \d+\.\d s"
    expected = (
        "reference: the framework answers samples, 256 at most\n"
        f"reference: 4 {seconds} so far, and it ends at 256\n"
        f"reference: 6 {seconds} so far, and it ends at 256\n"
        f"reference: 6 {seconds}, which are all\n"
    )
    log = capsys.readouterr().out
    assert re.fullmatch(expected, log), log
    last = log.splitlines()[-1]
    assert latest_line("reference", f"{log}epoch 3\n") == last, "the plugin shows it while the Job runs"


def test_the_log_counts_a_request_without_a_batch_dimension_as_the_bound_does(
    dump: Dump, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dump(total, "[(5, 3), (6, 3)]", max_batch_size=0)[1] == 2
    assert "reference: 2 samples answered" in capsys.readouterr().out.splitlines()[-1]


def test_batches_of_one_buffer_are_judged_as_they_were_given(dump: Dump, tmp_path: Path) -> None:
    assert dump(total, "", loader_text=REUSED)[1:] == (3, 3)
    assert [batch.inputs["x"][0].tolist() for batch in read_batches(tmp_path / "dump")] == [
        [0, 1, 2],
        [1, 2, 3],
        [2, 3, 4],
    ]


@pytest.mark.parametrize(
    ("labels", "read"),
    [
        ("{'y': [1, 2]}", [1, 2]),
        ("{'y': ['a', 'bc']}", ["a", "bc"]),
        ("{'y': ['', '']}", ["", ""]),
        ("{'y': [b'a', b'bc']}", [b"a", b"bc"]),
        ("{'y': (True, False)}", [True, False]),
        ("{'y': [np.float64(.5), np.int8(2)]}", [0.5, 2.0]),
        ("{'y': np.array(['a', 'bc'], object)}", ["a", "bc"]),
        ("{'y': np.array([1, 2], object)}", [1, 2]),
        ("{'y': np.array([1, True, .5, np.float32(2)], object).reshape(2, 2)}", [[1, 1], [0.5, 2]]),
        ("{'y': np.array(['a', 'bc'], np.dtypes.StringDType())}", ["a", "bc"]),
        ("{'y': [1j, 2]}", [1j, 2]),
        ("{'größe/y': [1, 2]}", [1, 2]),
        ("{7: [1, 2]}", [1, 2]),
    ],
)
def test_labels_may_be_what_people_write(dump: Dump, tmp_path: Path, labels: str, read: list[object]) -> None:
    dump(total, "", loader_text=LABELLED.format(ids="['a', 'b']", labels=labels))
    (array,) = next(read_batches(tmp_path / "dump")).labels.values()
    assert array.tolist() == read


@pytest.mark.parametrize(
    ("ids", "labels", "words"),
    [
        ("[0, 1]", "{'y': ['a', None]}", "label y: its elements are of the types NoneType, str"),
        ("[0, 1]", "{'y': np.array([1, 'a'], object)}", "label y: its elements are of the types int, str"),
        ("[0, 1]", "{'y': [datetime.datetime.now()] * 2}", "label y: its elements are of the types datetime"),
        ("[0, 1]", "{'y': [2**70, 1]}", "label y: its elements are of the types int"),
        ("[0, 1]", "{'y': np.zeros(2, [('a', int), ('b', int)])}", "label y is of the type [('a'"),
        ("[0, 1]", "{'y': np.zeros(2, 'V2')}", "label y is of the type |V2"),
        ("['\\udce9', 'b']", "{}", "ids holds text that is not Unicode"),
        ("[0, 1]", "{'y': ['\\udce9', 'b']}", "label y holds text that is not Unicode"),
        ("[0, 1]", "{'y\\n': [1, 2]}", "label 'y\\n' has a name that is too long"),
        ("[0, 1]", "{'y' * 999: [1, 2]}", "has a name that is too long"),
        ("[0, 1]", "{1: [1, 2], '1': [3, 4]}", "two labels are named 1"),
    ],
)
def test_labels_that_cannot_be_kept_are_the_dataloader_s_fault(dump: Dump, ids: str, labels: str, words: str) -> None:
    error = refusal(dump, total, "", loader_text=LABELLED.format(ids=ids, labels=labels))
    assert error.reason is Reason.DATALOADER_INVALID
    assert error.message.startswith("loader.py: ")
    assert words in error.message, error.message


def test_a_dimension_that_changes_between_batches_varies(dump: Dump) -> None:
    signature, _, _ = dump(total, "[(2, 5, 3), (2, 7, 3), (1, 5, 3)]")
    assert [tensor.dims for tensor in (*signature.inputs, *signature.outputs)] == [(-1, 3), (-1,), (-1, 3)]


def test_without_batch_dimension_nothing_is_removed(dump: Dump) -> None:
    signature, samples, _ = dump(total, "[(5, 3), (6, 3)]", max_batch_size=0)
    assert [tensor.dims for tensor in (*signature.inputs, *signature.outputs)] == [(-1, 3), (-1,), (-1, 3)]
    assert samples == 2


def test_without_batch_dimension_an_output_may_be_a_scalar(dump: Dump) -> None:
    signature, samples, _ = dump(lambda x: {"y": numpy.asarray(x.sum())}, "[(5, 3), (6, 3)]", max_batch_size=0)
    assert (signature.outputs[0].dims, samples) == ((), 2)


@pytest.mark.parametrize(
    ("kind", "name"), [("int64", "INT64"), ("int32", "INT32"), ("uint8", "UINT8"), ("bool", "BOOL")]
)
def test_types_stay_as_the_dataloader_yields_them(dump: Dump, kind: str, name: str) -> None:
    def mean(x: Array) -> dict[str, Array]:
        return {"y": x.mean(axis=-1, dtype=numpy.float32)}

    signature, _, _ = dump(mean, "[(4, 3), (4, 3)]", kind=kind)
    assert signature.inputs[0].data_type == name


def test_perf_analyzer_s_input_is_real_samples_of_one_shape(dump: Dump, tmp_path: Path) -> None:
    dump(total, "[(2, 5), (2, 7), (1, 5)]")
    steps = json.loads((tmp_path / "dump" / "perf.json").read_text())["data"]
    rows = [row for batch in read_batches(tmp_path / "dump") for row in batch.inputs["x"] if len(row) == 5]
    assert [step["x"]["shape"] for step in steps] == [[5]] * 3
    decoded = [numpy.frombuffer(base64.b64decode(step["x"]["content"]["b64"]), "<f4") for step in steps]
    assert numpy.array_equal(decoded, rows)


def test_perf_analyzer_s_input_is_bounded_and_never_empty() -> None:
    batch: Arrays = {"x": numpy.zeros((10, 300), numpy.float32), "n": numpy.arange(10)}
    perf_input = PerfInput(batched=True, limit_bytes=5000)
    perf_input.add(batch)
    steps = json.loads(perf_input.to_json())["data"]
    assert len(steps) == 3
    assert steps[2]["n"] == {"content": {"b64": base64.b64encode(bytes([2] + [0] * 7)).decode()}, "shape": [1]}
    small = PerfInput(batched=False, limit_bytes=10)
    small.add(batch)
    small.add(batch)
    assert [step["x"]["shape"] for step in json.loads(small.to_json())["data"]] == [[10, 300]]


@pytest.mark.parametrize("value", [numpy.nan, numpy.inf])
def test_an_output_with_nan_or_with_infinities_alone_is_refused(dump: Dump, value: float) -> None:
    error = refusal(dump, lambda x: {"y": x * numpy.float32(value)}, "[(4, 3)]")
    assert error.reason is Reason.REFERENCE_NOT_FINITE
    assert "output y" in error.message


def test_infinities_among_numbers_are_right_and_told(record: Record, tmp_path: Path) -> None:
    def masked(x: Array) -> dict[str, Array]:
        return {"scores": numpy.where(numpy.arange(3) == 1, numpy.float32(-numpy.inf), x)}

    *_, warnings = record(masked, "[(4, 3), (4, 3)]")
    words = "the framework's answers in scores hold infinities, which a candidate must have in the same places"
    assert warnings == (words,)
    assert numpy.isneginf(next(read_batches(tmp_path / "dump")).outputs["scores"][:, 1]).all()


def test_an_infinity_that_comes_and_goes_is_no_reproducible_answer(dump: Dump) -> None:
    signs = cycle((1, -1))
    error = refusal(dump, lambda x: {"y": numpy.where(x < 0, x, next(signs) * numpy.float32(numpy.inf))}, "[(4, 3)]")
    assert error.reason is Reason.REFERENCE_NOT_REPRODUCIBLE


@pytest.mark.parametrize(("turned", "agrees"), [(2, True), (200, False)])
def test_a_near_tie_may_turn_in_an_argmax_of_many_voxels(turned: int, agrees: bool) -> None:
    voxels = numpy.random.default_rng(0).integers(0, 4, (1, 600_000))
    again = voxels.copy()
    again[0, :turned] += 1
    assert (disagreement({"y": again}, {"y": voxels}) is None) is agrees


def test_a_model_that_disagrees_with_itself_is_refused(dump: Dump) -> None:
    random = numpy.random.default_rng(1)

    def dropout(x: Array) -> dict[str, Array]:
        return {"y": x * numpy.asarray(random.random(x.shape) > 0.5, x.dtype)}

    error = refusal(dump, dropout, "[(4, 3)]")
    assert error.reason is Reason.REFERENCE_NOT_REPRODUCIBLE
    assert "run twice" in error.message


def noisy(scale: float, share: float) -> Forward:
    """Answers around a size, that differ by a share of it from run to run."""
    random = numpy.random.default_rng(1)
    return lambda x: {"y": (x * scale * (1 + random.normal(size=x.shape) * share)).astype(x.dtype)}


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_noise_of_the_last_bits_is_no_disagreement(dump: Dump, scale: float) -> None:
    assert dump(noisy(scale, 1e-6), "[(4, 3)]")[1] == 4


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_more_noise_is_a_disagreement_whatever_the_size(dump: Dump, scale: float) -> None:
    assert refusal(dump, noisy(scale, 0.1), "[(4, 3)]").reason is Reason.REFERENCE_NOT_REPRODUCIBLE


@pytest.mark.parametrize("shapes", ["[(4, 3)]", "[(1, 3), (1, 3)]"])
def test_a_model_that_uses_statistics_of_the_batch_is_refused(dump: Dump, shapes: str) -> None:
    def normalise(x: Array) -> dict[str, Array]:
        return {"y": x - x.mean(axis=0, keepdims=True) + x[:, :1]}

    error = refusal(dump, normalise, shapes)
    assert error.reason is Reason.BATCHING_UNSUPPORTED
    assert "statistics of the batch" in error.message


def test_an_answer_that_is_near_0_by_chance_is_held_against_what_answers_usually_are() -> None:
    def batch(*answers: float) -> Batch:
        return Batch(numpy.arange(len(answers)), {}, {}, {"y": numpy.array(answers, numpy.float32)[:, None]})

    def alone(answer: float) -> Arrays:
        return batch(answer).outputs

    check_alone([alone(0.002 + 4e-7)], batch(0.002, 0.6, -0.7, 0.5))
    check_joined(batch(0.002, 0.6).outputs, batch(0.002 + 4e-7), batch(0.6))
    # Nor does one large answer hide what the others do.
    for answer in (0.501, 0.499):
        with pytest.raises(StageError, match="alone than in a batch of 4"):
            check_alone([alone(answer)], batch(0.5, 0.6, -0.7, 1e6))


@pytest.mark.parametrize(
    "words",
    [
        "model.py:3: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB",
        "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes",
        "model.py:3: numpy._core._exceptions._ArrayMemoryError: Unable to allocate 9.00 GiB for an array",
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor",
        "model.onnx failed in onnxruntime 1.22: Failed to allocate memory for requested buffer of size 9",
    ],
)
def test_a_batch_that_lacks_memory_is_batched_all_the_same(dump: Dump, words: str) -> None:
    def large(x: Array) -> dict[str, Array]:
        if len(x) > 2:
            raise StageError(Reason.FRAMEWORK_FAILED, words)
        return total(x)

    error = refusal(dump, large, "[(4, 3)]")
    assert error.reason is Reason.FRAMEWORK_FAILED
    assert error.message.startswith(f"a single sample works, but a batch of 4 fails: {words}; ")
    assert "set models[].config.maxBatchSize to less than 4" in error.message


def spoken(x: Array) -> dict[str, Array]:
    """Each sample's first value as often as its last one says, padded to the longest of the batch."""
    lengths = x[:, -1].astype(numpy.int64)
    times = numpy.arange(lengths.max())
    return {"y": (times < lengths[:, None]) * x[:, :1], "z": lengths[:, None]}


def test_a_length_that_depends_on_the_batch_is_padding_and_varies() -> None:
    batch = numpy.array([[1.5, 2.0], [2.5, 4.0]], dtype=numpy.float32)
    alone = {name: array[:1] for name, array in spoken(batch).items()}
    assert alone["y"].shape == (1, 4)
    assert spoken(batch[:1])["y"].shape == (1, 2)
    assert disagreement(spoken(batch[:1]), alone) is None
    alone["y"][0, 3] = 1.0
    assert "is not all zeros" in str(disagreement(spoken(batch[:1]), alone))


def test_the_outputs_of_single_samples_count_for_the_signature(dump: Dump) -> None:
    def longest(x: Array) -> dict[str, Array]:
        width = 2 + (x[:, 0] > 0)
        return {"y": x[:, : width.max()] * (numpy.arange(width.max()) < width[:, None])}

    signature, _, batches = dump(longest, "[(4, 4)]")
    assert batches == 1
    assert signature.outputs[0].dims == (-1,)


def test_a_model_whose_outputs_are_all_constant_is_refused(dump: Dump) -> None:
    error = refusal(dump, lambda x: {"z": numpy.ones((len(x), 2), numpy.float32)}, "[(4, 3), (4, 3)]")
    assert error.reason is Reason.REFERENCE_CONSTANT
    assert "output z" in error.message
    assert "all 8 samples" in error.message
    assert "uses its input" in error.message


def test_a_constant_output_beside_one_that_varies_is_told(record: Record) -> None:
    *_, warnings = record(lambda x: {"y": x, "anchors": numpy.ones((len(x), 2), numpy.float32)}, "[(4, 3), (4, 3)]")
    assert len(warnings) == 1
    assert warnings[0].startswith("output anchors is the same for all 8 samples")


def test_an_output_that_is_always_empty_is_told_in_words_of_its_own(record: Record, dump: Dump) -> None:
    *_, warnings = record(lambda x: {"y": x, "boxes": x[:, :0]}, "[(4, 3), (4, 3)]")
    assert warnings[0].startswith("the model finds nothing in the dataloader's samples (boxes empty)")


def test_a_model_that_finds_nothing_at_all_is_refused(dump: Dump) -> None:
    error = refusal(dump, lambda x: {"boxes": x[:, :0]}, "[(4, 3), (4, 3)]")
    assert error.reason is Reason.REFERENCE_CONSTANT
    assert error.message == "output boxes is empty for all 8 samples (the model finds nothing in them)"


def test_a_length_that_was_always_0_is_open(dump: Dump) -> None:
    signature = dump(lambda x: {"y": x, "found": numpy.zeros((len(x), 0, 2), numpy.int64)}, "[(4, 3)]")[0]
    assert [each.dims for each in signature.outputs] == [(3,), (-1, 2)]


def test_the_same_sample_over_and_over_is_named_as_the_cause(dump: Dump) -> None:
    error = refusal(dump, total, "[(4, 3)]", constant="true")
    assert error.reason is Reason.REFERENCE_CONSTANT
    assert "all inputs are the same" in error.message


def test_a_class_number_may_be_the_same_for_all(dump: Dump) -> None:
    def classify(x: Array) -> dict[str, Array]:
        return {"y": x, "class": numpy.zeros(len(x), numpy.int64)}

    assert dump(classify, "[(4, 3)]")[1] == 4


def test_integers_that_are_all_the_same_prove_nothing(dump: Dump) -> None:
    error = refusal(dump, lambda x: {"class": numpy.zeros(len(x), numpy.int64)}, "[(4, 3)]")
    assert error.reason is Reason.REFERENCE_CONSTANT


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        (lambda x: {"y": x.astype(numpy.float16)}, "float16"),
        (lambda x: {"y": x if x.shape[-1] == 3 else x[..., None]}, "changes type or rank"),
    ],
)
def test_outputs_that_cannot_be_served_are_refused(dump: Dump, forward: Forward, words: str) -> None:
    error = refusal(dump, forward, "[(4, 3), (4, 5)]")
    assert error.reason is Reason.FRAMEWORK_FAILED
    assert words in error.message, error.message


@pytest.mark.parametrize("forward", [lambda x: {"y": x.sum(dtype=numpy.float32)}, lambda x: {"y": x.T.copy()}])
def test_outputs_without_the_batch_dimension_are_refused(dump: Dump, forward: Forward) -> None:
    error = refusal(dump, forward, "[(4, 3), (4, 5)]")
    assert error.reason is Reason.BATCHING_UNSUPPORTED
    assert "so its first dimension is not the batch; set models[].config.maxBatchSize to 0" in error.message


@pytest.mark.parametrize(("error", "same"), [(1e-3, True), (2e-2, False)])
def test_a_model_in_half_precision_rounds_otherwise_in_another_batch(error: float, same: bool) -> None:
    whole = numpy.random.default_rng(1).normal(size=(4, 50)).astype(numpy.float16).astype(numpy.float32)
    alone = (whole * numpy.float32(1 + error)).astype(numpy.float16).astype(numpy.float32)
    assert (disagreement({"y": alone}, {"y": whole}) is None) is same
    # An answer of fp32 has digits that fp16 lacks.
    assert disagreement({"y": alone + numpy.float32(1e-7)}, {"y": whole}) is not None
