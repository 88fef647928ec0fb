"""The backends answer as NVIDIA's do, and run a dynamic batch as one call of the runtime."""

import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

from tests.images.server import Server
from tests.images.types_served import ONNX_TYPES, TORCH_TYPES
from triton_converters.measuring.counters import counters

pytestmark = pytest.mark.images
BACKENDS = {"onnxruntime": ("x", "y"), "pytorch": ("INPUT__0", "OUTPUT__0")}


def tensor(name: str, array: np.ndarray, data_type: str = "FP32") -> triton.InferInput:
    made = triton.InferInput(name, list(array.shape), data_type)
    made.set_data_from_numpy(array)
    return made


def ask(server: Server, model: str, **arrays: np.ndarray) -> triton.InferResult:
    return server.client().infer(model, [tensor(name, array) for name, array in arrays.items()])


def rows(*values: float) -> np.ndarray:
    return np.repeat(np.array(values, np.float32)[:, None], 4, axis=1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_dynamic_batch_is_one_call(good: Server, backend: str) -> None:
    source, result = BACKENDS[backend]
    model = f"{backend}_batch"
    client = good.client()
    batches = (1, 2, 1, 1, 3) * 4
    with ThreadPoolExecutor(len(batches)) as pool:
        requests = [[tensor(source, rows(*[i] * batch))] for i, batch in enumerate(batches)]
        answers = list(pool.map(lambda request: client.infer(model, request), requests))

    count = good.metric("nv_inference_count", model)[""]
    executions = good.metric("nv_inference_exec_count", model)[""]
    for i, batch in enumerate(batches):
        np.testing.assert_array_equal(answers[i].as_numpy(result), rows(*[2 * i] * batch))
    assert count == 32
    assert executions < 20, "no requests were batched"
    assert sum(good.runtime_calls(model).values()) == executions


@pytest.mark.parametrize("backend", BACKENDS)
def test_instances_share_the_work(good: Server, backend: str) -> None:
    source, _ = BACKENDS[backend]
    client = good.client()
    with ThreadPoolExecutor(8) as pool:
        requests = [[tensor(source, rows(i))] for i in range(200)]
        list(pool.map(lambda request: client.infer(f"{backend}_instances", request), requests))
    calls = good.runtime_calls(f"{backend}_instances")
    assert len(calls) == 2
    assert min(calls.values()) > 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_warmup_runs_as_often_as_it_says_before_the_first_request(good: Server, backend: str) -> None:
    assert sum(good.runtime_calls(f"{backend}_warm").values()) == 3
    assert good.metric("nv_inference_exec_count", f"{backend}_warm")[""] == 3  # warm-ups count as executions


@pytest.mark.parametrize("backend", BACKENDS)
def test_gpu_accelerator_is_ignored_with_a_warning(good: Server, backend: str) -> None:
    assert good.client().is_model_ready(f"{backend}_lookup")
    assert f"model '{backend}_lookup': execution accelerator 'tensorrt' is for GPUs and ignored" in good.log()


@pytest.mark.parametrize("backend", BACKENDS)
def test_failed_call_answers_an_error_and_the_next_call_works(good: Server, backend: str) -> None:
    client = good.client()
    model = f"{backend}_lookup"
    before = sum(good.metric("nv_inference_request_failure", model).values())
    with pytest.raises(
        InferenceServerException, match=r"(?i)index out of range|indices element out of data bounds"
    ) as error:
        client.infer(model, [tensor("x", np.array([[99]], np.int64), "INT64")])
    assert error.value.status() == "StatusCode.INTERNAL"
    assert good.reaches("nv_inference_request_failure", model, before + 1), "a soak counts it"
    answer = client.infer(model, [tensor("x", np.array([[3], [0]], np.int64), "INT64")])
    np.testing.assert_array_equal(answer.as_numpy("y"), [[[6, 7]], [[0, 1]]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_failure_of_an_ensemble_counts_once(good: Server, backend: str) -> None:
    """A soak reads its name alone, under which Triton counts it twice."""
    model = f"{backend}_ensemble"

    def counted() -> tuple[int, int]:
        with urllib.request.urlopen(f"http://127.0.0.1:{good.ports[2]}/metrics", timeout=5) as response:
            found = counters(response.read().decode(), "pod", model)
        return found.succeeded, found.failed

    before, failures = counted(), sum(good.metric("nv_inference_request_failure", model).values())
    with pytest.raises(InferenceServerException):
        good.client().infer(model, [tensor("x", np.array([[99]], np.int64), "INT64")])
    good.client().infer(model, [tensor("x", np.array([[3]], np.int64), "INT64")])
    assert good.reaches("nv_inference_request_failure", model, failures + 2), "alerts halve this"
    assert good.reaches("nv_inference_request_success", model, before[0] + 1)
    assert [late - early for early, late in zip(before, counted(), strict=True)] == [1, 1]


def sample(data_type: str) -> np.ndarray:
    dtype = np.dtype(triton_to_np_dtype(data_type))
    if dtype == np.bool_:
        return np.array([[True, False], [False, True]])
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return np.array([[limits.min, limits.max], [0, 1]], dtype=dtype)


@pytest.mark.parametrize(
    ("model", "names", "types"),
    [
        ("onnxruntime_types", "{0}put_{2}", ONNX_TYPES),
        ("pytorch_types", "{0}put__{1}", TORCH_TYPES),
    ],
)
def test_every_type_arrives_and_returns(good: Server, model: str, names: str, types: tuple[str, ...]) -> None:
    inputs = [tensor(names.format("in", i, name), sample(name), name) for i, name in enumerate(types)]
    answer = good.client().infer(model, inputs)
    for i, name in enumerate(types):
        got = answer.as_numpy(names.format("out", i, name))
        np.testing.assert_array_equal(got, sample(name), err_msg=name)
        assert got.dtype == sample(name).dtype


def words(*rows: list[str | bytes]) -> triton.InferInput:
    encoded = [[item if isinstance(item, bytes) else item.encode() for item in row] for row in rows]
    return tensor("words", np.array(encoded, dtype=object), "BYTES")


def texts(answer: triton.InferResult, name: str) -> list[list[str]]:
    return [[item.decode() for item in row] for row in answer.as_numpy(name)]


def test_strings_arrive_and_return(good: Server) -> None:
    rows = [["no", "grün", "no"], ["", "日本" * 5000, "no"], ["no", "no", "no"]]
    answer = good.client().infer("onnxruntime_strings", [words(*rows)])
    assert texts(answer, "echo") == rows
    np.testing.assert_array_equal(answer.as_numpy("numbers"), [[0, 1, 0], [-1, -1, 0], [0, 0, 0]])
    assert texts(answer, "names") == [["no", "grün", "no"], ["日本", "日本", "no"], ["no", "no", "no"]]
    np.testing.assert_array_equal(answer.as_numpy("ones")[:2], [[[1, 0], [0, 1], [1, 0]], [[0, 0], [0, 0], [1, 0]]])
    np.testing.assert_array_equal(answer.as_numpy("pairs"), [[0, 1], [0, 0], [2, 0]])


def test_only_the_request_without_utf_8_is_refused(good: Server) -> None:
    client = good.client()
    before = good.metric("nv_inference_exec_count", "onnxruntime_strings")[""]
    requests = [words(["no", b"\xff", "no"])] + [words([f"{number}", "", "no\0cut"]) for number in range(7)]
    with ThreadPoolExecutor(len(requests)) as pool:
        first, *others = [pool.submit(client.infer, "onnxruntime_strings", [request]) for request in requests]
    error = first.exception()
    assert isinstance(error, InferenceServerException)
    assert error.status() == "StatusCode.INVALID_ARGUMENT"
    assert "input 'words' holds a string that is not UTF-8" in (error.message() or "")
    assert [texts(each.result(), "echo") for each in others] == [[[f"{number}", "", "no"]] for number in range(7)]
    executions = good.metric("nv_inference_exec_count", "onnxruntime_strings")[""] - before
    assert executions < len(requests), "no requests were batched"


def test_models_without_batch_dimension(good: Server) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(ask(good, "pytorch_unbatched", x=x).as_numpy("y"), 2 * x)
    scaled = ask(good, "onnxruntime_unbatched", x=x, scale=np.array([3], np.float32))
    np.testing.assert_array_equal(scaled.as_numpy("y"), 3 * x)


@pytest.mark.parametrize(
    ("model", "left", "right", "difference", "total"),
    [
        ("index", "ANY__0", "ANY__1", "OUT__0", "OUT__1"),
        ("forward", "left", "right", "OUT__0", "OUT__1"),
        ("order", "one", "two", "three", "four"),
    ],
)
def test_pytorch_names(good: Server, model: str, left: str, right: str, difference: str, total: str) -> None:
    answer = ask(good, f"pytorch_names_{model}", **{right: rows(2), left: rows(7)})
    np.testing.assert_array_equal(answer.as_numpy(difference), rows(5))
    np.testing.assert_array_equal(answer.as_numpy(total), rows(72))


def test_pytorch_answers_the_same_at_every_call(good: Server) -> None:
    for _ in range(4):
        np.testing.assert_array_equal(ask(good, "pytorch_rounded", x=rows(3, 5)).as_numpy("y"), rows(4, 8).astype(int))


def test_pytorch_dictionary(good: Server) -> None:
    answer = ask(good, "pytorch_dictionary", b=rows(2), a=rows(7))
    np.testing.assert_array_equal(answer.as_numpy("y"), rows(5))


def test_configuration_is_served_as_written(good: Server) -> None:
    config = good.client().get_model_config("onnxruntime_instances", as_json=True)["config"]
    assert config["backend"] == "onnxruntime"
    assert [item["name"] for item in config["input"]] == ["x"]
    assert "dynamic_batching" not in config
