"""The step that attacks on a cluster (tests/e2e/stepping.py), rehearsed without an attack."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.e2e import manifests, stepping
from tests.e2e.models import attempts
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.results import Signature, Tensor
from triton_converters.contract.text import shortened
from triton_converters.load.triton_python import PythonStep, load
from triton_converters.measuring.server import own_words
from triton_operator.planning.status import MESSAGE_BYTES
from triton_plugin.drafting.validation.validate import check

SOURCE = Path(attempts.__file__).parent
DECLARED = Signature((Tensor("WORD", "BYTES", (1,)),), (Tensor("SAID", "BYTES", (1,)),), 4)
WORDS = numpy.array([["one"], ["attack files"]], dtype=object)
STOPPED = "FileNotFound 2"
"""The longest of what stops most attempts."""


def stopped(addresses: dict[str, str]) -> object:
    assert addresses == {"dns": "10.0.0.1:53"}
    raise FileNotFoundError(2, "no")


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No test leaves modules of the step for another one."""
    path, known = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - known:
        sys.modules.pop(name, None)


def step(attack: str) -> PythonStep:
    entrypoint = Entrypoint("hostile_step.py", {"attack": attack, "targets": '{"dns": "10.0.0.1:53"}'})
    return load(SOURCE, ModelCode("triton-python", entrypoint, 4, name="step", declared=DECLARED), "")


def on_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the step's own modules believe that, with nothing but what is stopped as attempts."""
    for name in ("attempts", "hostile_step"):
        monkeypatch.setattr(sys.modules[f"_triton_step_step.{name}"], "on_server", lambda: True)
    own = sys.modules["_triton_step_step.attempts"]
    groups = {group: dict.fromkeys(made, stopped) for group, made in attempts.GROUPS.items()}
    monkeypatch.setattr(own, "GROUPS", groups)


@pytest.mark.parametrize("attack", ["", "files"])
def test_the_reference_is_not_attacked(attack: str) -> None:
    assert step(attack)({"WORD": WORDS})["SAID"].tolist() == [["ONE"], ["ATTACK FILES"]]


@pytest.mark.parametrize("group", attempts.GROUPS)
def test_an_error_tells_what_came_of_every_attempt(monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    model = step(group)
    on_a_server(monkeypatch)
    with pytest.raises(StageError) as error:
        model({"WORD": WORDS})
    message = f"tritonserver refused a request to model said: {own_words(error.value.message)}"
    told = f"Verified: {shortened(message, 200)}\n{shortened(message, MESSAGE_BYTES)}"
    assert stepping.named(group, told) == dict.fromkeys(attempts.GROUPS[group], STOPPED)


def test_a_client_gets_what_it_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    model = step("")
    on_a_server(monkeypatch)
    word, came = model({"WORD": WORDS})["SAID"].ravel().tolist()
    assert word == "ONE"
    assert set(stepping.named("files", came).values()) == {STOPPED}


@pytest.mark.parametrize("attack", ["", *attempts.GROUPS])
def test_the_api_server_takes_the_objects(attack: str) -> None:
    targets = '{"' + "x" * 700 + '": "10.0.0.1:53"}'
    changes: dict[str, Any] = {"model": {"arguments": {"attack": attack, "targets": targets}}}
    assert check(manifests.changed(manifests.read("step"), f"step-{attack or 'served'}", changes)) == []
