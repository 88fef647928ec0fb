"""The type of the fixture that writes user files."""

from collections.abc import Callable, Mapping
from pathlib import Path

WriteSource = Callable[[Mapping[str, str]], Path]
