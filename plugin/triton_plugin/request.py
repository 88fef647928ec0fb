"""How to send a first request to a Ready object. Pure."""

import json
from math import prod
from shlex import quote

from triton_operator.api.status import SignatureStatus, TensorStatus
from triton_plugin.subject import Subject

MOST_ELEMENTS = 64
"""The largest input that is written out."""
SIDE = 64
"""Size for an open dimension of a tensor that has others, such as a picture, which few models accept as one pixel."""
PORT, GRPC_PORT = 8000, 8001
RETRY = "--retry 9 --retry-connrefused"
"""The port is forwarded a moment after curl has started."""


def first_request(subject: Subject) -> str:
    """Return commands for a shell: forward the Service's port, then ask; zeros stand for real inputs.

    Inputs too long for a command line are sent from Python.
    """
    url = quote(f"http://localhost:{PORT}/v2/models/{subject.served_name}")
    forward = f"kubectl port-forward --namespace {quote(subject.namespace)} {quote(f'service/{subject.name}')}"
    signature = subject.status.signature
    if signature is None or signature.omitted or not signature.inputs:
        return f"To ask which inputs a request needs:\n  {forward} {PORT} &\n  curl {RETRY} {url}"
    shapes = [_shape(tensor, signature.max_batch_size > 0) for tensor in signature.inputs]
    if sum(map(prod, shapes)) > MOST_ELEMENTS or any("'" in tensor.name for tensor in signature.inputs):
        script = _script(subject.served_name, signature, shapes)
        return f"To send a request from Python (zeros stand for real inputs):\n\n{forward} {GRPC_PORT} &\n{script}"
    body = _body(signature, shapes)
    curl = f"curl {RETRY} {url}/infer --data {quote(body)}"
    return f"To send a request (zeros stand for real inputs):\n  {forward} {PORT} &\n  {curl}"


def _script(model: str, signature: SignatureStatus, shapes: list[list[int]]) -> str:
    """Return a shell's lines that ask with tritonclient."""
    pairs = zip(signature.inputs, shapes, strict=True)
    inputs = [(each.name, shape, _datatype(each)) for each, shape in pairs]
    return f"""\
pip install 'tritonclient[grpc]'
python3 - <<'END'
import numpy, tritonclient.grpc as triton
from tritonclient.utils import triton_to_np_dtype
inputs = []
for name, shape, datatype in {inputs!r}:
    inputs.append(triton.InferInput(name, shape, datatype))
    zero = b"" if datatype == "BYTES" else 0
    inputs[-1].set_data_from_numpy(numpy.full(shape, zero, triton_to_np_dtype(datatype)))
answer = triton.InferenceServerClient("localhost:{GRPC_PORT}").infer({model!r}, inputs)
for name in {[each.name for each in signature.outputs]!r}:
    print(name, answer.as_numpy(name))
END"""


def _body(signature: SignatureStatus, shapes: list[list[int]]) -> str:
    """Return the request of one sample as JSON."""
    pairs = zip(signature.inputs, shapes, strict=True)
    inputs = [
        {"name": each.name, "shape": shape, "datatype": _datatype(each), "data": [_zero(each)] * prod(shape)}
        for each, shape in pairs
    ]
    return json.dumps({"inputs": inputs})


def _shape(tensor: TensorStatus, has_batch_dimension: bool) -> list[int]:
    """Return the shape of a request of one sample, with a size for each dimension that the model leaves open.

    ``has_batch_dimension``: there is one besides the tensor's dimensions. If not, an open first dimension may be one.
    """
    open_size = 1 if len(tensor.dims) == 1 else SIDE
    # Triton has no empty dims: such a tensor is served with one of 1.
    sizes = [open_size if each < 0 else each for each in tensor.dims] or [1]
    if has_batch_dimension:
        return [1, *sizes]
    return [1, *sizes[1:]] if tensor.dims and tensor.dims[0] < 0 else sizes


def _datatype(tensor: TensorStatus) -> str:
    """Return the inference protocol's name of a type of Triton's configuration."""
    name = tensor.data_type.removeprefix("TYPE_")
    return "BYTES" if name == "STRING" else name


def _zero(tensor: TensorStatus) -> object:
    return {"BYTES": "", "BOOL": False, "FP16": 0.0, "FP32": 0.0, "FP64": 0.0}.get(_datatype(tensor), 0)
