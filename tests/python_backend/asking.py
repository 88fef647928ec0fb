"""Questions to `triton_python_backend_utils` about other models, for the server's own module and for the stand-in.

Two models are there to be asked: `double` takes FP32 `x` of [rows, 3], at most 4 rows, and gives `y`, twice as much;
`words` takes BYTES `x` of [rows, 1] and gives them back as `y`. Words of errors are not compared: they differ.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import numpy as np

Question = Callable[[Any], Any]
QUESTIONS: dict[str, Question] = {}
X = np.array([[1.5, -2.0, 0.0], [4.0, 5.0, 6.0]], np.float32)
WORDS = np.array([[b"\x00a"], [b""], ["grün".encode()]], dtype=object)


def question(function: Question) -> Question:
    """Add a function to the questions under its name."""
    QUESTIONS[function.__name__] = function
    return function


def answers(pb: Any, described: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the answers to all questions, by their names; ``described``: that of the other questions."""
    found = {}
    for name, ask in QUESTIONS.items():
        try:
            found[name] = described(ask(pb))
        except BaseException as error:
            found[name] = {"raises": type(error).__name__}
    found_json: dict[str, Any] = json.loads(json.dumps(found))
    return found_json


def request(pb: Any, array: Any = X, model: str = "double", **fields: Any) -> Any:
    """A request for the output `y` of a model."""
    fields = {"inputs": [pb.Tensor("x", array)], "requested_output_names": ["y"], **fields}
    return pb.InferenceRequest(model_name=model, **fields)


def told(response: Any) -> Any:
    """What a response tells."""
    tensors = [[each.name(), list(each.shape()), each.is_cpu(), each.as_numpy()] for each in response.output_tensors()]
    return [type(response).__name__, response.has_error(), tensors]


@question
def exec_answers(pb: Any) -> Any:
    response = request(pb).exec()
    return [*told(response), response.error()]


@question
def exec_of_one_row(pb: Any) -> Any:
    return told(request(pb, X[:1]).exec())


@question
def exec_of_every_second_row(pb: Any) -> Any:
    return told(request(pb, np.concatenate([X, X])[::2]).exec())


@question
def exec_twice(pb: Any) -> Any:
    asked = request(pb)
    return [told(asked.exec()), told(asked.exec())]


@question
def exec_of_bytes(pb: Any) -> Any:
    return told(request(pb, WORDS, "words").exec())


@question
def exec_of_str(pb: Any) -> Any:
    return told(request(pb, np.array([["grün"], [""]], dtype=object), "words").exec())


@question
def exec_of_an_output(pb: Any) -> Any:
    (first,) = request(pb).exec().output_tensors()
    return told(request(pb, first.as_numpy()).exec())


@question
def exec_without_outputs(pb: Any) -> Any:
    return told(request(pb, requested_output_names=[]).exec())


@question
def exec_output_by_name(pb: Any) -> Any:
    response = request(pb).exec()
    return [pb.get_output_tensor_by_name(response, "y").as_numpy(), pb.get_output_tensor_by_name(response, "z")]


@question
def exec_with_everything(pb: Any) -> Any:
    memory = pb.PreferredMemory(pb.TRITONSERVER_MEMORY_CPU, 0)
    fields = {"request_id": "a", "correlation_id": 5, "timeout": 10_000_000, "parameters": {"a": 1}}
    return told(request(pb, model_version=1, preferred_memory=memory, **fields).exec())


@question
def request_tells_what_it_was_given(pb: Any) -> Any:
    made = request(pb, request_id="a", correlation_id=5, timeout=7, parameters={"a": 1})
    return [made.request_id(), made.correlation_id(), made.timeout(), made.flags(), json.loads(made.parameters())]


@question
def exec_of_another_type(pb: Any) -> Any:
    return told(request(pb, np.float64(X)).exec())


@question
def exec_of_a_half(pb: Any) -> Any:
    return told(request(pb, np.float16(X)).exec())


@question
def exec_of_another_shape(pb: Any) -> Any:
    return told(request(pb, X[:, :2]).exec())


@question
def exec_of_too_many_rows(pb: Any) -> Any:
    return told(request(pb, np.concatenate([X, X, X])).exec())


@question
def exec_of_another_output(pb: Any) -> Any:
    return told(request(pb, requested_output_names=["z"]).exec())


@question
def exec_of_another_input(pb: Any) -> Any:
    return told(request(pb, inputs=[pb.Tensor("z", X)]).exec())


@question
def exec_without_inputs(pb: Any) -> Any:
    return told(request(pb, inputs=[]).exec())


@question
def exec_error(pb: Any) -> Any:
    error = request(pb, X[:, :2]).exec().error()
    return [type(error).__name__, type(error.message()).__name__]


@question
def async_exec_answers(pb: Any) -> Any:
    async def ask() -> Any:
        return told(await request(pb).async_exec())

    return asyncio.run(ask())


@question
def async_exec_of_several(pb: Any) -> Any:
    async def ask() -> Any:
        return await asyncio.gather(*[request(pb, row * X).async_exec() for row in (1, 2, 3)])

    return [told(each) for each in asyncio.run(ask())]


@question
def async_exec_is_a_future(pb: Any) -> Any:
    async def ask() -> Any:
        asked = request(pb).async_exec()
        found = asyncio.isfuture(asked)
        await asked
        return found

    return asyncio.run(ask())


@question
def async_exec_outside_a_coroutine(pb: Any) -> Any:
    return told(request(pb).async_exec())
