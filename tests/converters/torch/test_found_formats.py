"""What PyTorch itself writes is told apart by its content."""

from pathlib import Path

import pytest
import torch

from triton_converters.found.kinds import FileKind, kind_of

pytestmark = pytest.mark.torch


def test_each_file_of_torch_has_its_kind(tmp_path: Path) -> None:
    module, example = torch.nn.Linear(4, 2).eval(), torch.zeros(1, 4)
    torch.jit.script(module).save(str(tmp_path / "scripted"))
    torch.jit.trace(module, example).save(str(tmp_path / "traced"))
    torch.save(module.state_dict(), tmp_path / "weights")
    torch.save(module.state_dict(), tmp_path / "old", _use_new_zipfile_serialization=False)
    torch.export.save(torch.export.export(module, (example,)), str(tmp_path / "exported.pt2"))
    assert {each.name: kind_of(each) for each in tmp_path.iterdir()} == {
        "scripted": FileKind.TORCHSCRIPT,
        "traced": FileKind.TORCHSCRIPT,
        "weights": FileKind.STATE_DICT,
        "old": FileKind.STATE_DICT,
        "exported.pt2": FileKind.EXPORTED_PROGRAM,
    }
