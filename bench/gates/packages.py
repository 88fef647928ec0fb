"""Packages that only this benchmark needs: another runtime, a simplifier, and scikit-learn's data without its code."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from tests.zoo.fetch import unpacked

PACKAGES = Path(__file__).with_name("packages.txt")
PYTHON = "3.11"
"""The version that the hashes in packages.txt are for, which is that of the development environment."""


def fetch() -> None:
    """Download and unpack all, once."""
    unpacked(PACKAGES, PYTHON)


def data(name: str) -> Path:
    """Return a file of scikit-learn's data sets."""
    return unpacked(PACKAGES, PYTHON) / "sklearn" / "datasets" / name


def openvino() -> ModuleType:
    """Import OpenVINO."""
    return _imported("openvino")


def onnxsim() -> ModuleType:
    """Import the simplifier."""
    return _imported("onnxsim")


def _imported(name: str) -> ModuleType:
    folder = str(unpacked(PACKAGES, PYTHON))
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)
