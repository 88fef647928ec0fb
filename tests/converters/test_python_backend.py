"""The reference stage's `triton_python_backend_utils` answers as the real server's own does."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from tests.python_backend import questions
from triton_converters.python_backend import messages, module, user_step

ANSWERS: dict[str, Any] = json.loads((Path(questions.__file__).parent / "answers.json").read_text())
"""What server 2.51 answered, held by tests/images/test_python_backend.py."""


async def _awaited(request: Any) -> Any:
    return await request.async_exec()


def request() -> messages.InferenceRequest:
    pb, given = module.install(), questions.REQUEST
    words = numpy.array([each.encode() for each in given["words"]], dtype=object)
    return messages.InferenceRequest(
        inputs=[pb.Tensor("x", numpy.array(given["x"], numpy.float32)), pb.Tensor("words", words)],
        requested_output_names=["y", "z"],
        model_name="questions",
        request_id=given["id"],
        parameters=given["parameters"],
    )


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    return questions.answers(module.install(), request())


def test_every_question_has_the_servers_answer() -> None:
    assert list(ANSWERS) == list(questions.QUESTIONS)


@pytest.mark.parametrize("name", questions.QUESTIONS)
def test_the_answer_is_the_servers(answers: dict[str, Any], name: str) -> None:
    assert answers[name] == ANSWERS[name]


@pytest.mark.parametrize(
    "ask",
    [
        lambda pb, request: request.exec(),
        lambda pb, request: request.get_response_sender(),
        lambda pb, request: request.set_release_flags(2),
        lambda pb, request: request.set_flags(1),
        lambda pb, request: pb.load_model("other"),
        lambda pb, request: pb.unload_model("other"),
        lambda pb, request: pb.is_model_ready("other"),
        lambda pb, request: asyncio.run(_awaited(request)),
    ],
    ids=["exec", "sender", "reschedule", "sequence", "load", "unload", "ready", "async_exec"],
)
def test_what_no_step_may_do_is_refused_and_noted(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "refusals", [])
    pb = module.install()
    with pytest.raises(pb.TritonModelException, match="is not supported in a Python step"):
        ask(pb, request())
    assert len(messages.refusals) == 1


def test_a_request_may_be_given_no_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "refusals", [])
    given = request()
    given.set_flags(0)
    assert (given.flags(), messages.refusals) == (0, [])


def test_a_tensor_of_a_gpu_is_refused() -> None:
    class Remote:
        def __dlpack__(self) -> None: ...

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

    pb = module.install()
    with pytest.raises(pb.TritonModelException, match="of a GPU"):
        pb.Tensor.from_dlpack("t", Remote())


def test_the_guard_is_that_of_the_images_own_backends() -> None:
    image = Path(__file__).parents[2] / "images/tritonserver-cpu/runtimes/triton_cpu/guard.py"
    assert (Path(module.__file__).parent / "guard.py").read_text() == image.read_text()


def test_a_request_takes_its_arguments_in_the_servers_order() -> None:
    pb = module.install()
    given = pb.InferenceRequest("seven", 1, [pb.Tensor("x", numpy.ones(2, numpy.float32))], ["y"], "questions", 1)
    assert (given.request_id(), given.correlation_id(), given.requested_output_names()) == ("seven", 1, {"y"})
    with pytest.raises(TypeError, match="model_name"):
        pb.InferenceRequest("seven", 1, [], ["y"])
    with pytest.raises(TypeError, match="inputs of an InferenceRequest"):
        pb.InferenceRequest(requested_output_names=["y"], model_name="questions")


def test_a_request_has_a_trace_that_holds_no_context() -> None:
    assert request().trace().get_context() is None


def test_a_code_is_called_as_the_servers_own() -> None:
    pb = module.install()
    assert str(pb.TritonError("no", pb.TritonError.NOT_FOUND).code()) == "__ErrorCode.NOT_FOUND"


@pytest.mark.parametrize("shape", [(3,), (2, 2), (0, 4)])
def test_what_comes_by_dlpack_may_be_written_to_and_shares_its_memory(shape: tuple[int, ...]) -> None:
    pb, array = module.install(), numpy.zeros(shape, numpy.float32)
    taken = pb.Tensor.from_dlpack("t", array).as_numpy()
    taken += 1
    assert array.tolist() == numpy.ones(shape).tolist()


def test_a_response_has_parameters() -> None:
    pb = module.install()
    assert json.loads(pb.InferenceResponse([], parameters={"speed": 2, "last": True}).parameters()) == {
        "speed": 2,
        "last": True,
    }


class OldResponse:
    """As servers before release 25.02 have it."""

    def __init__(self, output_tensors: list[Any], error: Any = None) -> None:
        self.given = (output_tensors, error)


def test_an_older_server_drops_the_parameters_of_a_response(capsys: pytest.CaptureFixture[str]) -> None:
    backend = SimpleNamespace(InferenceResponse=OldResponse)
    user_step.take_parameters(backend)
    assert backend.InferenceResponse(["t"], parameters={"speed": 2}).given == (["t"], None)
    assert capsys.readouterr().err == "this server has no parameters of responses: they are left out\n"
    assert backend.InferenceResponse(error="e").given == ([], "e")
    assert isinstance(backend.InferenceResponse([]), OldResponse)


def test_a_newer_server_keeps_its_own_response() -> None:
    pb = module.install()
    user_step.take_parameters(pb)
    assert pb.InferenceResponse is messages.InferenceResponse
