"""Questions to `triton_python_backend_utils`, for the server's own module and for the stand-in of the reference stage.

A question is a function of the module and of a request. What it returns, or the type of what it raises, is its answer,
as JSON. The server runs this file, so it needs only Python's standard library and NumPy.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

Question = Callable[[Any, Any], Any]
QUESTIONS: dict[str, Question] = {}
TYPES = (
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
)
REQUEST: dict[str, Any] = {
    "x": [[1.5, -2.0], [0.0, 3.25], [4.0, 5.0]],
    "words": ["grün", "", "a b"],
    "id": "seven",
    "parameters": {"number": 5, "text": "some", "flag": True},
}
"""What the request holds: an FP32 tensor `x`, a BYTES tensor `words`, and its outputs are `y` and `z`."""


def question(function: Question) -> Question:
    """Add a function to the questions under its name."""
    QUESTIONS[function.__name__] = function
    return function


def described(value: Any) -> Any:
    """Return an answer as JSON can hold it, with the types that a user's file sees."""
    if isinstance(value, np.ndarray):
        items = [described(item) for item in value.ravel().tolist()]
        return {"array": value.dtype.str, "shape": list(value.shape), "items": items}
    if isinstance(value, type):
        return {"type": value.__name__}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, tuple | list):
        return [described(each) for each in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted(value)}
    if isinstance(value, dict):
        return {name: described(each) for name, each in value.items()}
    if isinstance(value, float):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | str):
        return value
    return {"a": type(value).__name__}


def answers(pb: Any, request: Any) -> dict[str, Any]:
    """Return the answers to all questions, by their names."""
    found = {}
    for name, ask in QUESTIONS.items():
        try:
            found[name] = described(ask(pb, request))
        except BaseException as error:
            found[name] = {"raises": type(error).__name__}
    found_json: dict[str, Any] = json.loads(json.dumps(found))
    return found_json


def sent(pb: Any, array: Any, name: Any = "t") -> list[Any]:
    """Return what a tensor made of an array tells of itself."""
    return _told(pb.Tensor(name, array))


def each_type() -> None:
    """Add the questions about each NumPy type."""
    for kind in TYPES:
        array = np.array([[0, 1, 2], [3, 4, 5]]).astype(kind)
        QUESTIONS[f"tensor_{kind}"] = lambda pb, request, array=array: sent(pb, array)
        QUESTIONS[f"dlpack_{kind}"] = lambda pb, request, array=array: _through_dlpack(pb, array)
        QUESTIONS[f"from_numpy_{kind}"] = lambda pb, request, array=array: _told(pb.Tensor.from_dlpack("d", array))
        QUESTIONS[f"type_number_{kind}"] = lambda pb, request, kind=kind: pb.numpy_to_triton_type(np.dtype(kind).type)
    for number in range(16):
        QUESTIONS[f"type_of_{number}"] = lambda pb, request, number=number: pb.triton_to_numpy_type(number)
    for name in ("BOOL", "UINT8", "INT64", "FP16", "FP32", "FP64", "STRING", "BF16", "INVALID"):
        key = f"TYPE_{name}"
        QUESTIONS[f"type_named_{name}"] = lambda pb, request, key=key: pb.triton_string_to_numpy(key)


def _through_dlpack(pb: Any, array: Any) -> Any:
    return np.from_dlpack(pb.Tensor("t", array))


def _told(tensor: Any) -> list[Any]:
    return [tensor.name(), list(tensor.shape()), tensor.is_cpu(), tensor.as_numpy()]


each_type()


# Arrays.


@question
def tensor_of_bytes_objects(pb: Any, request: Any) -> Any:
    return sent(pb, np.array([b"\x00a", b"", "grün".encode()], dtype=object))


@question
def tensor_of_str_objects(pb: Any, request: Any) -> Any:
    return sent(pb, np.array(["grün", ""], dtype=object))


