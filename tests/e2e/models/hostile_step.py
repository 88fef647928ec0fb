"""A Python step that answers words in capitals, and on a server tries what it must not be able to do.

Where it is measured, an attack that its arguments name ends each request with what came of it. Where it serves, the
word ``attack GROUP`` is answered with that.
"""

import json

import numpy as np
import triton_python_backend_utils as pb_utils

from .attempts import came_of, on_server

ASKED = b"attack "


class TritonPythonModel:
    """The step."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the arguments."""
        given = json.loads(args["model_config"])["parameters"]
        self.attack, targets = (given[name]["string_value"] for name in ("attack", "targets"))
        self.targets: dict[str, str] = json.loads(targets)
        self.came = ""

    def execute(self, requests: list) -> list:
        """Answer, or attack."""
        if self.attack and on_server():
            # Once: it takes as long as what does not answer, and each request is sent again.
            self.came = self.came or came_of(self.attack, self.targets)
            raise RuntimeError(self.came)
        return [self.answer(request) for request in requests]

    def answer(self, request: object) -> object:
        """Return the response to one request."""
        words = pb_utils.get_input_tensor_by_name(request, "WORD").as_numpy()
        said = [self.say(word) for word in words.ravel()]
        return pb_utils.InferenceResponse([pb_utils.Tensor("SAID", np.array(said, dtype=object).reshape(words.shape))])

    def say(self, word: bytes) -> str:
        """Return the word in capitals, or what came of the attack that it asks for."""
        if word.startswith(ASKED) and on_server():
            return came_of(word[len(ASKED) :].decode(), self.targets)
        return word.decode().upper()
