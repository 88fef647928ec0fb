"""Constants of torch modules in fp16: masks stay finite, and a file that is frozen already is cast like any other."""

import io
import warnings
from typing import Any

import pytest
import torch

from triton_converters.convert.script_half import halve, narrow
from triton_converters.convert.task import ConversionWarning
from triton_converters.convert.torch_module import _cast

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")


class Masking(torch.nn.Module):
    """A layer, and a mask of one number that is a buffer, as old exports of GPT-2 have it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.register_buffer("never", torch.tensor([-1e9]), persistent=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + mask * self.never


def frozen(model: Any) -> Any:
    file = io.BytesIO(torch.jit.freeze(model).save_to_buffer())
    return torch.jit.load(file)


def answers(model: Any) -> Any:
    x, mask = torch.ones(2, 4).half(), torch.tensor([[0.0, 0, 0, 1]]).half()
    with torch.no_grad():
        return model(x, mask)


@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_file_in_fp16_keeps_its_mask_finite_frozen_or_not(is_frozen: bool) -> None:
    scripted = torch.jit.script(Masking().eval())
    with torch.no_grad():
        expected = scripted(torch.ones(2, 4), torch.zeros(1, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConversionWarning)
        halved = halve(frozen(scripted) if is_frozen else scripted, CPU)
    answer = answers(halved)
    assert answer.dtype == torch.float16
    assert torch.isfinite(answer).all()
    assert torch.allclose(answer[:, :3].float(), expected[:, :3], atol=1e-2)
    # Nodes end with their graph.
    graph = halved.inlined_graph
    constants = graph.findAllNodes("prim::Constant", True)
    held = [each.t("value") for each in constants if each.hasAttribute("value") and each.kindOf("value") == "t"]
    assert {each.dtype for each in (*held, *halved.parameters(), *halved.buffers())} == {torch.float16}


def test_casting_a_frozen_file_leaves_the_file_as_it_was() -> None:
    given = frozen(torch.jit.script(Masking().eval()))
    halve(given, CPU)
    with torch.no_grad():
        assert given(torch.ones(2, 4), torch.zeros(1, 4)).dtype == torch.float32


def test_a_module_in_fp16_keeps_the_masks_among_its_buffers_finite() -> None:
    model = Masking().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConversionWarning)
        _cast(model)
    assert torch.isfinite(answers(model)).all()


def test_a_weight_beyond_fp16_is_no_mask() -> None:
    assert torch.isinf(narrow(torch.tensor([1.0, 2.0, 70000.0]))).tolist() == [False, False, True]
    assert narrow(torch.tensor([0.0, -1e9, float("-inf")])).tolist()[1] == -float("inf")
    assert narrow(torch.tensor([[0.0, -1e9], [0.0, 0.0]])).min() == -65504
