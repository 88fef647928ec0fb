"""Where a Python step may import what the image has."""

from pathlib import Path

import pytest

from triton_converters.contract import layout
from triton_converters.load import step_imports


@pytest.mark.usefixtures("mount")
def test_a_step_sees_the_image_if_packages_were_installed_or_the_image_is_the_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not step_imports.sees_image()
    layout.PACKAGES_MOUNT.mkdir()
    assert step_imports.sees_image()
    layout.PACKAGES_MOUNT.rmdir()
    monkeypatch.setattr(layout, "CONVERTERS_MOUNT", Path(step_imports.__file__).parents[2])
    assert step_imports.sees_image(), "our programs were copied into an image of the user's"
