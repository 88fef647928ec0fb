"""How to send a first request to a Ready object. Pure."""

import json
from math import prod

from triton_operator.api.status import SignatureStatus, TensorStatus
from triton_plugin.subject import Subject

MOST_ELEMENTS = 64
"""The largest input that is written out."""
SIDE = 64
"""Size for an open dimension of a tensor that has others, such as a picture, which few models accept as one pixel."""
PORT = 8000


def first_request(subject: Subject) -> str:
    """Return commands for a shell: forward the Service's port, then ask; zeros stand for real inputs."""
    url = f"http://localhost:{PORT}/v2/models/{subject.spec.served_name}"
    forward = f"kubectl port-forward --namespace {subject.namespace} service/{subject.name} {PORT} &"
    body = _body(subject.status.signature)
    if not body:
        return f"To ask which inputs a request needs:\n  {forward}\n  curl {url}"
    return f"To send a request (zeros stand for real inputs):\n  {forward}\n  curl {url}/infer --data '{body}'"


def _body(signature: SignatureStatus | None) -> str:
    """Return the request of one sample as JSON; empty if it is not known or long."""
    if signature is None or signature.omitted or not signature.inputs:
        return ""
    batch = [1] if signature.max_batch_size else []
    shapes = [[*batch, *_sizes(tensor)] for tensor in signature.inputs]
    # A name may hold what a shell reads.
    if sum(map(prod, shapes)) > MOST_ELEMENTS or any("'" in tensor.name for tensor in signature.inputs):
        return ""
    pairs = zip(signature.inputs, shapes, strict=True)
    inputs = [
        {"name": each.name, "shape": shape, "datatype": _datatype(each), "data": [_zero(each)] * prod(shape)}
        for each, shape in pairs
    ]
    return json.dumps({"inputs": inputs})


def _sizes(tensor: TensorStatus) -> list[int]:
    """Return the sizes of a sample, with one for each dimension that the model leaves open."""
    chosen = 1 if len(tensor.dims) == 1 else SIDE
    return [chosen if each < 0 else each for each in tensor.dims]


def _datatype(tensor: TensorStatus) -> str:
    """Return the inference protocol's name of a type of Triton's configuration."""
    name = tensor.data_type.removeprefix("TYPE_")
    return "BYTES" if name == "STRING" else name


def _zero(tensor: TensorStatus) -> object:
    return {"BYTES": "", "BOOL": False, "FP16": 0.0, "FP32": 0.0, "FP64": 0.0}.get(_datatype(tensor), 0)
