"""Reads a folder's Python files without running any of them."""

import ast
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from triton_plugin.errors import FolderError
from triton_plugin.reading import hub_names, literal_paths, model_requests

LONGEST = 2**20
"""Bytes of a Python file; the longest of large frameworks have some hundred thousand. Parsed it may take 600 times."""
LONGEST_TOGETHER = 64 * 2**20
"""Bytes of all Python files of a folder, which take a minute to parse; a whole framework has 30 MiB of them."""

CATCHING = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
"""What catches the failure of an import."""
WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
"""Matches what may be the name of a model."""
CONTRACT = re.compile(rb"get_model|get_dataloader_fn|MetricsCalculator|TritonPythonModel")
"""Matches the content of what may be one of the user's files (docs/user-files.md)."""


@dataclass(frozen=True)
class Module:
    """What a Python file tells."""

    definitions: tuple[tuple[str, tuple[str, ...]], ...]
    """The functions and classes at its top: the name, and the names of the arguments that have no default."""
    imports: Mapping[tuple[str, int], int]
    """Dotted names that it imports, and the number of their leading dots, each with the first line that does so."""
    attributes: frozenset[str]
    """The names that follow a dot anywhere in it."""
    places: frozenset[str] = frozenset()
    """The absolute paths of files among its texts."""
    makes: frozenset[str] = frozenset()
    """The absolute paths of the directories that it makes."""
    guarded: frozenset[str] = frozenset()
    """The dotted names that it imports only where it goes on without them."""
    opened: tuple[tuple[str, int], ...] = ()
    """The literal paths that it hands to ``open``, to read, and their lines."""
    joined: tuple[tuple[str, int], ...] = ()
    """The ends of paths that it joins, as far as they are literal, and their lines."""
    words: frozenset[str] = frozenset()
    """The texts that may be the name of a model."""
    requests: tuple[model_requests.ModelRequest, ...] = ()
    """The requests that it makes to other models."""
    hashed: tuple[int, ...] = ()
    """The lines that call Python's own ``hash``."""
    downloads: tuple[hub_names.Download, ...] = ()
    """The calls in it that read from the Hugging Face hub."""
    options: tuple[str, ...] = ()
    """The arguments that its ``update_argparser`` requires."""


Modules = Mapping[str, Module]
"""What the files tell, by their path below the folder."""


@dataclass(frozen=True)
class Import:
    """A dotted name that a file imports."""

    name: str
    path: str
    """The file's path below the folder."""
    line: int
    is_guarded: bool
    """Whether the file goes on without it."""


@dataclass(frozen=True)
class Entrypoint:
    """A function or class of the contract (docs/user-files.md)."""

    path: str
    """Relative to the folder."""
    required: tuple[str, ...]
    """Names of the arguments that have no default, and of those that an update_argparser requires."""
    has_argparser: bool
    """Whether the entry point's file has an update_argparser, which may set defaults too."""


def paths_below(folder: Path) -> Iterator[tuple[Path, PurePosixPath]]:
    """Yield what is no folder below a folder, with its name there; a file is a folder that holds this file alone.

    Links to files are among it, and no link to a folder is followed.
    """
    if not folder.is_dir():
        yield folder, PurePosixPath(folder.name)
        return
    # pathlib's own walk makes a path of each folder, of which there may be many thousand.
    walked = ((Path(place).relative_to(folder).parts, files) for place, _, files in os.walk(folder) if files)
    for each in sorted((*above, name) for above, names in walked for name in names):
        yield folder.joinpath(*each), PurePosixPath(*each)


def is_hidden(name: PurePosixPath) -> bool:
    """Whether the path, or a folder on its way, is hidden."""
    return any(part.startswith(".") for part in name.parts)


def parse(folder: Path) -> dict[str, Module]:
    """Parse all files that are not hidden; no more than one is in memory at a time.

    One that is not valid Python is left out if it names nothing of the contract: it may be a template, or of Python 2.

    Raises FolderError for another that is not valid, and for one that is too long, also together with those before it.
    """
    modules: dict[str, Module] = {}
    total = 0
    for path, name in paths_below(folder):
        # A pipe or a device would be read without an end.
        if path.suffix != ".py" or is_hidden(name) or hub_names.is_kept(name) or not path.is_file():
            continue
        size = path.stat().st_size
        if size > LONGEST:
            raise FolderError(f"{path} is longer than {LONGEST} bytes, which no code is: leave it out of the folder")
        total += size
        if total > LONGEST_TOGETHER:
            message = f"the Python files of {folder} have more than {LONGEST_TOGETHER} bytes"
            raise FolderError(f"{message}: leave out those that the model does not import")
        content = path.read_bytes()
        try:
            modules[str(name)] = _module(ast.parse(content))
        except (SyntaxError, ValueError) as error:
            # In UTF-16, which Python does not read, zeros are between the letters.
            if CONTRACT.search(content.replace(b"\0", b"")) is None:
                continue
            raise FolderError(f"{path} is not valid Python: {error}") from error
        except (RecursionError, MemoryError) as error:
            raise FolderError(f"{path} is nested too deep to be read: leave it out of the folder") from error
    return modules


