"""The table of manifests/samples/README.md, from the comment at the head of each sample."""

from pathlib import Path
from typing import NamedTuple

from hack.docs.place import filled

FOLDER = Path(__file__).parents[2] / "manifests/samples"
PAGE = FOLDER / "README.md"
BEGIN = "<!-- made from the samples by `make generate` -->\n"
HEAD = "| File | What it shows | What has to be there |\n|---|---|---|\n"
NEEDS = "Needs: "


class Sample(NamedTuple):
    """What the comment of a sample says."""

    path: Path
    shows: str
    needs: str


def samples() -> list[Sample]:
    """Return the samples, sorted by name. Raises ValueError if a comment does not say what has to be there."""
    return [_sample(path) for path in sorted(FOLDER.glob("*.yaml"))]


def pages() -> dict[Path, str]:
    """Return the page by its path, with its table made anew.

    Raises ValueError if the page has no place for the table.
    """
    rows = "".join(f"| {' | '.join(_cells(each))} |\n" for each in samples())
    return {PAGE: filled(PAGE, BEGIN, f"\n{HEAD}{rows}\n")}


def _sample(path: Path) -> Sample:
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    shows, found, needs = " ".join(lines).partition(NEEDS)
    if not found:
        raise ValueError(f"{path} does not say what has to be there: add `# {NEEDS}...` to its comment")
    return Sample(path, shows.strip(), f"{needs[0].upper()}{needs[1:]}")


def _cells(sample: Sample) -> tuple[str, str, str]:
    # Text of a comment: what GitHub would take for markup stays text.
    shows, needs = (text.replace("|", "\\|").replace("*", "\\*") for text in (sample.shows, sample.needs))
    return f"[`{sample.path.stem}`]({sample.path.name})", shows, needs
