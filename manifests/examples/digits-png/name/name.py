"""A step after the network: its logits become a label and its probability."""

import json

import numpy
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Names the likeliest class; the parameter ``labels`` has the classes' names, separated by commas."""

    def initialize(self, args: dict) -> None:
        """Read the names."""
        parameters = json.loads(args["model_config"])["parameters"]
        self.labels = numpy.array([each.encode() for each in parameters["labels"]["string_value"].split(",")], object)

    def execute(self, requests: list) -> list:
        """Return a response for each request."""
        responses = []
        for request in requests:
            logits = pb_utils.get_input_tensor_by_name(request, "logits").as_numpy()
            powers = numpy.exp(logits - logits.max(axis=1, keepdims=True))
            label = self.labels[logits.argmax(axis=1)][:, None]
            probability = (powers.max(axis=1) / powers.sum(axis=1)).astype(numpy.float32)[:, None]
            outputs = [pb_utils.Tensor("label", label), pb_utils.Tensor("probability", probability)]
            responses.append(pb_utils.InferenceResponse(outputs))
        return responses
