"""A step before the network: the file of a picture becomes what the network takes."""

import io

import numpy
import triton_python_backend_utils as pb_utils
from PIL import Image

SIDE = 8
LARGEST_SIDE = 4096
BROKEN = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)
"""What is raised for a file that is no such picture."""


class TritonPythonModel:
    """Reads JPEG and PNG files of any size and colours with Pillow, which is in requirements.txt."""

    def execute(self, requests: list) -> list:
        """Return a response for each request; a file that is no such picture fails its own request alone."""
        responses = []
        for request in requests:
            files = pb_utils.get_input_tensor_by_name(request, "file").as_numpy()
            try:
                pixels = numpy.stack([decoded(file) for (file,) in files])
            except BROKEN as error:
                wrong = pb_utils.TritonError(f"no JPEG or PNG: {error}", pb_utils.TritonError.INVALID_ARG)
                responses.append(pb_utils.InferenceResponse(error=wrong))
            else:
                responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("pixels", pixels)]))
        return responses


def decoded(file: bytes) -> numpy.ndarray:
    """Return the pixels of a small grey picture, float32 [64], from 0 for black to 1 for white."""
    with Image.open(io.BytesIO(file), formats=("JPEG", "PNG")) as picture:
        if max(picture.size) > LARGEST_SIDE:
            raise ValueError(f"a side has more than {LARGEST_SIDE} pixels")
        small = picture.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX)
    return numpy.asarray(small, numpy.float32).ravel() / 255
