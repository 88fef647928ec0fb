"""Logits to a label and its probability."""

import numpy as np
import triton_python_backend_utils as pb_utils

LABELS = np.array(["red", "green", "blue"], dtype=object)


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            logits = pb_utils.get_input_tensor_by_name(request, "logits").as_numpy()
            shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
            label = LABELS[shares.argmax(1)][:, None]
            tensors = [pb_utils.Tensor("label", label), pb_utils.Tensor("probability", shares.max(1, keepdims=True))]
            responses.append(pb_utils.InferenceResponse(tensors))
        return responses
