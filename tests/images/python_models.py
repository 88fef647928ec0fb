"""Repositories with Python models, as the server's own Python backend loads them."""

import tempfile
from pathlib import Path

from triton_converters.claim_store import python_step

STEPS = Path(__file__).parent / "steps"


def tensors(kind: str, *declared: tuple[str, str, str]) -> list[str]:
    return [f'{kind} {{ name: "{name}" data_type: TYPE_{type_} dims: [{dims}] }}' for name, type_, dims in declared]


def write_model(folder: Path, *lines: str, batch: int = 8) -> Path:
    """Write a configuration, and return the directory of its version."""
    (folder / "1").mkdir(parents=True)
    group = "instance_group { count: 1 kind: KIND_CPU }"
    text = ['backend: "python"', f"max_batch_size: {batch}", group, *lines, ""]
    (folder / "config.pbtxt").write_text("\n".join(text))
    return folder / "1"


def write_step(
    folder: Path, files: dict[str, str], *lines: str, file: str = "step.py", packages: Path | None = None
) -> Path:
    """Write a step as it is published: our program, the user's files by their paths, and its packages."""
    version = write_model(folder, *lines)
    with tempfile.TemporaryDirectory() as source:
        for name, text in files.items():
            path = Path(source, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        python_step.write(Path(source), file, version, packages)
    python_step.write_settings(version, file, threads=3)
    return version


def readable(folder: Path) -> Path:
    """Let the server's user read what the test's user wrote."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder
