"""A module that is missing, and the package that has it: their names often differ."""

import pytest

from triton_converters.failures import failure_of
from triton_converters.user.missing import advice


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("cv2", "the package opencv-python-headless, which has it,"),
        ("PIL", "the package pillow, which has it,"),
        ("yaml", "the package PyYAML, which has it,"),
        ("sklearn.svm", "the package scikit-learn, which has it,"),
        ("google.protobuf", "the package protobuf, which has it,"),
        ("google", "the package that has it, such as protobuf for google.protobuf,"),
        ("transformers", "the package that has it, which often has the same name,"),
        (None, "the package that has it"),
    ],
)
def test_the_package_is_named_where_the_modules_name_does_not_tell(module: str | None, package: str) -> None:
    error = ModuleNotFoundError(f"No module named {module!r}", name=module)
    told = failure_of(error).message
    assert told.startswith(f"the image lacks the Python module {module}; add {package} to the file of spec.conversion")
    assert advice(error).startswith(f"add {package} to the source, to the file that spec.conversion.requirements names")
