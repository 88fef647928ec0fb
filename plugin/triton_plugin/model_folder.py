"""What a model folder holds, read without running any of it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKPOINTS = (".safetensors", ".pt", ".pth", ".ckpt", ".bin")
"""Suffixes in the order of preference: only the first cannot hold code."""


class FolderError(Exception):
    """The folder is not one to start from; the message says what is missing."""


@dataclass(frozen=True)
class Entrypoint:
    """A function or class of the contract (docs/user-files.md)."""

    path: str
    """Relative to the folder."""
    required: tuple[str, ...]
    """Names of its arguments that have no default."""


@dataclass(frozen=True)
class ModelFolder:
    """The parts of a TritonDeployment's source."""

    name: str
    model: Entrypoint
    dataloader: Entrypoint | None
    metrics: Entrypoint | None
    checkpoints: tuple[str, ...]
    """Relative to the folder, the likeliest first."""
    framework: str
    """``torch`` or ``tensorflow``: what the model's file imports; empty: neither."""


def read(folder: Path) -> ModelFolder:
    """Look for the contract's functions and for checkpoints. Raises FolderError."""
    if not folder.is_dir():
        raise FolderError(f"{folder} is not a directory")
    modules = dict(_modules(folder))
    found = _defined(modules, "get_model")
    if not found:
        raise FolderError(
            f"none of the {len(modules)} Python files in {folder} defines get_model; docs/user-files.md says what it is"
        )
    if len(found) > 1:
        raise FolderError(f"get_model is defined in {', '.join(each.path for each in found)}; keep one")
    model = found[0]
    return ModelFolder(
        name=folder.resolve().name,
        model=model,
        dataloader=next(iter(_defined(modules, "get_dataloader_fn")), None),
        metrics=next(iter(_defined(modules, "MetricsCalculator")), None),
        checkpoints=tuple(_checkpoints(folder)),
        framework=_framework(modules[model.path]),
    )


def _modules(folder: Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if any(part.startswith(".") for part in name.parts):
            continue
        try:
            yield name.as_posix(), ast.parse(path.read_bytes())
        except (SyntaxError, ValueError) as error:
            raise FolderError(f"{path} is not Python: {error}") from error


def _defined(modules: dict[str, ast.Module], name: str) -> list[Entrypoint]:
    return [
        Entrypoint(path, _required(node))
        for path, module in modules.items()
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
    ]


def _required(node: ast.FunctionDef | ast.ClassDef) -> tuple[str, ...]:
    """A class's are those of its constructor, without self."""
    if isinstance(node, ast.ClassDef):
        made = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
        return _required(made)[1:] if made else ()
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    without = positional[: len(positional) - len(given.defaults)]
    keyword = [each for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    return tuple(each.arg for each in [*without, *keyword])


def _checkpoints(folder: Path) -> list[str]:
    """The safest kind first, then the largest."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix in CHECKPOINTS]
    files.sort(key=lambda path: (CHECKPOINTS.index(path.suffix), -path.stat().st_size, path))
    return [path.relative_to(folder).as_posix() for path in files]


def _framework(module: ast.Module) -> str:
    imported = {
        name.partition(".")[0]
        for node in ast.walk(module)
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    if "torch" in imported:
        return "torch"
    return "tensorflow" if imported & {"tensorflow", "keras"} else ""
