"""How to send a first request to a Ready object. Pure."""

import json
from keyword import iskeyword
from math import prod
from pathlib import Path, PurePosixPath
from shlex import quote

from triton_operator.api.status import SignatureStatus, TensorStatus
from triton_plugin.reading.subject import Subject

MOST_ELEMENTS = 64
"""The largest input that is written out."""
SIDE = 64
"""Size for an open dimension of a tensor that has others, such as a picture, which few models accept as one pixel."""
PORT, GRPC_PORT = 8000, 8001
SAMPLE_LABELS = """
for name, label in (labels or {}).items():
    print("the dataloader's label", name, numpy.asarray(label)[:1])"""
"""Python's lines that print what the dataloader says of its first sample, next to the answer."""
RETRY = "--retry 9 --retry-connrefused"
"""The port is forwarded a moment after curl has started."""


def first_request(subject: Subject, folder: Path | None = None) -> str:
    """Return commands for a shell: forward the Service's port, then ask.

    ``folder``: the model's files on this machine; None: they are not here. The request is the first sample of the
    dataloader in them, if that needs no argument; otherwise zeros stand for real inputs. Inputs too long for a command
    line are sent from Python, and so is what JSON does not hold: FP16.
    """
    url = quote(f"http://localhost:{PORT}/v2/models/{subject.served_name}")
    forward = _forwarding(subject, PORT, "  ")
    signature = subject.status.signature
    if signature is None or signature.omitted or not signature.inputs:
        return f"To ask which inputs a request needs:\n{forward}  curl {RETRY} {url}"
    rows = signature.max_batch_size
    most = f"; a request may have up to {rows} rows" if rows > 1 else ""
    by_grpc = f"\n\n{_forwarding(subject, GRPC_PORT)}"
    if folder is not None and (loader := _loader(subject, folder)) is not None:
        script = _script(subject.served_name, signature, _sample(signature, folder, loader), SAMPLE_LABELS)
        return f"To send the first sample of {loader}, where what it imports is installed{most}:{by_grpc}{script}"
    shapes = [_shape(tensor, rows > 0) for tensor in signature.inputs]
    has_halves = any(_datatype(tensor) == "FP16" for tensor in (*signature.inputs, *signature.outputs))
    is_long = sum(map(prod, shapes)) > MOST_ELEMENTS or any("'" in tensor.name for tensor in signature.inputs)
    if is_long or has_halves:
        script = _script(subject.served_name, signature, _zeros(signature, shapes))
        why = "; Triton's JSON holds no FP16" if has_halves else ""
        return f"To send a request from Python (zeros stand for real inputs{why}{most}):{by_grpc}{script}"
    body = _body(signature, shapes)
    curl = f"curl {RETRY} {url}/infer --data {quote(body)}"
    return f"To send a request (zeros stand for real inputs{most}):\n{forward}  {curl}"


def _forwarding(subject: Subject, port: int, indent: str = "") -> str:
    """Return the line of a shell that forwards a port of the Service; empty: `check --serve` forwards it."""
    if subject.is_local:
        return ""
    return f"{indent}kubectl port-forward {subject.place} {quote(f'service/{subject.name}')} {port} &\n"


def _loader(subject: Subject, folder: Path) -> str | None:
    """Return the path of the dataloader, if it lies in the folder and its function needs no argument of the object."""
    loader = subject.spec.dataloader
    if loader is None or loader.arguments or not (folder / loader.entrypoint).is_file():
        return None
    name = PurePosixPath(loader.entrypoint).stem
    return loader.entrypoint if name.isidentifier() and not iskeyword(name) else None


def _script(model: str, signature: SignatureStatus, inputs: str, last: str = "") -> str:
    """Return a shell's lines that ask with tritonclient; ``inputs`` and ``last``: Python's lines before and after."""
    return f"""\
pip install 'tritonclient[grpc]'
python3 - <<'END'
import numpy, tritonclient.grpc as triton
from tritonclient.utils import triton_to_np_dtype
inputs = []
{inputs}
answer = triton.InferenceServerClient("localhost:{GRPC_PORT}").infer({model!r}, inputs)
for name in {[each.name for each in signature.outputs]!r}:
    print(name, answer.as_numpy(name)){last}
END"""


def _zeros(signature: SignatureStatus, shapes: list[list[int]]) -> str:
    """Return Python's lines that make inputs of zeros."""
    pairs = zip(signature.inputs, shapes, strict=True)
    inputs = [(each.name, shape, _datatype(each)) for each, shape in pairs]
    return f"""\
for name, shape, datatype in {inputs!r}:
    inputs.append(triton.InferInput(name, shape, datatype))
    zero = b"" if datatype == "BYTES" else 0
    inputs[-1].set_data_from_numpy(numpy.full(shape, zero, triton_to_np_dtype(datatype)))"""


def _sample(signature: SignatureStatus, folder: Path, loader: str) -> str:
    """Return Python's lines that make inputs of the dataloader's first sample, and its ``labels``."""
    inputs = [(each.name, _datatype(each)) for each in signature.inputs]
    path, batched = PurePosixPath(loader), signature.max_batch_size > 0
    # A tensor that has nothing but rows is served with one column.
    row = "[:1]\n    value = value if value.ndim > 1 else value[:, None]" if batched else ""
    return f"""\
import inspect, os, sys
os.chdir({str(folder)!r})
sys.path[:0] = {list(map(str, dict.fromkeys((folder / path.parent, folder))))!r}
from {path.stem} import get_dataloader_fn
given, known = {{"batch_size": 1, "precision": "fp32"}}, inspect.signature(get_dataloader_fn).parameters
_, values, labels = next(iter(get_dataloader_fn(**{{name: given[name] for name in given if name in known}})()))
for name, datatype in {inputs!r}:
    value = numpy.asarray(values[name]){row}
    value = value.astype(triton_to_np_dtype(datatype))
    inputs.append(triton.InferInput(name, value.shape, datatype))
    inputs[-1].set_data_from_numpy(value)"""


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
    return {"BYTES": "", "BOOL": False, "FP32": 0.0, "FP64": 0.0}.get(_datatype(tensor), 0)
