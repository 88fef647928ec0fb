"""User code that asks for CUDA in a Job without a GPU gets the CPU. Each case runs in a process of its own."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch
CASES = {
    "Tensor.cuda": "torch.ones(2).cuda()",
    "Tensor.cuda with a device": "torch.ones(2).cuda(0, non_blocking=True)",
    "Tensor.to by name": "torch.ones(2).to('cuda')",
    "Tensor.to by index": "torch.ones(2).to(0)",
    "Tensor.to with a type": "torch.ones(2).to('cuda:0', torch.float16).float()",
    "Tensor.to by keyword": "torch.ones(2).to(device=torch.device('cuda', 1))",
    "Module.cuda": "nn.Linear(2, 2).cuda().weight",
    "Module.to": "nn.Linear(2, 2).to('cuda', torch.float32).weight",
    "Module.to a device": "nn.Sequential(nn.BatchNorm1d(2)).to(torch.device('cuda'))[0].running_mean",
    "a module made there": "nn.Linear(2, 2, device='cuda').weight",
    "zeros": "torch.zeros(2, device='cuda')",
    "ones": "torch.ones(2, device='cuda:0')",
    "empty": "torch.empty(2, device=torch.device('cuda'))",
    "tensor": "torch.tensor([1.0, 2.0], device='cuda')",
    "arange": "torch.arange(4, device=0)",
    "full": "torch.full((2,), 3.0, device='cuda')",
    "rand": "torch.rand(2, device='cuda')",
    "zeros_like": "torch.zeros_like(torch.ones(2), device='cuda')",
    "new_zeros": "torch.ones(2).new_zeros(3, device='cuda')",
    "as_tensor": "torch.as_tensor([1.0], device='cuda')",
    "the default device": "[torch.set_default_device('cuda'), torch.zeros(2), torch.set_default_device(None)][1]",
    "torch.load": "torch.load(saved)['x']",
    "torch.load to a device": "torch.load(saved, map_location='cuda')['x']",
    "pinned memory": "torch.ones(2).pin_memory()",
    "autocast": "within(torch.autocast('cuda'), lambda: nn.Linear(2, 2)(torch.ones(2)))",
    "the older autocast": "within(torch.cuda.amp.autocast(), lambda: nn.Linear(2, 2)(torch.ones(2)))",
    "synchronize": "[torch.ones(2), torch.cuda.synchronize()][0]",
    "empty_cache": "[torch.ones(2), torch.cuda.empty_cache()][0]",
    "set_device": "[torch.ones(2), torch.cuda.set_device(0)][0]",
    "a stream": "within(torch.cuda.stream(torch.cuda.Stream()), lambda: torch.ones(2))",
    "waiting for a stream": "[torch.ones(2), torch.cuda.current_stream().wait_stream(torch.cuda.Stream())][0]",
    "a range of a profiler": "[torch.ones(2), torch.cuda.nvtx.range_push('x'), torch.cuda.nvtx.range_pop()][0]",
    "NVML": "[torch.ones(2), __import__('pynvml').nvmlInit()][0]",
}
PROGRAM = """
import json, sys
import torch
from torch import nn
from triton_converters.user import rehearsal

def within(context, function):
    with context:
        return function()

saved = sys.argv[1]
rehearsal.begin()
answers = {}
for name, code in json.load(sys.stdin).items():
    rehearsal._fell_back.clear()
    try:
        value = eval(code)
        answers[name] = [value.device.type, str(value.dtype).partition(".")[2], rehearsal.took_place()]
    except Exception as error:
        answers[name] = repr(error)
answers["available"] = torch.cuda.is_available()
print(json.dumps(answers))
"""
STAGE = """
import json, sys
from pathlib import Path
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.load import pyt
from triton_converters.user import rehearsal

source = Path(sys.argv[1])
module = pyt.load(source, ModelCode("pyt", Entrypoint("model.py", {}), 4), "onnx").module
print(json.dumps([rehearsal.took_place(), next(module.parameters()).device.type]))
"""
MODEL = """
import torch
def get_model():
    return torch.nn.Linear(3, 2)%s.eval(), {"inputs": ["x"], "outputs": ["y"]}
"""


def run(program: str, *arguments: str, stdin: str = "", visible: str = "void") -> object:
    """Run a program in a container's process and return what it prints last; ``visible``: which GPUs it has."""
    environment = os.environ | {"NVIDIA_VISIBLE_DEVICES": visible}
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        input=stdin, capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    """What each case gave: device, type, and whether it was noted."""
    saved = tmp_path_factory.mktemp("saved") / "on-a-gpu.pt"
    _save_as_on_a_gpu(saved)
    found = run(PROGRAM, str(saved), stdin=json.dumps(CASES))
    assert isinstance(found, dict)
    return found


def _save_as_on_a_gpu(path: Path) -> None:
    """Write what ``torch.save`` writes of a tensor on a GPU: only the name of its place differs."""
    import torch
    from torch import serialization

    given = serialization.location_tag
    serialization.location_tag = lambda storage: "cuda:0"
    try:
        torch.save({"x": torch.ones(2)}, path)
    finally:
        serialization.location_tag = given


@pytest.mark.parametrize("name", CASES)
def test_what_asks_for_cuda_gets_the_cpu_and_is_noted(answers: dict[str, list[object]], name: str) -> None:
    assert answers[name][0] == "cpu", answers[name]
    assert answers[name][2] is True
    assert answers[name][1] == ("int64" if name == "arange" else "float32")


def test_no_gpu_is_said_to_be_available(answers: dict[str, object]) -> None:
    assert answers["available"] is False


@pytest.mark.parametrize(("calls", "noted"), [(".cuda()", True), ("", False)])
def test_only_code_that_asks_for_a_gpu_is_rehearsed(tmp_path: Path, calls: str, noted: bool) -> None:
    (tmp_path / "model.py").write_text(MODEL % calls)
    assert run(STAGE, str(tmp_path)) == [noted, "cpu"]


def test_a_job_that_asked_for_a_gpu_does_not_fall_back(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL % ".cuda()")
    with pytest.raises(AssertionError, match=r"UserCodeFailed|CUDA|NVIDIA"):
        run(STAGE, str(tmp_path), visible="all")
