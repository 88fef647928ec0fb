"""A library of the system that a wheel needs: the message names it, and the way out."""

from pathlib import Path

import pytest

from triton_converters.contract.conversion_requests import Entrypoint
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.user.user_code import call

NOT_FOUND = "{}: cannot open shared object file: No such file or directory"
WAYS = {
    "libGL.so.1": "opencv-python-headless for opencv-python",
    "libgthread-2.0.so.0": "opencv-python-headless for opencv-python",
    "libcudart.so.12": "the package's build for the CPU",
    "libcublas.so.12": "an image with CUDA",
    "libsndfile.so.1": "and its wheel does not bring: install it in an image of your own",
    "libstdc++.so.6": "name that in spec.conversion.image",
}


@pytest.mark.parametrize("kind", ["ImportError", "OSError"])
@pytest.mark.parametrize("library", WAYS)
def test_a_missing_library_is_named_with_what_to_do(tmp_path: Path, library: str, kind: str) -> None:
    code = f"def get_model():\n    raise {kind}({NOT_FOUND.format(library)!r})\n"
    (tmp_path / f"model_{kind}.py").write_text(code)
    with pytest.raises(StageError) as caught:
        call(tmp_path, Entrypoint(f"model_{kind}.py", {}), "get_model")
    assert caught.value.reason is Reason.USER_CODE_FAILED
    assert f"model_{kind}.py:2: {library}: cannot open" in caught.value.message
    assert f"the image has no {library}" in caught.value.message
    assert WAYS[library] in caught.value.message


def test_other_errors_keep_their_own_words(tmp_path: Path) -> None:
    (tmp_path / "model_other.py").write_text("import json\nfrom json import absent_name\n")
    with pytest.raises(StageError, match=r"model_other\.py:2: ImportError: cannot import name") as caught:
        call(tmp_path, Entrypoint("model_other.py", {}), "get_model")
    assert "the image has no" not in caught.value.message
