"""pytest collects every file of tests: no two of them are one module for it."""

from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]


def module(path: Path) -> str:
    """The name by which pytest imports a file: with the packages around it, without other folders."""
    name = path.stem
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        name = f"{folder.name}.{name}"
    return name


def test_no_two_files_of_tests_are_one_module() -> None:
    counts = Counter(module(path) for path in sorted(TESTS.rglob("test_*.py")))
    assert [name for name, count in counts.items() if count > 1] == [], "rename all but one of them"
