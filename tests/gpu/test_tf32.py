"""`NVIDIA_TF32_OVERRIDE=0` keeps PyTorch from TF32, though the program asks for it."""

import os
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.gpu
PROGRAM = """
import torch
torch.set_float32_matmul_precision("high")
torch.manual_seed(0)
one, other = torch.randn(2, 512, 512)
expected = one.double() @ other.double()
found = (one.cuda() @ other.cuda()).cpu().double()
print(((found - expected).abs() / (1e-4 + 1e-4 * expected.abs())).max().item())
"""
"""Prints the largest error of a product, as a multiple of the tolerance of fp32."""


def error(override: str | None) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "NVIDIA_TF32_OVERRIDE"}
    environment |= {"NVIDIA_TF32_OVERRIDE": override} if override else {}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def test_products_are_exact_with_the_variable_and_are_not_without_it(torch: Any) -> None:
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("GPUs before the A100 have no TF32")
    assert error("0") <= 1
    assert error(None) > 1, "the program does not compute in TF32, so this proves nothing"
