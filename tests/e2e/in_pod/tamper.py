"""python3 tamper.py HOW FILE [OTHER]: change a converted model on the claim, as a mutant or a broken disk would.

The file is replaced by rename, so that what is hard-linked to it elsewhere stays.
"""

import os
import shutil
import stat
import sys
from pathlib import Path

import onnx
import torch
from onnx import numpy_helper


def scale_onnx(file, _):
    """One weight times 1.05."""
    model = onnx.load(file)
    weight = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * 1.05, weight.name))
    onnx.save(model, file)


class Swapped(torch.nn.Module):
    """The model with its two outputs exchanged."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, visitor: torch.Tensor, items: torch.Tensor):
        """Swap."""
        first, second = self.inner(visitor, items)
        return second, first


def swap_torchscript(file, _):
    """Exchange the two outputs."""
    torch.jit.save(torch.jit.script(Swapped(torch.jit.load(file))), file)


def poison_torchscript(file, _):
    """One weight becomes NaN."""
    model = torch.jit.load(file)
    with torch.no_grad():
        next(parameter for parameter in model.state_dict().values() if parameter.dim() == 2)[0, 0] = float("nan")
    torch.jit.save(model, file)


def replace(file, other):
    """The content of another file under this one's name."""
    shutil.copyfile(other, file)


def corrupt(file, _):
    """Half of it, and noise."""
    whole = Path(file).read_bytes()
    Path(file).write_bytes(whole[: len(whole) // 2] + os.urandom(64))


HOW = {
    "scale-onnx": scale_onnx,
    "swap-torchscript": swap_torchscript,
    "poison-torchscript": poison_torchscript,
    "replace": replace,
    "corrupt": corrupt,
}

how, file = sys.argv[1], Path(sys.argv[2])
folder_mode = stat.S_IMODE(file.parent.stat().st_mode)
file.parent.chmod(folder_mode | stat.S_IWUSR)
copy = file.with_name(f".{file.name}")
shutil.copyfile(file, copy)
HOW[how](str(copy), sys.argv[3] if len(sys.argv) > 3 else "")
os.replace(copy, file)
file.parent.chmod(folder_mode)
