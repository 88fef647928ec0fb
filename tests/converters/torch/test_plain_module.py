"""Modules that torch.compile wrapped, and tensors that want a gradient: served as the module itself."""

from pathlib import Path

import numpy
import pytest
import torch

from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.load import pyt
from triton_converters.load.plain_module import without_compilation

pytestmark = pytest.mark.torch
CODE = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.scale = torch.ones(4, requires_grad=True)
        self.register_buffer("shift", torch.ones(4).requires_grad_())

    def forward(self, x):
        return self.first(x) * self.scale + self.shift, self.scale.expand(x.shape[0], 4)


def get_model():
    torch.manual_seed(0)
    net = Net().eval()
    {wrap}
    return net, {{"inputs": ["x"], "outputs": ["y", "scale"]}}
"""
WRAPS = {
    "none": "",
    "compiled": "net = torch.compile(net)",
    "a part compiled": "net.first = torch.compile(net.first)",
    "compiled in place": "net.compile()",
    "twice": "net.first = torch.compile(net.first); net = torch.compile(net)",
}


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_module_answers_and_is_traced_as_it_was_written(tmp_path: Path, wrap: str) -> None:
    name = f"model_{wrap.replace(' ', '_')}.py"
    (tmp_path / name).write_text(CODE.format(wrap=WRAPS[wrap]))
    framework = pyt.load(tmp_path, ModelCode("pyt", Entrypoint(name, {}), 4), "onnx")
    module = framework.module
    assert type(module).__name__ == "Net"
    assert [type(each).__name__ for each in module.children()] == ["Linear"]
    x = numpy.ones((1, 4), numpy.float32)
    answer = framework({"x": x})
    assert answer["scale"].tolist() == [[1, 1, 1, 1]]
    for size in (1, 4):
        assert framework({"x": numpy.ones((size, 4), numpy.float32)})["y"].shape == (size, 4)
    with torch.no_grad():
        traced = torch.jit.trace(module, (torch.from_numpy(x),), check_trace=False)
    assert numpy.allclose(traced(torch.from_numpy(x))[0].numpy(), answer["y"])


def test_a_plain_module_is_left_alone() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2))
    assert without_compilation(module) is module