@question
def tensor_of_mixed_objects(pb: Any, request: Any) -> Any:
    return sent(pb, np.array(["a", b"b"], dtype=object))


@question
def tensor_of_number_objects(pb: Any, request: Any) -> Any:
    return sent(pb, np.array([1, 2.5, None], dtype=object))


@question
def tensor_of_fixed_bytes(pb: Any, request: Any) -> Any:
    return sent(pb, np.array([b"ab", b"c"]))


@question
def tensor_of_fixed_text(pb: Any, request: Any) -> Any:
    return sent(pb, np.array(["ab", "c"]))


@question
def tensor_of_times(pb: Any, request: Any) -> Any:
    return sent(pb, np.array(["2026-01-01"], dtype="datetime64[D]"))


@question
def tensor_of_complex(pb: Any, request: Any) -> Any:
    return sent(pb, np.array([1j]))


@question
def tensor_of_a_record(pb: Any, request: Any) -> Any:
    return sent(pb, np.zeros(2, dtype=[("a", "i4")]))


@question
def tensor_without_dimensions(pb: Any, request: Any) -> Any:
    return sent(pb, np.array(1.0, np.float32))


@question
def tensor_of_a_numpy_number(pb: Any, request: Any) -> Any:
    return sent(pb, np.float32(1))


@question
def tensor_of_objects_without_dimensions(pb: Any, request: Any) -> Any:
    return sent(pb, np.array(b"a", dtype=object))


@question
def tensor_of_an_own_tensor_with_one_dimension_more(pb: Any, request: Any) -> Any:
    return sent(pb, pb.Tensor("t", np.array([b"a", b""], dtype=object)).as_numpy().reshape((2, 1)))


@question
def tensor_without_elements(pb: Any, request: Any) -> Any:
    return sent(pb, np.zeros((0, 3), np.float32))


@question
def tensor_of_no_objects(pb: Any, request: Any) -> Any:
    return sent(pb, np.zeros((0,), object))


@question
def tensor_big_endian(pb: Any, request: Any) -> Any:
    return sent(pb, np.array([1, 2], ">i4"))


@question
def tensor_big_endian_floats(pb: Any, request: Any) -> Any:
    return sent(pb, np.array([1, 2], ">f4"))


@question
def tensor_columns_first(pb: Any, request: Any) -> Any:
    return sent(pb, np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)))


@question
def tensor_every_second(pb: Any, request: Any) -> Any:
    return sent(pb, np.arange(6, dtype=np.int32)[::2])


@question
def tensor_backwards(pb: Any, request: Any) -> Any:
    return sent(pb, np.arange(3, dtype=np.int32)[::-1])


@question
def tensor_broadcast(pb: Any, request: Any) -> Any:
    return sent(pb, np.broadcast_to(np.float32(2), (2, 2)))


@question
def tensor_read_only(pb: Any, request: Any) -> Any:
    array = np.arange(3, dtype=np.int32)
    array.flags.writeable = False
    return sent(pb, array)


@question
def tensor_of_a_list(pb: Any, request: Any) -> Any:
    return sent(pb, [1.0, 2.0])


@question
def tensor_of_text(pb: Any, request: Any) -> Any:
    return sent(pb, "text")


@question
def tensor_of_none(pb: Any, request: Any) -> Any:
    return sent(pb, None)


@question
def tensor_with_keywords(pb: Any, request: Any) -> Any:
    return pb.Tensor(name="t", data=np.zeros(1, np.float32)).name()


@question
def tensor_with_one_argument(pb: Any, request: Any) -> Any:
    return pb.Tensor("t").name()


@question
def tensor_with_three_arguments(pb: Any, request: Any) -> Any:
    return pb.Tensor("t", np.zeros(1, np.float32), "FP32").name()


@question
def tensor_named_by_bytes(pb: Any, request: Any) -> Any:
    return pb.Tensor(b"t", np.zeros(1, np.float32)).name()


