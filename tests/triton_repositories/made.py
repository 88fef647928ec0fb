"""What such repositories lack: weights, as small graphs of the declared shapes, and a dataloader of random inputs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from triton_plugin.drafting.triton_repository import pbtxt
from triton_plugin.drafting.triton_repository.pbtxt import Config

SERVED = ("onnxruntime", "onnxruntime_onnx")
ONNX = {"FP32": TensorProto.FLOAT, "INT64": TensorProto.INT64, "INT32": TensorProto.INT32, "UINT8": TensorProto.UINT8}
LFS = b"version https://git-lfs"
BYTES = ("a small cat on a chair", "two people talk", "it rains", "good")


def weights(folder: Path) -> list[str]:
    """Write a graph for each model of ONNX Runtime below the folder that has none; returns their paths there."""
    written = []
    for file in sorted(folder.rglob("config.pbtxt")):
        try:
            fields = pbtxt.read(file.read_bytes())
        except pbtxt.PbtxtError:
            continue
        if not {fields.backend, fields.platform} & set(SERVED):
            continue
        name = fields.default_model_filename or "model.onnx"
        place = file.parent / "1" / name
        if not any(_is_whole(path) for path in file.parent.glob(f"*/{name}")):
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(graph(fields))
            written.append(str(place.relative_to(folder)))
    return written


def graph(fields: Config) -> bytes:
    """Return a graph with the inputs and outputs of a configuration: each output varies with the mean of all inputs."""
    batch = ["batch"] if fields.max_batch_size else []
    random, nodes, constants, inputs, outputs, means = numpy.random.default_rng(0), [], [], [], [], []
    open_axes: list[tuple[str, int]] = []
    for number, each in enumerate(fields.input):
        name, shape = each.name, _shape(each, f"i{number}_", batch)
        inputs.append(helper.make_tensor_value_info(name, _type(each), shape))
        open_axes += [(name, axis) for axis, size in enumerate(shape) if isinstance(size, str) and not number]
        axes = list(range(len(batch), len(shape)))
        constants.append(numpy_helper.from_array(numpy.array(axes, numpy.int64), f"axes{number}"))
        nodes.append(helper.make_node("Cast", [name], [f"cast{number}"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("ReduceMean", [f"cast{number}", f"axes{number}"], [f"mean{number}"], keepdims=0))
        means.append(f"mean{number}")
    nodes.append(helper.make_node("Sum", means, ["mean"]))
    for number, each in enumerate(fields.output):
        name, shape = each.name, _shape(each, f"o{number}_", batch)
        outputs.append(helper.make_tensor_value_info(name, _type(each), shape))
        sources = [item for item in open_axes if not batch or item[1]]
        parts = []
        for axis, size in enumerate(shape):
            part = f"o{number}_size{axis}"
            if isinstance(size, str) and ((batch and axis == 0) or sources):
                tensor, source = open_axes[0] if batch and axis == 0 else sources.pop(0)
                nodes += [
                    helper.make_node("Shape", [tensor], [f"{part}_all"]),
                    helper.make_node("Slice", [f"{part}_all", f"{part}_from", f"{part}_to"], [part]),
                ]
                bounds = (("from", source), ("to", source + 1))
                constants += [_integers(f"{part}_{end}", [value]) for end, value in bounds]
            else:
                constants.append(_integers(part, [4 if isinstance(size, str) else size]))
            parts.append(part)
        last = shape[-1] if isinstance(shape[-1], int) else 1
        constants.append(numpy_helper.from_array(random.random(last, numpy.float32), f"weights{number}"))
        constants.append(_integers(f"ones{number}", [-1 if batch else 1, *([1] * (len(shape) - 1))]))
        nodes += [
            helper.make_node("Concat", parts, [f"shape{number}"], axis=0),
            helper.make_node("Reshape", ["mean", f"ones{number}"], [f"spread{number}"]),
            helper.make_node("Mul", [f"spread{number}", f"weights{number}"], [f"varied{number}"]),
            helper.make_node("Expand", [f"varied{number}", f"shape{number}"], [f"whole{number}"]),
            helper.make_node("Cast", [f"whole{number}"], [name], to=_type(each)),
        ]
    made = helper.make_graph(nodes, "made", inputs, outputs, constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def dataloader(ensemble: dict[str, Any]) -> str:
    """Return a dataloader for an object's ensemble: random numbers, and a few sentences.

    Where a dimension may have any size, a picture has 32 by 32 pixels, and a row of numbers is a second of sound.
    """
    return f"""import numpy
INPUTS = {[(each["name"], each["dataType"], each["dims"]) for each in ensemble["inputs"]]!r}
BATCHED = {ensemble["maxBatchSize"] > 0}
TEXTS = {BYTES!r}
ITEMS = 8
def one(random, kind, dims):
    if kind == "BYTES":
        count = int(numpy.prod([1 if each == -1 else each for each in dims]))
        texts = [TEXTS[int(each)] for each in random.integers(0, len(TEXTS), count)]
        return numpy.array(texts, dtype=object).reshape([1 if each == -1 else each for each in dims])
    picture, sound = kind == "UINT8" and len(dims) == 3, kind == "FP32" and len(dims) == 1
    some = [32, 32, 3] if picture else [16000] if sound else [8] * len(dims)
    sizes = [known if each == -1 else each for each, known in zip(dims, some)]
    if kind == "FP32":
        return random.random(sizes, dtype=numpy.float32)
    if kind == "BOOL":
        return random.random(sizes) > 0.5
    return random.integers(0, 100, sizes).astype(kind.lower())
def get_dataloader_fn(batch_size: int = 1):
    def batches():
        random, size = numpy.random.default_rng(0), batch_size if BATCHED else 1
        for start in range(0, ITEMS, size):
            rows = [{{name: one(random, kind, dims) for name, kind, dims in INPUTS}} for _ in range(size)]
            stacked = {{name: numpy.stack([row[name] for row in rows]) for name in rows[0]}}
            yield list(range(start, start + size)), stacked if BATCHED else rows[0], {{}}
    return batches
"""


def _is_whole(file: Path) -> bool:
    """Whether a file of weights is there, and no pointer of Git LFS in its place."""
    with file.open("rb") as opened:
        start = opened.read(len(LFS))
    return bool(start) and start != LFS


def _shape(tensor: Config, prefix: str, batch: Sequence[str]) -> list[Any]:
    return [*batch, *(f"{prefix}{axis}" if size == -1 else size for axis, size in enumerate(tensor.dims))]


def _type(tensor: Config) -> int:
    return ONNX[pbtxt.word(tensor, "data_type").removeprefix("TYPE_")]


def _integers(name: str, values: Sequence[int]) -> Any:
    return numpy_helper.from_array(numpy.array(values, numpy.int64), name)
