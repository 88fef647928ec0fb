"""An object's folder, worked on anew: what is told is of this run."""

from pathlib import Path
from typing import Any, NoReturn

import pytest

from triton_local import session as sessions
from triton_local.runtime import Network
from triton_local.session import Given, session
from triton_operator import names
from triton_operator.names import API_VERSION, KIND, Body
from triton_operator.settings import Settings

SPEC = {"source": {"uri": "pvc://models"}, "models": [{"name": "digits", "path": "digits.onnx"}]}
SETTINGS = Settings.from_environment(
    {f"{name}_IMAGE": f"none@sha256:{'0' * 64}" for name in ("CONVERTER", "CONVERTER_TENSORFLOW", "SERVER")}
)


class Nothing:
    """A runtime, and a sandbox, for pods whose images nobody has."""

    def sandbox(self, pod: str, user: int, address: str, network: Network) -> Any:
        return self

    def forwarder(self, address: str, listening: Any) -> NoReturn:
        raise OSError("nothing runs here")

    def close(self) -> None:
        """Nothing is left."""


def an_object(retry: str) -> Body:
    metadata = {"name": "digits", "annotations": {names.RETRY_ANNOTATION: retry}}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": SPEC}


def an_image(name: str) -> NoReturn:
    raise LookupError(name)


def condition(kind: str, status: str) -> Body:
    words = {"reason": "Crashed", "message": "it is out of memory", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"type": kind, "status": status, "observedGeneration": 1, **words}


@pytest.mark.parametrize("before", ["Stalled", "Ready"])
def test_the_outcome_of_an_earlier_run_is_none_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    monkeypatch.setattr(sessions, "MEASURING", tmp_path / "turn")
    given = Given({"models": tmp_path})
    with session(tmp_path, an_object("first"), given, an_image, SETTINGS, Nothing()) as work:
        owner = work.objects.owner_body()
    file = tmp_path / sessions.OBJECTS
    known = sessions._objects(file, an_object("first"), {})
    known.apply_status({**owner, "status": {"observedGeneration": 1, "conditions": [condition(before, "True")]}})
    known.save()
    with session(tmp_path, an_object("second"), given, an_image, SETTINGS, Nothing()) as work:
        told = {each["type"]: each["status"] for each in work.body()["status"]["conditions"]}
    assert told[before] == "False"
