"""Loads the Python files of samples, which are no package."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parents[2] / "manifests/samples"


def module(path: str) -> Any:
    """Return a file below the folder of samples as a new module."""
    spec = spec_from_file_location(Path(path).stem, SAMPLES / path)
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