@question
def tensor_named_by_a_number(pb: Any, request: Any) -> Any:
    return pb.Tensor(1, np.zeros(1, np.float32)).name()


@question
def tensor_without_a_name(pb: Any, request: Any) -> Any:
    return pb.Tensor("", np.zeros(1, np.float32)).name()


@question
def tensor_type(pb: Any, request: Any) -> Any:
    return pb.Tensor("t", np.zeros(1, np.float32)).triton_dtype()


@question
def tensor_shape(pb: Any, request: Any) -> Any:
    return pb.Tensor("t", np.zeros((2, 3), np.float32)).shape()


@question
def tensor_shape_of_an_input(pb: Any, request: Any) -> Any:
    return pb.get_input_tensor_by_name(request, "x").shape()


@question
def tensor_is_no_array(pb: Any, request: Any) -> Any:
    return np.asarray(pb.Tensor("t", np.zeros((2, 3), np.float32))).dtype


@question
def tensor_takes_attributes(pb: Any, request: Any) -> Any:
    tensor = pb.Tensor("t", np.zeros(1, np.float32))
    tensor.mine = 1
    return tensor.mine


@question
def tensor_follows_its_array(pb: Any, request: Any) -> Any:
    array = np.zeros(2, np.float32)
    tensor = pb.Tensor("t", array)
    array[0] = 7
    return tensor.as_numpy()


@question
def tensor_device(pb: Any, request: Any) -> Any:
    return pb.Tensor("t", np.zeros(1, np.float32)).__dlpack_device__()


@question
def dlpack_of_objects(pb: Any, request: Any) -> Any:
    return np.from_dlpack(pb.Tensor("t", np.array([b"a"], dtype=object)))


@question
def dlpack_capsule(pb: Any, request: Any) -> Any:
    capsule = pb.Tensor("t", np.arange(3, dtype=np.int32)).to_dlpack()
    return [type(capsule).__name__, _told(pb.Tensor.from_dlpack("again", capsule))]


@question
def dlpack_of_columns_first(pb: Any, request: Any) -> Any:
    return _told(pb.Tensor.from_dlpack("d", np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))))


@question
def dlpack_of_a_list(pb: Any, request: Any) -> Any:
    return pb.Tensor.from_dlpack("d", [1, 2])


@question
def dlpack_of_no_dimensions(pb: Any, request: Any) -> Any:
    return _told(pb.Tensor.from_dlpack("d", np.array(1, np.int32)))


# Requests.


@question
def request_inputs(pb: Any, request: Any) -> Any:
    return [type(request.inputs()).__name__, [_told(each) for each in request.inputs()]]


@question
def request_input_by_name(pb: Any, request: Any) -> Any:
    return _told(pb.get_input_tensor_by_name(request, "words"))


@question
def request_input_that_is_missing(pb: Any, request: Any) -> Any:
    return pb.get_input_tensor_by_name(request, "none")


@question
def request_input_is_writeable(pb: Any, request: Any) -> Any:
    return bool(pb.get_input_tensor_by_name(request, "x").as_numpy().flags.writeable)


@question
def request_words_are_writeable(pb: Any, request: Any) -> Any:
    return bool(pb.get_input_tensor_by_name(request, "words").as_numpy().flags.writeable)


@question
def request_input_by_dlpack(pb: Any, request: Any) -> Any:
    return np.from_dlpack(pb.get_input_tensor_by_name(request, "x"))


@question
def request_tensor_is_answered_as_it_is(pb: Any, request: Any) -> Any:
    response = pb.InferenceResponse([pb.get_input_tensor_by_name(request, "x")])
    return _told(response.output_tensors()[0])


@question
def request_tells(pb: Any, request: Any) -> Any:
    return [request.request_id(), request.correlation_id(), request.flags(), request.timeout()]


@question
def request_outputs(pb: Any, request: Any) -> Any:
    names = request.requested_output_names()
    return [type(names).__name__, sorted(names)]


