"""`python3 -m hack.site.build FOLDER`: build the site, and check every link of what was built."""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from hack.site.check import faults
from hack.site.pages import COPIED, converted, linked, place

ROOT = Path(__file__).parents[2]
PAGES = ("*.md", "docs/**/*.md", "manifests/**/*.md", "charts/**/*.md")
PICTURES = ("docs/*.svg", "docs/*.png")
INDEX = ROOT / "docs/README.md"
SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
LISTED = re.compile(r"\[[^\]]*\]\(([^)#\s]+\.md)\)")
STYLE = ROOT / "hack/site/site.css"
LARGEST = 64 * 1024
"""The most bytes of a file that is copied."""


def main() -> int:
    """Build the site; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m hack.site.build", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the site is built; what is there is replaced")
    parser.add_argument("--repository", default="", metavar="URL", help="address of the files of this tree")
    parser.add_argument("--zensical", default="zensical", metavar="PROGRAM", help="default: the one on the PATH")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    write(options.folder, options.repository.rstrip("/"))
    command = [options.zensical, "build", "--strict", "--clean", "--config-file", "mkdocs.yml"]
    if subprocess.run(command, cwd=options.folder, check=False).returncode:
        return 1
    found = faults(options.folder / "site")
    for each in found:
        print(each, file=sys.stderr)
    return 1 if found else 0


def write(folder: Path, repository: str) -> None:
    """Write the pages, the pictures, the files that pages link to, and mkdocs.yml into a folder."""
    pages = sorted({str(each.relative_to(ROOT)) for pattern in PAGES for each in ROOT.glob(pattern)})
    pictures = sorted(str(each.relative_to(ROOT)) for pattern in PICTURES for each in ROOT.glob(pattern))
    written = {path: (ROOT / path).read_text(encoding="utf-8") for path in pages}
    copied = [*pictures, *([] if repository else texts(ROOT, written))]
    for path, text in written.items():
        target = folder / "docs" / place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(converted(path, text, {*pages, *copied}, repository), encoding="utf-8")
    for path in copied:
        target = folder / "docs" / place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)
    shutil.copyfile(STYLE, folder / "docs" / STYLE.name)
    settings = yaml.safe_load((ROOT / "hack/site/mkdocs.yml").read_text(encoding="utf-8"))
    body = settings | {"nav": navigation(INDEX.read_text(encoding="utf-8"), pages)}
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(body, sort_keys=False), encoding="utf-8")


def texts(root: Path, written: Mapping[str, str]) -> list[str]:
    """Return the paths of the files that a site without a repository has copies of, in order.

    ``written``: the pages' texts, by their paths below ``root``.
    """
    named = {each for path, text in written.items() for each in linked(path, text)}
    return sorted(each for each in named if each.endswith(COPIED) and _is_small(root, root / each))


def _is_small(root: Path, file: Path) -> bool:
    """Whether a file is a regular one of the tree, and no larger than what is copied."""
    is_inside = file.resolve() == root.resolve() / file.relative_to(root) if file.is_relative_to(root) else False
    return is_inside and file.is_file() and file.stat().st_size <= LARGEST


def navigation(index: str, pages: list[str]) -> list[dict[str, object]]:
    """Return the site's navigation: the sections of the index with the pages that they name, and then all others."""
    _, *parts = SECTION.split(index)
    known = {"README.md", "docs/README.md"}
    found: list[dict[str, object]] = [{"Home": "index.md"}, {"All pages": "pages.md"}]
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        listed = [each for each in dict.fromkeys(_listed(text)) if each in pages and each not in known]
        known.update(listed)
        found.append({name: [place(each) for each in listed]})
    found.append({"Further pages": [place(each) for each in pages if each not in known]})
    return found


def _listed(text: str) -> list[str]:
    """Return the path in the tree of each page that a part of the index links to."""
    files = ((INDEX.parent / target).resolve() for target in LISTED.findall(text))
    return [str(file.relative_to(ROOT)) for file in files if file.is_relative_to(ROOT)]


if __name__ == "__main__":
    sys.exit(main())
