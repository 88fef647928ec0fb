"""What travels to a bare machine with a GPU; tests/local/test_check.py runs the command that runs there."""

from pathlib import Path

import pytest

from hack.gpumachine import __main__ as gpumachine


@pytest.mark.parametrize(
    ("part", "path", "travels"),
    [
        ("base", "tritonserver/bin/tritonserver", True),
        ("base", "venv/bin/perf_analyzer", True),
        ("base", "venv/lib/python3.12/site-packages/tritonclient/__init__.py", True),
        ("base", "venv/bin/python3.12", False),
        ("base", "tritonserver/venv/lib/python3.12/site-packages", False),
        ("base", "tritonserver/site-packages/onnxruntime/__init__.py", False),
        ("base", "venv/lib/python3.12/site-packages/numpy-2.2.4.dist-info/RECORD", False),
        ("base", "venv/lib/python3.12/site-packages/google/protobuf/__init__.py", False),
        ("site", "pydantic/__init__.py", True),
        ("site", "tritonclient/__init__.py", False),
        ("site", "re2/__pycache__/a.pyc", False),
    ],
)
def test_a_file_travels_if_the_machine_lacks_it(part: str, path: str, travels: bool) -> None:
    assert gpumachine.travels(Path(path), part) == travels


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for size, fault in ((gpumachine.MOST_BYTES, None), (gpumachine.MOST_BYTES + 1, "no more than 48 MiB may travel")):
        monkeypatch.setattr(gpumachine, "pack", lambda *_, size=size: size)
        assert gpumachine.main(["pack", "bare", "python3"]) == fault
