"""What Triton's Python backend loads as a Python step's ``model.py``: the user's file in the server's surroundings.

It is copied next to the step's files, ``step.json`` among them, and runs in the server's Python (3.8 or newer) with
nothing of ours but what lies there. Nothing of ours imports it.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).parent
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from triton_converters.python_backend import environment, user_step
else:
    sys.path.append(str(HERE))
    environment, user_step = map(importlib.import_module, ("_triton_step_environment", "_triton_step"))

PATIENCE_SECONDS = 5
"""How long the guard may take to end once it was told to; only its return is waited for."""
SETTINGS = json.loads((HERE / environment.STEP).read_text(encoding="utf-8"))
PLACE = user_step.Place(HERE / environment.SOURCE, SETTINGS["file"], HERE / environment.PACKAGES)
environment.read_hub(PLACE.folder / user_step.HUB)
environment.enter(HERE, PLACE.packages, int(SETTINGS["threads"]))


class TritonPythonModel:
    """A step as the backend drives it."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the user's file, and let it initialize. Raises TritonModelException, which refuses the model."""
        name, config = args["model_name"], json.loads(args["model_config"])
        try:
            user_step.check_single(name, config)
            loaded = user_step.Loaded(name, PLACE)
            written = {**args, "model_config": json.dumps(_as_written(loaded, config))}
            self._step = user_step.RunningStep(loaded, config, written)
        except user_step.StepError as error:
            raise sys.modules[user_step.BACKEND].TritonModelException(str(error)) from error
        self._guard = _guard(args["model_instance_name"])

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer each request with its response, or with an error that says what is wrong with that response."""
        return self._step.execute(requests)

    def finalize(self) -> None:
        """Let the user's code finish, and then end the guard."""
        try:
            self._step.finalize()
        finally:
            self._guard.communicate(b"x", PATIENCE_SECONDS)


def _as_written(loaded: user_step.Loaded, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with the sizes that the author declared, in the spec or by the file itself."""
    if SETTINGS.get(environment.COMPLETES):
        own = loaded.completed({**config, "input": [], "output": []})
        return {**config, "input": own["input"], "output": own["output"]}
    declared = SETTINGS.get(environment.DECLARED, {})
    outputs = [{**each, "dims": declared.get(each["name"], each["dims"])} for each in config["output"]]
    return {**config, "output": outputs}


def _guard(instance: str) -> subprocess.Popen[bytes]:
    """Start the program that ends the server if this process dies: the server would go on, and fail each request."""
    argv = [sys.executable, "-I", "-S", "-B", str(HERE / "guard.py"), str(os.getppid()), str(os.getpid()), instance]
    # In another session, so that a Ctrl-C for the server does not end the guard alone.
    return subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)
