"""Format ``triton-python``: nothing is converted. What is served is the file of the source, which ``publish`` takes."""

from pathlib import Path

from triton_converters.convert.task import Task
from triton_converters.load.triton_python import PythonStep


def convert(task: Task, directory: Path) -> None:
    """Write nothing: the container that runs user code must not choose what of the source is served."""
    assert isinstance(task.framework, PythonStep)
