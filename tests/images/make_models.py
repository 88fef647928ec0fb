"""Writes the model repositories of these tests. Runs inside the converter image, where torch is."""

import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).parent))
from types_served import ONNX_TYPES as NAMES
from types_served import TORCH_TYPES

ONNX_NAMES = {"FP16": "FLOAT16", "FP32": "FLOAT", "FP64": "DOUBLE"}
ONNX_TYPES = {name: getattr(TensorProto, ONNX_NAMES.get(name, name)) for name in NAMES}
TORCH_NAMES = {"FP16": "float16", "FP32": "float32", "FP64": "float64"}


def tensor(name: str, data_type: str, dims: str) -> str:
    return f'name: "{name}" data_type: TYPE_{data_type} dims: [{dims}]'


def config(backend: str, inputs: list[str], outputs: list[str], batch: int, extra: str = "") -> str:
    lines = [f'backend: "{backend}"', f"max_batch_size: {batch}"]
    lines += [f"input {{ {item} }}" for item in inputs] + [f"output {{ {item} }}" for item in outputs]
    if "instance_group" not in extra:
        lines.append("instance_group { count: 1 kind: KIND_CPU }")
    return "\n".join([*lines, extra, ""])


def ensemble(step: str, inputs: list[str], outputs: list[str]) -> str:
    """An ensemble of one step, which maps x to y."""
    tensors = [f"input {{ {item} }}" for item in inputs] + [f"output {{ {item} }}" for item in outputs]
    maps = 'input_map { key: "x" value: "x" } output_map { key: "y" value: "y" }'
    steps = f'ensemble_scheduling {{ step {{ model_name: "{step}" model_version: -1 {maps} }} }}'
    return "\n".join(['platform: "ensemble"', "max_batch_size: 8", *tensors, steps, ""])


def write(folder: Path, text: str, model: object, examples: tuple[torch.Tensor, ...] | None = None) -> None:
    """Write one model: an ONNX graph, a module traced with examples, or scripted without."""
    version = folder / "1"
    version.mkdir(parents=True)
    (folder / "config.pbtxt").write_text(text)
    if isinstance(model, onnx.ModelProto):
        onnx.save(model, version / "model.onnx")
    elif isinstance(model, torch.nn.Module):
        script = torch.jit.script(model) if examples is None else torch.jit.trace(model, examples)
        script.save(str(version / "model.pt"))
    elif isinstance(model, bytes):
        name = "model.onnx" if "onnxruntime" in text else "model.pt"
        (version / name).write_bytes(model)


def graph(
    nodes: list[onnx.NodeProto], inputs: list, outputs: list, initializers: list | None = None
) -> onnx.ModelProto:
    made = helper.make_graph(nodes, "graph", inputs, outputs, initializers or [])
    operators = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(made, opset_imports=operators, ir_version=8)


def value(name: str, type_: int = TensorProto.FLOAT, dims: list | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, type_, ["batch", 4] if dims is None else dims)


DOUBLE = [helper.make_node("Add", ["x", "x"], ["y"])]
X = [tensor("x", "FP32", "4")]
Y = [tensor("y", "FP32", "4")]


