"""The fragments of changelog.d, by the real towncrier with the settings of pyproject.toml."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_SENTENCES, MOST_WORDS = 3, 60
SENTENCE_ENDS = re.compile(r"(?<=[.!?]) (?=[A-Z`\[])")
IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.com")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A branch next to `main`, with this tree's changelog and no fragment."""
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "changelog.d").mkdir()
    shutil.copy(ROOT / "changelog.d/README.md", tmp_path / "changelog.d")
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    commit(tmp_path)
    git(tmp_path, "switch", "--quiet", "--create", "branch")
    (tmp_path / "changed").touch()
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, *IDENTITY, "commit", "--quiet", "--message", "x")


def towncrier(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "-m", "towncrier", *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


def test_a_change_needs_a_fragment(tree: Path) -> None:
    assert towncrier(tree, "check", "--compare-with", "main").returncode == 1
    (tree / "changelog.d/+words.fixed.md").write_text("Words that wrap\nare one entry.\n")
    commit(tree)
    done = towncrier(tree, "check", "--compare-with", "main")
    assert done.returncode == 0, done.stderr


def test_a_release_moves_the_fragments_above_the_last_section(tree: Path) -> None:
    before = (tree / "CHANGELOG.md").read_text()
    (tree / "changelog.d/+one.added.md").write_text("The first.\n")
    (tree / "changelog.d/12.fixed.md").write_text("The second.\n")
    commit(tree)
    done = towncrier(tree, "build", "--yes", "--version", "9.8.7", "--date", "2030-01-02")
    assert done.returncode == 0, done.stderr
    head, _, rest = before.partition("\n## ")
    new = "\n## 9.8.7 (2030-01-02)\n\n### Added\n\n- The first.\n\n### Fixed\n\n- The second. (#12)\n"
    assert (tree / "CHANGELOG.md").read_text().split() == f"{head}{new}\n## {rest}".split()
    assert [path.name for path in (tree / "changelog.d").iterdir()] == ["README.md"]


def test_every_fragment_has_a_kind_and_words() -> None:
    done = towncrier(ROOT, "build", "--draft", "--version", "next")
    assert done.returncode == 0, done.stderr
    fragments = [path for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    assert all(path.read_text().strip() for path in fragments)


def test_a_fragment_is_three_short_sentences_at_most() -> None:
    """A reader of a release looks for what concerns them: two changes are two fragments."""
    long = []
    for path in sorted((ROOT / "changelog.d").glob("+*.md")):
        words = path.read_text(encoding="utf-8").split()
        sentences = SENTENCE_ENDS.split(" ".join(words))
        if len(sentences) > MOST_SENTENCES or len(words) > MOST_WORDS:
            long.append(f"{path.name}: {len(sentences)} sentences, {len(words)} words")
    assert long == [], "split it, or leave out what a user need not do or know"
