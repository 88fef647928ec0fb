"""A trace that names the device it was made on runs there alone, and the conversion says so."""

import importlib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gpu


def traced(torch: Any, device: str, path: Path) -> tuple[Any, bool]:
    """The file as the server loads it, and whether its graph names the CPU."""
    # It imports PyTorch, which only the image has.
    names_the_cpu = importlib.import_module("triton_converters.convert.torchscript").names_the_cpu

    class Positions(torch.nn.Module):  # type: ignore[misc, name-defined]  # PyTorch is a fixture here, and has no types
        def forward(self, x: Any) -> Any:
            return x + torch.arange(x.size(1), device=x.device)

    made = torch.jit.trace(Positions(), torch.zeros(2, 4, device=device), check_trace=False)
    made.save(str(path))
    return torch.jit.load(str(path), map_location="cuda"), names_the_cpu(made)


def test_one_of_the_cpu_says_so_and_raises_on_the_gpu(torch: Any, tmp_path: Path) -> None:
    module, warned = traced(torch, "cpu", tmp_path / "model.pt")
    assert warned
    with pytest.raises(RuntimeError, match="device"):
        module(torch.zeros(2, 4, device="cuda"))


def test_one_of_the_gpu_answers_on_it(torch: Any, tmp_path: Path) -> None:
    module, warned = traced(torch, "cuda", tmp_path / "model.pt")
    assert not warned
    assert module(torch.zeros(3, 5, device="cuda")).tolist() == [[0, 1, 2, 3, 4]] * 3