class Double(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x


class Rounded(torch.nn.Module):
    """What PyTorch's fuser makes zeros of on a CPU, from the second call on."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 1.5).round().long()


class Two(torch.nn.Module):
    """Inputs and outputs that tell their positions."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return left - right, left * 10 + right


class Dictionary(torch.nn.Module):
    def forward(self, values: dict[str, torch.Tensor]) -> torch.Tensor:
        return values["a"] - values["b"]


class Lookup(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding.from_pretrained(torch.arange(8, dtype=torch.float32).reshape(4, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table(x)


class Identity(torch.nn.Module):
    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(tensor.clone() for tensor in tensors)


def strings() -> onnx.ModelProto:
    """What exporters of scikit-learn make of text."""

    def ml(operator: str, source: str, result: str, **attributes: object) -> onnx.NodeProto:
        return helper.make_node(operator, [source], [result], domain="ai.onnx.ml", **attributes)

    known, shape = ["no", "grün"], ["batch", 3]
    pairs = {"mode": "TF", "min_gram_length": 2, "max_gram_length": 2, "max_skip_count": 0, "ngram_counts": [0, 0]}
    return graph(
        [
            helper.make_node("Identity", ["words"], ["echo"]),
            ml("LabelEncoder", "words", "numbers", keys_strings=known, values_int64s=[0, 1], default_int64=-1),
            ml("LabelEncoder", "numbers", "names", keys_int64s=[0, 1], values_strings=known, default_string="日本"),
            ml("OneHotEncoder", "words", "ones", cats_strings=known, zeros=1),
            helper.make_node(
                "TfIdfVectorizer",
                ["words"],
                ["pairs"],
                **pairs,
                ngram_indexes=[0, 1],
                pool_strings=["no", "no", "grün", "no"],
            ),
        ],
        [value("words", TensorProto.STRING, shape)],
        [
            value("echo", TensorProto.STRING, shape),
            value("numbers", TensorProto.INT64, shape),
            value("names", TensorProto.STRING, shape),
            value("ones", TensorProto.FLOAT, ["batch", 3, 2]),
            value("pairs", TensorProto.FLOAT, ["batch", 2]),
        ],
    )


BATCHING = "dynamic_batching { preferred_batch_size: [8] max_queue_delay_microseconds: 300000 }"


def good(root: Path) -> None:
    double = graph(DOUBLE, [value("x")], [value("y")])
    for backend, model, names in (
        ("onnxruntime", double, ("x", "y")),
        ("pytorch", Double(), ("INPUT__0", "OUTPUT__0")),
    ):
        examples = (torch.zeros(1, 4),)
        io = [tensor(names[0], "FP32", "4")], [tensor(names[1], "FP32", "4")]
        write(root / f"{backend}_batch", config(backend, *io, 8, BATCHING), model, examples)
        two = "instance_group { count: 2 kind: KIND_CPU }"
        write(root / f"{backend}_instances", config(backend, *io, 8, two), model, examples)
        warm = (
            f'model_warmup {{ name: "real" batch_size: 2 inputs {{ key: "{names[0]}" value '
            '{ data_type: TYPE_FP32 dims: 4 input_data_file: "x.raw" } } count: 3 }'
        )
        write(root / f"{backend}_warm", config(backend, *io, 8, warm), model, examples)
        (root / f"{backend}_warm" / "warmup").mkdir()
        np.arange(8, dtype=np.float32).tofile(root / f"{backend}_warm" / "warmup" / "x.raw")

    table = helper.make_tensor("table", TensorProto.FLOAT, [4, 2], list(range(8)))
    gather = graph(
        [helper.make_node("Gather", ["table", "x"], ["y"])],
        [value("x", TensorProto.INT64, ["batch", 1])],
        [value("y", TensorProto.FLOAT, ["batch", 1, 2])],
        [table],
    )
    accelerated = 'optimization { execution_accelerators { gpu_execution_accelerator: [{ name: "tensorrt" }] } }'
    lookup = [tensor("x", "INT64", "1")], [tensor("y", "FP32", "1, 2")]
    write(root / "onnxruntime_lookup", config("onnxruntime", *lookup, 8, accelerated), gather)
    write(root / "pytorch_lookup", config("pytorch", *lookup, 8, accelerated), Lookup())
    for backend in ("onnxruntime", "pytorch"):
        (root / f"{backend}_ensemble" / "1").mkdir(parents=True)
        (root / f"{backend}_ensemble" / "config.pbtxt").write_text(ensemble(f"{backend}_lookup", *lookup))

    write(
        root / "onnxruntime_types",
        config(
            "onnxruntime",
            [tensor(f"input_{name}", name, "2") for name in ONNX_TYPES],
            [tensor(f"output_{name}", name, "2") for name in ONNX_TYPES],
            4,
        ),
        graph(
            [helper.make_node("Identity", [f"input_{name}"], [f"output_{name}"]) for name in ONNX_TYPES],
            [value(f"input_{name}", code, ["batch", 2]) for name, code in ONNX_TYPES.items()],
            [value(f"output_{name}", code, ["batch", 2]) for name, code in ONNX_TYPES.items()],
        ),
    )
    io = [[tensor(f"{kind}put__{i}", name, "2") for i, name in enumerate(TORCH_TYPES)] for kind in ("in", "out")]
    dtypes = (getattr(torch, TORCH_NAMES.get(name, name.lower())) for name in TORCH_TYPES)
    write(
        root / "pytorch_types",
        config("pytorch", *io, 4),
        Identity(),
        tuple(torch.zeros(1, 2, dtype=dtype) for dtype in dtypes),
    )

    write(
        root / "onnxruntime_strings",
        config(
            "onnxruntime",
            [tensor("words", "STRING", "3")],
            [
                tensor("echo", "STRING", "3"),
                tensor("numbers", "INT64", "3"),
                tensor("names", "STRING", "3"),
                tensor("ones", "FP32", "3, 2"),
                tensor("pairs", "FP32", "2"),
            ],
            8,
            BATCHING,
        ),
        strings(),
    )

    scalar = graph(
        [helper.make_node("Mul", ["x", "scale"], ["y"])],
        [value("x", dims=["rows", 3]), value("scale", dims=[])],
        [value("y", dims=["rows", 3])],
    )
    write(
        root / "onnxruntime_unbatched",
        config(
            "onnxruntime",
            [tensor("x", "FP32", "-1, 3"), tensor("scale", "FP32", "1")],
            [tensor("y", "FP32", "-1, 3")],
            0,
        ),
        scalar,
    )
    write(
        root / "pytorch_unbatched",
        config("pytorch", [tensor("x", "FP32", "-1, 3")], [tensor("y", "FP32", "-1, 3")], 0),
        Double(),
    )
    rounded = [tensor("x", "FP32", "4")], [tensor("y", "INT64", "4")]
    write(root / "pytorch_rounded", config("pytorch", *rounded, 8), Rounded())

    for name, inputs, outputs in (
        ("index", ("ANY__1", "ANY__0"), ("OUT__1", "OUT__0")),
        ("forward", ("right", "left"), ("OUT__1", "OUT__0")),
        ("order", ("one", "two"), ("three", "four")),
    ):
        io = [tensor(n, "FP32", "4") for n in inputs], [tensor(n, "FP32", "4") for n in outputs]
        write(root / f"pytorch_names_{name}", config("pytorch", *io, 8), Two(), (torch.zeros(1, 4), torch.zeros(1, 4)))
    io = [tensor("b", "FP32", "4"), tensor("a", "FP32", "4")], [tensor("y", "FP32", "4")]
    write(root / "pytorch_dictionary", config("pytorch", *io, 8), Dictionary())


def bad(root: Path) -> None:
    double = graph(DOUBLE, [value("x")], [value("y")])
    examples = (torch.zeros(1, 4),)
    for backend, model in (("onnxruntime", double), ("pytorch", Double())):
        write(root / f"{backend}_corrupt", config(backend, X, Y, 8), b"not a model")
        write(root / f"{backend}_missing", config(backend, X, Y, 8), None)
        write(root / f"{backend}_inputs", config(backend, [*X, tensor("z", "FP32", "4")], Y, 8), model, examples)
        write(root / f"{backend}_bf16", config(backend, [tensor("x", "BF16", "4")], Y, 8), model, examples)
    for name, inputs, outputs, batch in (
        ("input_name", [tensor("wrong", "FP32", "4")], Y, 8),
        ("output_name", X, [tensor("wrong", "FP32", "4")], 8),
        ("input_type", [tensor("x", "FP16", "4")], Y, 8),
        ("output_type", X, [tensor("y", "INT32", "4")], 8),
        ("input_rank", [tensor("x", "FP32", "4, 1")], Y, 8),
        ("output_dim", X, [tensor("y", "FP32", "5")], 8),
        ("unbatched", X, Y, 0),
    ):
        write(root / f"onnxruntime_{name}", config("onnxruntime", inputs, outputs, batch), double)
    string = [tensor("x", "STRING", "4")]
    write(root / "onnxruntime_string", config("onnxruntime", string, Y, 8), double)
    write(root / "pytorch_string", config("pytorch", string, Y, 8), Double(), examples)
    threads = 'parameters { key: "intra_op_thread_count" value { string_value: "many" } }'
    write(root / "onnxruntime_parameter", config("onnxruntime", X, Y, 8, threads), double)
    accelerator = 'optimization { execution_accelerators { cpu_execution_accelerator: [{ name: "openvino" }] } }'
    write(root / "onnxruntime_accelerator", config("onnxruntime", X, Y, 8, accelerator), double)
    fixed = graph(DOUBLE, [value("x", dims=[1, 4])], [value("y", dims=[1, 4])])
    write(root / "onnxruntime_fixed_batch", config("onnxruntime", X, Y, 8), fixed)
    outputs = [tensor("OUTPUT__1", "FP32", "4")]
    write(root / "pytorch_output_index", config("pytorch", X, outputs, 8), Double(), examples)
    # Loads, as in the native backend, and fails when it answers.
    write(root / "pytorch_output_type", config("pytorch", X, [tensor("y", "INT32", "4")], 8), Double(), examples)


if __name__ == "__main__":
    good(Path(sys.argv[1], "good"))
    bad(Path(sys.argv[1], "bad"))
    corrupt = Path(sys.argv[1], "corrupt")
    write(corrupt / "model", config("onnxruntime", X, Y, 8), b"not a model")
