"""Loading a user's PyTorch model: checkpoints, names, modes."""

import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tests.converters.sources import WriteSource
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.load import pyt
from triton_converters.load.torch_framework import TorchFramework, select_outputs

pytestmark = pytest.mark.torch
HEADER = """
import torch
from torch import nn
from safetensors.torch import load_file
NAMES = {"inputs": ["x"], "outputs": ["y"]}
"""
LOADS = """
def get_model(checkpoint: str, output_format: str, precision: str):
    model = nn.Linear(3, 2)
    weights = load_file(checkpoint) if checkpoint.endswith("safetensors") else torch.load(checkpoint)
    model.load_state_dict(weights)
    return model.eval(), NAMES
"""


@pytest.fixture(autouse=True)
def weights_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")


def load(source: Path, **arguments: str) -> TorchFramework:
    return pyt.load(source, ModelCode("pyt", Entrypoint("model.py", arguments), 4), "onnx")


def refusal(source: Path, **arguments: str) -> StageError:
    with pytest.raises(StageError) as caught:
        load(source, **arguments)
    assert caught.value.final
    return caught.value


class Payload:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["net.safetensors", "net.pt"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_weights_load_and_are_fp32(write_source: WriteSource, name: str, dtype: torch.dtype) -> None:
    source = write_source({"model.py": HEADER + LOADS})
    state = {"weight": torch.ones(2, 3, dtype=dtype), "bias": torch.zeros(2, dtype=dtype)}
    if name.endswith("safetensors"):
        save_file(state, source / name)
    else:
        torch.save(state, source / name)
    framework = load(source, checkpoint=name)
    assert (framework.inputs, framework.outputs) == (("x",), ("y",))
    assert {parameter.dtype for parameter in framework.module.parameters()} == {torch.float32}
    assert not any(parameter.requires_grad for parameter in framework.module.parameters())
    assert framework({"x": torch.ones(1, 3).numpy()})["y"].tolist() == [[3, 3]]


@pytest.mark.parametrize("explicit", ["", ", weights_only=False"])
def test_a_pickle_with_code_is_refused_and_not_executed(
    write_source: WriteSource, tmp_path: Path, explicit: str
) -> None:
    source = write_source(
        {"model.py": HEADER + LOADS.replace("torch.load(checkpoint", f"torch.load(checkpoint{explicit}")}
    )
    torch.save({"weight": torch.ones(2, 3), "extra": Payload(tmp_path / "executed")}, source / "net.pt")
    error = refusal(source, checkpoint="net.pt")
    assert error.reason is Reason.PICKLE_REFUSED
    assert "mkdir" in error.message
    assert "net.pt" in error.message
    assert "state_dict" in error.message
    assert not (tmp_path / "executed").exists()


def test_a_whole_pickled_module_is_refused(write_source: WriteSource) -> None:
    source = write_source({"model.py": HEADER + LOADS})
    torch.save(torch.nn.Linear(3, 2), source / "net.pt")
    error = refusal(source, checkpoint="net.pt")
    assert error.reason is Reason.PICKLE_REFUSED
    assert "Linear" in error.message


@pytest.mark.parametrize("name", ["net.pt", "net.safetensors"])
@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04" + b"\0" * 100, bytes(range(256)) * 8])
def test_a_corrupt_checkpoint_is_invalid(write_source: WriteSource, name: str, content: bytes) -> None:
    source = write_source({"model.py": HEADER + LOADS})
    (source / name).write_bytes(content)
    error = refusal(source, checkpoint=name)
    assert error.reason is Reason.CHECKPOINT_INVALID
    assert error.message.startswith(f"model.py:9: the checkpoint {name} cannot be read: ")


@pytest.mark.parametrize("name", ["net.pt", "net.safetensors"])
def test_a_truncated_checkpoint_is_invalid(write_source: WriteSource, name: str) -> None:
    source = write_source({"model.py": HEADER + LOADS})
    state = {"weight": torch.ones(2, 3), "bias": torch.zeros(2)}
    torch.save(state, source / name) if name.endswith("pt") else save_file(state, source / name)
    (source / name).write_bytes((source / name).read_bytes()[:-20])
    assert refusal(source, checkpoint=name).reason is Reason.CHECKPOINT_INVALID


def test_a_missing_checkpoint_is_named(write_source: WriteSource) -> None:
    error = refusal(write_source({"model.py": HEADER + LOADS}), checkpoint="net.safetensors")
    assert error.reason is Reason.CHECKPOINT_INVALID
    assert "'net.safetensors'" in error.message


@pytest.mark.parametrize("read", ["load_file('weights/net.safetensors')", "torch.load('weights/net.pt')"])
def test_a_checkpoint_that_user_code_names_itself_is_named_too(write_source: WriteSource, read: str) -> None:
    source = write_source({"model.py": f"{HEADER}def get_model():\n    return {read}"})
    error = refusal(source)
    assert error.reason is Reason.CHECKPOINT_INVALID
    assert "weights/net." in error.message
    assert error.message.startswith("model.py:7: ")


def test_weights_of_another_model_are_invalid(write_source: WriteSource) -> None:
    source = write_source({"model.py": HEADER + LOADS})
    save_file({"weight": torch.ones(2, 4), "other": torch.zeros(2)}, source / "net.safetensors")
    error = refusal(source, checkpoint="net.safetensors")
    assert error.reason is Reason.CHECKPOINT_INVALID
    assert "does not fit the model" in error.message
    assert "other" in error.message


def test_another_missing_file_is_user_code(write_source: WriteSource) -> None:
    error = refusal(write_source({"model.py": HEADER + "def get_model():\n    open('labels.txt')"}))
    assert error.reason is Reason.USER_CODE_FAILED


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("nn.Linear(3, 2).eval()", "must return (model, "),
        ("nn.Linear(3, 2).eval(), ['x']", "['x']"),
        ("nn.Linear(3, 2).eval(), {'inputs': ['x']}", "'inputs'"),
        ("(lambda x: x), NAMES", "function"),
        ("nn.Linear(3, 2).eval(), {'inputs': [], 'outputs': ['y']}", "0 inputs"),
        ("nn.Linear(3, 2).eval(), {'inputs': ['x'], 'outputs': ['x']}", "'x'"),
        ("nn.Linear(3, 2).eval(), {'inputs': ['a b'], 'outputs': ['y']}", "'a b'"),
        ("nn.Linear(3, 2).eval(), {'inputs': [3], 'outputs': ['y']}", "3"),
    ],
)
def test_what_get_model_returns_is_checked(write_source: WriteSource, returned: str, words: str) -> None:
    error = refusal(write_source({"model.py": f"{HEADER}def get_model():\n    return {returned}"}))
    assert error.reason is Reason.ENTRYPOINT_INVALID
    assert words in error.message, error.message


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("nn.Linear(3, 2)", "the model (Linear)"),
        ("nn.Sequential(nn.Linear(3, 2), nn.Dropout()).eval(); model[1].train()", "1 (Dropout)"),
    ],
)
def test_a_module_in_training_mode_is_named(write_source: WriteSource, model: str, name: str) -> None:
    source = write_source({"model.py": f"{HEADER}def get_model():\n    model = {model}\n    return model, NAMES"})
    error = refusal(source)
    assert error.reason is Reason.ENTRYPOINT_INVALID
    assert name in error.message


