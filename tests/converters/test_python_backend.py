"""The reference stage's `triton_python_backend_utils` answers as the real server's own does."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.python_backend import questions
from triton_converters.python_backend import messages, module

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