@question
def request_parameters(pb: Any, request: Any) -> Any:
    return [type(request.parameters()).__name__, json.loads(request.parameters())]


@question
def request_attributes(pb: Any, request: Any) -> Any:
    return {name: hasattr(request, name) for name in ("model_name", "model_version", "preferred_memory", "trace")}


# Responses and errors.


@question
def response_of_tensors(pb: Any, request: Any) -> Any:
    response = pb.InferenceResponse([pb.Tensor("y", np.zeros(1, np.float32))])
    return [response.has_error(), response.error(), [each.name() for each in response.output_tensors()]]


@question
def response_with_keywords(pb: Any, request: Any) -> Any:
    response = pb.InferenceResponse(output_tensors=[pb.Tensor("y", np.zeros(1, np.float32))])
    return [each.name() for each in response.output_tensors()]


@question
def response_of_a_tuple(pb: Any, request: Any) -> Any:
    return len(pb.InferenceResponse((pb.Tensor("y", np.zeros(1, np.float32)),)).output_tensors())


@question
def response_of_nothing(pb: Any, request: Any) -> Any:
    response = pb.InferenceResponse()
    return [response.has_error(), response.output_tensors()]


@question
def response_of_none(pb: Any, request: Any) -> Any:
    return pb.InferenceResponse(None).output_tensors()


@question
def response_of_one_tensor(pb: Any, request: Any) -> Any:
    return pb.InferenceResponse(pb.Tensor("y", np.zeros(1, np.float32))).output_tensors()


@question
def response_of_arrays(pb: Any, request: Any) -> Any:
    return pb.InferenceResponse([np.zeros(1, np.float32)]).output_tensors()


@question
def response_of_a_dictionary(pb: Any, request: Any) -> Any:
    return pb.InferenceResponse({"y": np.zeros(1, np.float32)}).output_tensors()


@question
def response_of_the_same_name_twice(pb: Any, request: Any) -> Any:
    tensor = pb.Tensor("y", np.zeros(1, np.float32))
    return [each.name() for each in pb.InferenceResponse([tensor, tensor]).output_tensors()]


@question
def response_with_an_error(pb: Any, request: Any) -> Any:
    response = pb.InferenceResponse(error=pb.TritonError("no picture"))
    error = response.error()
    return [response.has_error(), error.message(), error.code() == pb.TritonError.INTERNAL, response.output_tensors()]


@question
def response_with_an_error_second(pb: Any, request: Any) -> Any:
    return pb.InferenceResponse([], pb.TritonError("no picture")).has_error()


@question
def response_with_a_text_as_error(pb: Any, request: Any) -> Any:
    return pb.InferenceResponse(error="no picture").has_error()


@question
def response_with_an_exception_as_error(pb: Any, request: Any) -> Any:
    return pb.InferenceResponse(error=ValueError("no picture")).has_error()


@question
def output_by_name(pb: Any, request: Any) -> Any:
    response = pb.InferenceResponse([pb.Tensor("y", np.ones(1, np.float32))])
    return [_told(pb.get_output_tensor_by_name(response, "y")), pb.get_output_tensor_by_name(response, "z")]


@question
def error_codes(pb: Any, request: Any) -> Any:
    names = ("UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS")
    return {name: [int(getattr(pb.TritonError, name)), getattr(pb.TritonError, name).name] for name in names}


@question
def error_cancelled(pb: Any, request: Any) -> Any:
    return int(pb.TritonError.CANCELLED)


@question
def error_with_code(pb: Any, request: Any) -> Any:
    error = pb.TritonError("bad", pb.TritonError.INVALID_ARG)
    return [error.message(), error.code() == pb.TritonError.INVALID_ARG, int(error.code())]


@question
def error_with_keywords(pb: Any, request: Any) -> Any:
    return int(pb.TritonError(message="bad", code=pb.TritonError.NOT_FOUND).code())


