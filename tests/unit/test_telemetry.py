"""No program of ours tells anybody about models and machines."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGES = [
    path.stem.removeprefix("image-")
    for path in sorted((ROOT / "requirements").glob("image-*.txt"))
    if re.search(r"^onnxruntime==", path.read_text(), re.MULTILINE)
]


def test_some_images_have_onnxruntime() -> None:
    assert len(IMAGES) >= 4


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_with_onnxruntime_switches_its_telemetry_off(image: str) -> None:
    """Since 1.29 it sends events over HTTPS on Linux too, unless this variable is set before it is imported."""
    assert "ORT_DISABLE_TELEMETRY=1" in (ROOT / "images" / image / "Dockerfile").read_text()
