"""A step before the network: a text becomes the numbers of its tokens."""

from pathlib import Path

import numpy
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer

LONGEST = 256
"""Tokens of a text that count."""


class TritonPythonModel:
    """Splits texts as the network was trained, with the tokenizer next to this file."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the tokenizer."""
        self.tokenizer = Tokenizer.from_file(str(Path(__file__).parent / "tokenizer.json"))
        self.tokenizer.enable_truncation(LONGEST)

    def execute(self, requests: list) -> list:
        """Return a response for each request; text that is not UTF-8 fails its own request alone."""
        responses = []
        for request in requests:
            texts = pb_utils.get_input_tensor_by_name(request, "text").as_numpy()
            try:
                tokens = padded([self.tokenizer.encode(text.decode()).ids for (text,) in texts])
            except UnicodeDecodeError as error:
                wrong = pb_utils.TritonError(f"no UTF-8 text: {error}", pb_utils.TritonError.INVALID_ARG)
                responses.append(pb_utils.InferenceResponse(error=wrong))
            else:
                responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("tokens", tokens)]))
        return responses


def padded(rows: list[list[int]]) -> numpy.ndarray:
    """Return the tokens of texts, int64 [texts, length of the longest, but at least 1], with 0 after shorter ones."""
    found = numpy.zeros((len(rows), max(1, *map(len, rows))), numpy.int64)
    for line, row in zip(found, rows, strict=True):
        line[: len(row)] = row
    return found