@question
def error_with_a_number(pb: Any, request: Any) -> Any:
    return pb.TritonError("bad", 3).message()


@question
def error_of_an_exception(pb: Any, request: Any) -> Any:
    return pb.TritonError(ValueError("bad")).message()


@question
def error_of_nothing(pb: Any, request: Any) -> Any:
    return pb.TritonError().message()


@question
def error_is_no_exception(pb: Any, request: Any) -> Any:
    return isinstance(pb.TritonError("bad"), BaseException)


@question
def error_is_raised(pb: Any, request: Any) -> Any:
    raise pb.TritonError("bad")


@question
def exception_is_raised(pb: Any, request: Any) -> Any:
    raise pb.TritonModelException("bad")


@question
def exception_is(pb: Any, request: Any) -> Any:
    error = pb.TritonModelException("bad")
    return [isinstance(error, Exception), str(error)]


# What a file makes of requests.


@question
def own_request_with_a_float(pb: Any, request: Any) -> Any:
    return pb.InferenceRequest(
        model_name="m", inputs=[], requested_output_names=["y"], parameters={"rate": 0.5}
    ).parameters()


@question
def own_request_without_outputs(pb: Any, request: Any) -> Any:
    return pb.InferenceRequest(model_name="m", inputs=[])


# Configuration.

CONFIG: dict[str, Any] = {
    "name": "m",
    "max_batch_size": 0,
    "input": [{"name": "a", "data_type": "TYPE_FP32", "dims": [2]}],
    "output": [{"name": "b", "data_type": "TYPE_STRING", "dims": [1]}],
}


@question
def config_input(pb: Any, request: Any) -> Any:
    return [pb.get_input_config_by_name(CONFIG, name) for name in ("a", "b")]


@question
def config_output(pb: Any, request: Any) -> Any:
    return [pb.get_output_config_by_name(CONFIG, name) for name in ("a", "b")]


@question
def config_without_tensors(pb: Any, request: Any) -> Any:
    return [pb.get_input_config_by_name({}, "a"), pb.get_output_config_by_name({}, "b")]


@question
def config_decoupled(pb: Any, request: Any) -> Any:
    decoupled = {"model_transaction_policy": {"decoupled": True}}
    return [pb.using_decoupled_model_transaction_policy(each) for each in (CONFIG, decoupled)]


def completed(pb: Any, **calls: Any) -> Any:
    """Return the configuration after some calls of an automatic completion."""
    config = pb.ModelConfig(json.dumps(CONFIG))
    for name, value in calls.items():
        getattr(config, name)(*([] if value is None else [value]))
    return config.as_dict()


@question
def completed_batch(pb: Any, request: Any) -> Any:
    return completed(pb, set_max_batch_size=8, set_dynamic_batching=None)


@question
def completed_smaller_batch(pb: Any, request: Any) -> Any:
    return completed(pb, set_max_batch_size=-1)


@question
def completed_input(pb: Any, request: Any) -> Any:
    return completed(pb, add_input={"name": "c", "data_type": "TYPE_INT64", "dims": [-1], "optional": True})


@question
def completed_same_input(pb: Any, request: Any) -> Any:
    return completed(pb, add_input={"name": "a", "data_type": "TYPE_FP32", "dims": [2]})


@question
def completed_other_type(pb: Any, request: Any) -> Any:
    return completed(pb, add_input={"name": "a", "data_type": "TYPE_FP16", "dims": [2]})


@question
def completed_other_dims(pb: Any, request: Any) -> Any:
    return completed(pb, add_input={"name": "a", "data_type": "TYPE_FP32", "dims": [3]})


@question
def completed_unknown_property(pb: Any, request: Any) -> Any:
    return completed(pb, add_input={"name": "c", "data_type": "TYPE_FP32", "dims": [3], "reshape": {}})


@question
def completed_without_name(pb: Any, request: Any) -> Any:
    return completed(pb, add_input={"data_type": "TYPE_FP32", "dims": [3]})


