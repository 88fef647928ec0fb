"""Whether a container has a GPU, by what the operator and NVIDIA's runtime leave in it."""

from pathlib import Path

import pytest

from triton_converters.contract.reasons import Reason
from triton_converters.load import gpu
from triton_converters.user import rehearsal

TF32 = {"NVIDIA_TF32_OVERRIDE": "0"}
VOID = {"NVIDIA_VISIBLE_DEVICES": "void"}


@pytest.mark.parametrize(
    ("variables", "devices", "given"),
    [
        (TF32, [], True),
        (TF32 | {"NVIDIA_VISIBLE_DEVICES": "GPU-1"}, [], True),
        (TF32 | VOID, ["nvidia0"], True),
        (VOID, [], False),
        (TF32 | VOID, [], False),
        ({}, ["nvidia0"], False),
    ],
    ids=["told of TF32", "by a variable", "by the runtime", "void", "void, with a variable of the user's", "no Job"],
)
def test_a_container_has_a_gpu_if_the_operator_gave_it_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], devices: list[str], given: bool
) -> None:
    for name in (*TF32, *VOID):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for name in devices:
        (tmp_path / name).touch()
    monkeypatch.setattr(rehearsal, "DEVICES", tmp_path)
    assert gpu.is_given() is given


def test_the_failure_has_the_framework_s_words_and_what_to_do() -> None:
    error = gpu.unseen("PyTorch 2.13.0", "The NVIDIA driver on your system is too old\n(found version 12020).")
    assert error.reason is Reason.GPU_UNAVAILABLE
    assert error.message.startswith(
        "the Job has a GPU, but PyTorch 2.13.0 does not see it: The NVIDIA driver on your system is too old (found"
    )
    assert "spec.pod.runtimeClassName: nvidia" in error.message
