"""Lets a small model tell digits, and asks a large one about those of which the small one is not sure."""

import json

import numpy
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """A step of which input X is pixels [batch, 64], and output probabilities [batch, 10]."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read below which probability a digit is not sure."""
        self.sure = float(json.loads(args["model_config"])["parameters"]["sure"]["string_value"])

    def execute(self, requests: list) -> list:
        """Answer each request by itself; a model that does not answer fails it."""
        return [self.answer(pb_utils.get_input_tensor_by_name(request, "X").as_numpy()) for request in requests]

    def answer(self, pixels: numpy.ndarray) -> object:
        """Return the response for the pixels of one request."""
        probabilities = numpy.array(ask("small", pixels))
        unsure = probabilities.max(axis=1) < self.sure
        if unsure.any():
            probabilities[unsure] = ask("large", pixels[unsure])
        return pb_utils.InferenceResponse([pb_utils.Tensor("probabilities", probabilities)])


def ask(model: str, pixels: numpy.ndarray) -> numpy.ndarray:
    """Return a model's probabilities [batch, 10]; raises TritonModelException with the words of the server."""
    request = pb_utils.InferenceRequest(
        model_name=model, inputs=[pb_utils.Tensor("X", pixels)], requested_output_names=["probabilities"]
    )
    response = request.exec()
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    return pb_utils.get_output_tensor_by_name(response, "probabilities").as_numpy()