@question
def completed_without_type(pb: Any, request: Any) -> Any:
    return completed(pb, add_output={"name": "c", "dims": [3]})


@question
def completed_without_dims(pb: Any, request: Any) -> Any:
    return completed(pb, add_output={"name": "c", "data_type": "TYPE_FP32"})


@question
def completed_optional_output(pb: Any, request: Any) -> Any:
    return completed(pb, add_output={"name": "c", "data_type": "TYPE_FP32", "dims": [1], "optional": True})


@question
def completed_output(pb: Any, request: Any) -> Any:
    return completed(pb, add_output={"name": "c", "data_type": "TYPE_BOOL", "dims": [1]})


@question
def completed_other_output(pb: Any, request: Any) -> Any:
    return completed(pb, add_output={"name": "b", "data_type": "TYPE_BOOL", "dims": [1]})


# Bytes.


@question
def serialized_objects(pb: Any, request: Any) -> Any:
    return pb.serialize_byte_tensor(np.array([["a", b"\xff\x00"], ["grün", ""]], dtype=object))


@question
def serialized_nothing(pb: Any, request: Any) -> Any:
    return pb.serialize_byte_tensor(np.array([], dtype=object))


@question
def serialized_numbers(pb: Any, request: Any) -> Any:
    return pb.serialize_byte_tensor(np.zeros(2, np.float32))


@question
def serialized_fixed_bytes(pb: Any, request: Any) -> Any:
    return pb.serialize_byte_tensor(np.array([b"ab", b"c"]))


@question
def deserialized(pb: Any, request: Any) -> Any:
    return pb.deserialize_bytes_tensor(b"\x01\x00\x00\x00a\x00\x00\x00\x00")


@question
def deserialized_half(pb: Any, request: Any) -> Any:
    return pb.deserialize_bytes_tensor(b"\x05\x00\x00\x00a")


# The log, metrics, and what else the module has.


@question
def log(pb: Any, request: Any) -> Any:
    calls = (pb.Logger.log_info, pb.Logger.log_warn, pb.Logger.log_error, pb.Logger.log_verbose, pb.Logger.log)
    return [call("some words") for call in calls]


@question
def log_levels(pb: Any, request: Any) -> Any:
    return [pb.Logger.log("some words", level) for level in (pb.Logger.INFO, pb.Logger.WARNING, pb.Logger.VERBOSE)]


@question
def log_of_a_number(pb: Any, request: Any) -> Any:
    return pb.Logger.log_info(5)


@question
def log_of_bytes(pb: Any, request: Any) -> Any:
    return pb.Logger.log_info(b"words")


@question
def names_of_the_module(pb: Any, request: Any) -> Any:
    names = ("np", "json", "struct", "PreferredMemory", "MetricFamily", "load_model", "unload_model", "is_model_ready")
    others = ("get_model_dir", "TRITONSERVER_MEMORY_CPU", "InferenceTrace", "execute", "TRITON_STRING_TO_NUMPY")
    return {name: hasattr(pb, name) for name in (*names, *others)}


@question
def flags_of_the_module(pb: Any, request: Any) -> Any:
    return [
        int(pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START),
        int(pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END),
        int(pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL),
        int(pb.TRITONSERVER_REQUEST_RELEASE_ALL),
        int(pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE),
    ]


@question
def metrics(pb: Any, request: Any) -> Any:
    family = pb.MetricFamily(name="questions", description="a counter", kind=pb.MetricFamily.COUNTER)
    metric = family.Metric(labels={"a": "b"})
    before = metric.value()
    metric.increment(2)
    return [metric.value() - before]


@question
def metrics_go_down(pb: Any, request: Any) -> Any:
    family = pb.MetricFamily(name="questions_gauge", description="a gauge", kind=pb.MetricFamily.GAUGE)
    metric = family.Metric(labels={})
    metric.set(3)
    metric.increment(-1)
    return metric.value()
