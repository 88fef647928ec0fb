"""The architectures of manifests/examples: as large as their papers say, indifferent to how requests are batched."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.torch
EXAMPLES = Path(__file__).parents[3] / "manifests/examples"
SIZES = {
    "nnunet-3d": ("UNet3d", 31_195_904),
    "resnet50-pyt": ("ResNet50", 25_557_032),
    "fastpitch": ("FastPitch", 44_766_546),
}


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), EXAMPLES / name / "base/model.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def seeded(name: str) -> Any:
    torch.manual_seed(0)
    return getattr(module(name), SIZES[name][0])().eval().requires_grad_(False)


def count(part: Any) -> int:
    return sum(parameter.numel() for parameter in part.parameters())


@pytest.mark.parametrize("name", SIZES)
def test_every_part_has_as_many_weights_as_the_example_lists(name: str) -> None:
    model, listed = seeded(name), module(name).PARAMETERS
    assert {part: count(child) for part, child in model.named_children() if count(child)} == listed
    assert count(model) == sum(listed.values()) == SIZES[name][1]


@pytest.mark.parametrize("convert", [torch.jit.script, None], ids=["script", "trace"])
def test_speech_of_any_length_does_not_depend_on_its_batch(convert: Any) -> None:
    model = seeded("fastpitch")
    model.durations.head.bias.fill_(1.0)
    texts = torch.randint(1, 148, (3, 24))
    texts[1, 9:] = 0
    texts[2] = 0
    # A trace fuses more than a script, and Debian's torch interprets what is fused: the examples turn that off.
    torch._C._jit_set_texpr_fuser_enabled(convert is not None)
    speak = convert(model) if convert else torch.jit.trace(model, (texts[:2, :20],), check_trace=False)
    # Twice: what TorchScript fuses it fuses after the first call.
    speak(texts)
    mel, lengths, *others = speak(texts)
    assert mel.shape == (3, 80, int(lengths.max()))
    assert lengths.squeeze(1).tolist() == [int((row + 0.5).floor().sum()) for row in others[0]]
    for number in range(3):
        alone = speak(texts[number : number + 1])
        frames = int(lengths[number])
        assert alone[0].shape == (1, 80, max(1, frames))
        assert alone[1].tolist() == [[frames]]
        torch.testing.assert_close(mel[number, :, :frames], alone[0][0, :, :frames], atol=1e-4, rtol=1e-4)
        assert not mel[number, :, frames:].any()
