"""A step after the network: probabilities become the most likely label and its probability."""

import json

import numpy
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Names the class with the largest probability."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the labels from the model's arguments."""
        parameters = json.loads(args["model_config"])["parameters"]
        self.labels = numpy.array(parameters["labels"]["string_value"].split(","), dtype=object)

    def execute(self, requests: list) -> list:
        """Return a response for each request."""
        responses = []
        for request in requests:
            probabilities = pb_utils.get_input_tensor_by_name(request, "probabilities").as_numpy()
            tensors = [
                pb_utils.Tensor("label", self.labels[probabilities.argmax(axis=1)][:, None]),
                pb_utils.Tensor("probability", probabilities.max(axis=1, keepdims=True)),
            ]
            responses.append(pb_utils.InferenceResponse(tensors))
        return responses
