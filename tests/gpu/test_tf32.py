"""`NVIDIA_TF32_OVERRIDE=0` keeps PyTorch from TF32, though the program asks for it."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.gpu
PROGRAM = """
import json
import torch
from torch.nn import functional
torch.set_float32_matmul_precision("high")
torch.backends.cudnn.allow_tf32 = True
torch.manual_seed(0)
operations = {
    "product": (torch.matmul, (2048, 512), (512, 512)),
    "convolution of texts": (functional.conv1d, (2, 384, 128), (1536, 384, 3)),
    "convolution of pictures": (functional.conv2d, (4, 64, 56, 56), (64, 64, 3, 3)),
    "convolution of volumes": (functional.conv3d, (1, 32, 32, 32, 32), (32, 32, 3, 3, 3)),
}
errors = {}
for name, (operation, values, weights) in operations.items():
    one, other = torch.randn(values), torch.randn(weights)
    # So that results are around 1.
    other /= (512 if other.ndim == 2 else other[0].numel()) ** 0.5
    expected = operation(one.double(), other.double())
    found = operation(one.cuda(), other.cuda()).cpu().double()
    errors[name] = ((found - expected).abs() / (1e-4 + 1e-4 * expected.abs())).max().item()
print(json.dumps(errors))
"""
"""Prints the largest error of each operation, as a multiple of the tolerance of fp32."""


def errors(override: str | None) -> dict[str, float]:
    environment = {name: value for name, value in os.environ.items() if name != "NVIDIA_TF32_OVERRIDE"}
    environment |= {"NVIDIA_TF32_OVERRIDE": override} if override else {}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def test_results_are_exact_with_the_variable_and_are_not_without_it(torch: Any) -> None:
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("GPUs before the A100 have no TF32")
    with_it, without_it = errors("0"), errors(None)
    print(f"errors as multiples of the tolerance: with the variable {with_it}, without it {without_it}")
    assert max(with_it.values()) <= 1, with_it
    assert min(without_it.values()) > 1, f"something is not computed in TF32, so this proves nothing: {without_it}"
