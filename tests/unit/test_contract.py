"""The contract between the operator and its Jobs runs anywhere: it needs Python's standard library alone."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

CONVERTERS = Path(__file__).resolve().parents[2] / "converters"
PACKAGE = "triton_converters.contract"
FILES = sorted(CONVERTERS.joinpath(*PACKAGE.split(".")).rglob("*.py"))


def imported(file: Path) -> set[str]:
    """The modules that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            # `from package import module` imports the module too.
            module = node.module or ""
            found |= {f"{module}.{each.name}" for each in node.names} if module == "triton_converters" else {module}
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_imports_the_standard_library_and_itself_alone(file: Path) -> None:
    others = {
        module
        for module in imported(file)
        if module.partition(".")[0] not in sys.stdlib_module_names and not f"{module}.".startswith(f"{PACKAGE}.")
    }
    assert others == set()


def test_a_python_without_packages_imports_all_of_it() -> None:
    modules = [f"{PACKAGE}.{file.stem}" for file in FILES if file.stem != "__init__"]
    assert len(modules) > 5
    program = f"import importlib, sys; sys.path.insert(0, {str(CONVERTERS)!r})\n"
    program += f"for name in {modules!r}: importlib.import_module(name)"
    # -I: neither PYTHONPATH nor the user's packages; -S: no site-packages.
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