def entrypoints(modules: Modules, name: str) -> list[Entrypoint]:
    """Return where a function or class of that name is defined at the top of a file."""
    return [
        Entrypoint(
            path,
            tuple(dict.fromkeys([*required, *module.options])),
            any(each == "update_argparser" for each, _ in module.definitions),
        )
        for path, module in modules.items()
        for defined, required in module.definitions
        if defined == name
    ]


def imports(modules: Modules, path: str) -> Iterator[Import]:
    """Yield what a file imports that is not relative to it, itself or through other files of the folder."""
    seen_files: set[str] = set()
    pending_files = [path]
    while pending_files:
        file = pending_files.pop()
        if file in seen_files:
            continue
        seen_files.add(file)
        module = modules[file]
        for (name, level), line in module.imports.items():
            if level == 0:
                yield Import(name, file, line, name in module.guarded)
            pending_files += [each for each in _files(name, level, file) if each in modules]


def imported_packages(modules: Modules, path: str) -> set[str]:
    """Return the packages that a file imports, itself or through other files of the folder."""
    return {each.name.partition(".")[0] for each in imports(modules, path)}


def used_names(module: Module) -> set[str]:
    """Return the names that a file imports, and those that follow a dot anywhere in it."""
    return {name.rpartition(".")[2] for name, _ in module.imports} | module.attributes


def _module(parsed: ast.Module) -> Module:
    nodes = (node for node in parsed.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    imported = list(_imported_names(parsed, _guarded(parsed)))
    return Module(
        tuple((node.name, _required_arguments(node)) for node in nodes),
        {(name, level): line for name, level, line, _ in reversed(imported)},
        frozenset(node.attr for node in ast.walk(parsed) if isinstance(node, ast.Attribute)),
        frozenset(literal_paths.absolute(parsed)),
        frozenset(literal_paths.created_directories(parsed)),
        frozenset(name for name, _, _, guarded in imported if guarded)
        - frozenset(name for name, _, _, guarded in imported if not guarded),
        tuple(literal_paths.opened(parsed)),
        tuple(literal_paths.joined(parsed)),
        frozenset(
            node.value
            for node in ast.walk(parsed)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and WORD.fullmatch(node.value)
        ),
        tuple(model_requests.requests(parsed)),
        tuple(node.lineno for node in ast.walk(parsed) if isinstance(node, ast.Call) and _is_name(node.func, "hash")),
        tuple(hub_names.downloads(parsed)),
        tuple(_required_options(parsed)),
    )


def _required_options(module: ast.Module) -> Iterator[str]:
    """Yield the names of the options that ``update_argparser`` requires: add_argument("--NAME", required=True)."""
    declaring = [each for each in module.body if isinstance(each, ast.FunctionDef) and each.name == "update_argparser"]
    for node in (node for each in declaring for node in ast.walk(each)):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="add_argument"), args=[ast.Constant(value=str(name)), *_], keywords=keywords
            ) if any(each.arg == "required" and getattr(each.value, "value", False) is True for each in keywords):
                yield name.lstrip("-").replace("-", "_")


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _required_arguments(node: ast.FunctionDef | ast.ClassDef) -> tuple[str, ...]:
    """Return the arguments without a default; for a class, those of its constructor without self."""
    if isinstance(node, ast.ClassDef):
        functions = (each for each in node.body if isinstance(each, ast.FunctionDef))
        constructor = next((each for each in functions if each.name == "__init__"), None)
        return _required_arguments(constructor)[1:] if constructor else ()
    signature = node.args
    positional = [*signature.posonlyargs, *signature.args]
    required = positional[: len(positional) - len(signature.defaults)]
    pairs = zip(signature.kwonlyargs, signature.kw_defaults, strict=True)
    keyword = [each for each, default in pairs if default is None]
    return tuple(each.arg for each in [*required, *keyword])


def _guarded(module: ast.Module) -> set[int]:
    """Return the imports, by their identity, whose failure the file catches."""
    return {
        id(node)
        for attempt in ast.walk(module)
        if isinstance(attempt, ast.Try) and any(map(_catches_imports, attempt.handlers))
        for statement in attempt.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    caught = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)} if handler.type else CATCHING
    return bool(caught & CATCHING)


def _imported_names(module: ast.Module, guarded: set[int]) -> Iterator[tuple[str, int, int, bool]]:
    """Yield dotted names, the number of their leading dots, the line, and whether it is one of ``guarded``.

    A name imported from a package may be a file too.
    """
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found = [(each.name, 0) for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            package, level = node.module or "", node.level
            inner = [(f"{package}.{each.name}".lstrip("."), level) for each in node.names]
            found = [*([(package, level)] if package else []), *(inner if package or level else [])]
        else:
            continue
        yield from ((name, level, node.lineno, id(node) in guarded) for name, level in found)


def _files(name: str, level: int, importer: str) -> Iterator[str]:
    """Yield where the import would look below the folder: next to the importer, and from the folder's top."""
    nearest = PurePosixPath(importer).parent
    for _ in range(level - 1):
        nearest = nearest.parent
    for place in {nearest} if level else {nearest, PurePosixPath()}:
        stem = place.joinpath(*name.split("."))
        yield f"{stem}.py"
        yield f"{stem}/__init__.py"
