"""One real inference request, sent with tritonclient as any client would."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc
from tritonclient.utils import triton_to_np_dtype

TIMEOUT_SECONDS = 10
SHADES = " .:-=+*#%@"


@dataclass(frozen=True)
class Answer:
    """What the server made of one picture."""

    picture: np.ndarray
    """Grey levels 0 to 1, shape (height, width)."""
    digit: int
    """What was written."""
    prediction: int
    """What the server read."""
    probability: float
    """Softmax of its logits at the prediction."""

    def drawing(self) -> str:
        """The picture in characters, two a pixel."""
        levels = np.rint(self.picture * (len(SHADES) - 1)).astype(int)
        return "\n".join("".join(SHADES[level] * 2 for level in row).rstrip() for row in levels)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities of logits of shape (classes,)."""
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


def ask(url: str, model: str, request: Path) -> Answer:
    """Send the request in a file of the inference protocol's JSON form to ``url`` (host:port, gRPC).

    Raises tritonclient.utils.InferenceServerException where the server does not answer it.
    """
    document: dict[str, Any] = json.loads(request.read_text(encoding="utf-8"))
    (tensor,) = document["inputs"]
    values = np.array(tensor["data"], dtype=triton_to_np_dtype(tensor["datatype"])).reshape(tensor["shape"])
    given = tritonclient.grpc.InferInput(tensor["name"], tensor["shape"], tensor["datatype"])
    given.set_data_from_numpy(values)
    with tritonclient.grpc.InferenceServerClient(url) as client:
        result = client.infer(model, [given], request_id=document["id"], client_timeout=TIMEOUT_SECONDS)
        (name,) = [output.name for output in result.get_response().outputs]
        probabilities = softmax(result.as_numpy(name)[0])
    prediction = int(probabilities.argmax())
    return Answer(values[0, 0], int(document["parameters"]["digit"]), prediction, float(probabilities[prediction]))