def test_a_model_that_is_wrapped_after_its_eval_is_in_evaluation_mode(write_source: WriteSource) -> None:
    """NVIDIA's Temporal Fusion Transformer does that."""
    wrapper = (
        "class Wrapper(nn.Module):\n    def __init__(self, net):\n        super().__init__()\n        self.net = net\n"
    )
    source = write_source(
        {"model.py": f"{HEADER}{wrapper}def get_model():\n    return Wrapper(nn.Linear(3, 2).eval()), NAMES"}
    )
    assert not load(source).module.training


def test_a_layer_in_training_mode_below_a_wrapper_is_refused(write_source: WriteSource) -> None:
    net = "nn.Sequential(nn.Linear(3, 2).eval(), nn.Dropout())"
    error = refusal(write_source({"model.py": f"{HEADER}def get_model():\n    return {net}, NAMES"}))
    assert error.reason is Reason.ENTRYPOINT_INVALID


def test_a_model_that_needs_a_gpu_says_so_where_nothing_is_rehearsed(write_source: WriteSource) -> None:
    source = write_source({"model.py": f"{HEADER}def get_model():\n    return nn.Linear(3, 2).eval().cuda(), NAMES"})
    error = refusal(source)
    assert error.reason is Reason.USER_CODE_FAILED
    assert "CUDA" in error.message


def test_forward_s_exceptions_name_line_and_shapes(write_source: WriteSource) -> None:
    text = "class Net(nn.Module):\n    def forward(self, x):\n        return x @ torch.ones(5, 2)\n"
    framework = load(write_source({"model.py": f"{HEADER}{text}def get_model():\n    return Net().eval(), NAMES"}))
    with pytest.raises(StageError) as caught:
        framework({"x": torch.ones(1, 3).numpy()})
    assert caught.value.reason is Reason.FRAMEWORK_FAILED
    assert caught.value.message.startswith("model.py:8: RuntimeError")
    assert caught.value.message.endswith("(inputs: x float32[1, 3])")


def test_outputs_are_selected_from_what_forward_returns() -> None:
    one, two = torch.ones(1), torch.zeros(1)
    assert select_outputs(one, ("y",)) == (one,)
    assert select_outputs((one, two), ("y",)) == (one,)
    assert select_outputs([one, two], ("y", "z")) == (one, two)
    assert select_outputs({"z": two, "y": one, "loss": None}, ("y", "z")) == (one, two)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (torch.ones(1), "1 outputs, but get_model names ['y', 'z']"),
        ((torch.ones(1), None), "NoneType for the output z"),
        ({"y": torch.ones(1)}, "a dict of ['y']"),
        ("text", "str"),
    ],
)
def test_outputs_that_are_missing_are_named(result: object, words: str) -> None:
    with pytest.raises(StageError) as caught:
        select_outputs(result, ("y", "z"))
    assert caught.value.reason is Reason.FRAMEWORK_FAILED
    assert words in caught.value.message
